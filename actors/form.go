package actors

import (
	"context"

	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/form"
)

// Ask sends a form. It returns when the form is on disk; Await waits for the answer. An ask that was made
// before, by its Key or Name, sends nothing and gives what there is.
func (a *Agent) Ask(ctx context.Context, ask Ask) (view.Asked, error) {
	return a.ask(ctx, mailbox.RequestForm{
		To: ask.To, Title: ask.Title, Description: ask.Description, Fields: ask.Fields,
		Deadline: ask.Deadline, NoForward: ask.NoForward, Key: ask.Key, Result: ask.Name,
	})
}

// Request asks for a capability in words. Its answer is a record with that as "value".
func (a *Agent) Request(ctx context.Context, r Request) (view.Asked, error) {
	return a.ask(ctx, mailbox.RequestForm{
		To: r.To, Kind: events.Request, Description: r.Text,
		Deadline: r.Deadline, NoForward: r.NoForward, Key: r.Key, Result: r.Name,
	})
}

func (a *Agent) ask(ctx context.Context, ask mailbox.RequestForm) (view.Asked, error) {
	off, err := visitFor(ctx, a, func(b *mailboxActor) (pending[view.Asked], error) { return b.ask(ask, a.reveals()) })
	off.result.Unreachable = a.node.isOut(ctx, off.waits)
	return off.result, err
}

// ask asks, or finds what was asked before. With reveal, what is sealed in its outcome is opened.
func (b *mailboxActor) ask(ask mailbox.RequestForm, reveal bool) (pending[view.Asked], error) {
	if known, ok, err := ask.FindExisting(b.state); err != nil {
		return pending[view.Asked]{}, err
	} else if ok {
		asked, err := b.known(ask, known, reveal)
		return pending[view.Asked]{result: asked}, err
	}
	contract, err := b.node.compile(b.reg.id, ask.Fields)
	if err != nil {
		return pending[view.Asked]{}, err
	}
	ask.Schema = contract
	evs, err := b.decide(ask)
	if err != nil {
		return pending[view.Asked]{}, err
	}
	e := evs[0].(*events.FormRequested)
	if ask.Schema != nil {
		b.node.contracts.put(b.contractKey(e.ID), ask.Schema)
	}
	return pending[view.Asked]{view.Asked{Form: e.ID, Promise: e.Promise, Number: e.Number}, b.waitsFor(e.To)}, nil
}

// underway is what was accepted, and the other nodes that have to be in reach for it to arrive.
type pending[T any] struct {
	result T
	waits  []capabilities.NodeID
}

func (b *mailboxActor) waitsFor(to capabilities.ID) []capabilities.NodeID {
	if to.Node == b.node.id {
		return nil
	}
	return append(b.state.HeldFor(to), to.Node)
}

// isOut reports whether one of some nodes is another and cannot be reached now.
func (n *Node) isOut(ctx context.Context, nodes []capabilities.NodeID) bool {
	for _, id := range nodes {
		if id != n.id && !n.peers.of(id).inReach(ctx) {
			return true
		}
	}
	return false
}

// known gives what an ask of before came to.
func (b *mailboxActor) known(ask mailbox.RequestForm, k mailbox.Existing, reveal bool) (view.Asked, error) {
	if k.Message == nil {
		return b.bound(ask, k.Value, reveal)
	}
	f := k.Message.Form
	asked := view.Asked{Form: f.ID, Promise: f.Promise, Number: k.Message.Number}
	if f.IsOpen() {
		return asked, nil
	}
	outcome, err := b.viewer().outcome(f, reveal)
	asked.Outcome = &outcome
	return asked, err
}

// bound gives the value that the ask's name has already, as the answer it stands for.
func (b *mailboxActor) bound(ask mailbox.RequestForm, v capabilities.Value, reveal bool) (view.Asked, error) {
	if reveal {
		var err error
		if v, err = b.node.secrets.Open(v); err != nil {
			return view.Asked{}, err
		}
	}
	outcome := view.Outcome{Status: view.StatusAnswered, Values: v}
	if _, isRecord := v.AsRecord(); !isRecord {
		outcome.Values = capabilities.Record(map[string]capabilities.Value{"value": v})
		outcome.Order = []string{"value"}
	}
	for _, f := range ask.Fields {
		outcome.Order = append(outcome.Order, f.Name)
	}
	return view.Asked{Outcome: &outcome}, nil
}

// Await waits until a form that the agent asked, or was asked, has ended: at once if it has. It may be
// called at any time and as often as wanted. Secret values are in the clear only for who asked, and by a token only if that
// is good for it.
func (a *Agent) Await(ctx context.Context, w Which) (view.Outcome, error) {
	ended := make(chan result[view.Outcome], 1)
	var at formKey
	first, err := visitFor(ctx, a, func(b *mailboxActor) (view.Outcome, error) {
		m, err := b.state.FindForm(string(w))
		if err != nil {
			return view.Outcome{}, err
		}
		if !m.Form.IsOpen() {
			return b.viewer().outcome(m.Form, a.reveals())
		}
		at = formKey{a.id, m.ID()}
		b.node.waiters.add(at, ended)
		return view.Outcome{Status: view.StatusOpen, Form: m.ID(), Promise: m.Form.Promise}, nil
	})
	if err != nil || first.Status != view.StatusOpen {
		return first, err
	}
	defer a.node.waiters.drop(at, ended)
	select {
	case r := <-ended:
		if r.err != nil || a.reveals() {
			return r.value, r.err
		}
		return a.sealedOutcome(ctx, at.form)
	case <-ctx.Done():
		err = errEnded(ctx)
	case <-a.node.life.Done():
		err = errClosing()
	}
	select {
	case r := <-ended: // just then
		return r.value, r.err
	default:
		return first, err
	}
}

// sealedOutcome gives how a form ended, with what is sealed as it is.
func (a *Agent) sealedOutcome(ctx context.Context, form capabilities.ID) (view.Outcome, error) {
	return visitFor(ctx, a, func(b *mailboxActor) (view.Outcome, error) {
		m, err := b.state.FindFormID(form)
		if err != nil {
			return view.Outcome{}, err
		}
		return b.viewer().outcome(m.Form, false)
	})
}

// Answer answers a form that the agent was asked. An answer that is wrong in any field is refused with
// INVALID_ANSWER, and the form stays open.
func (a *Agent) Answer(ctx context.Context, ans Answer) (view.Outcome, error) {
	s, err := handOver(ctx, a, func(b *mailboxActor, reply replyTo[settlement]) {
		draft := mailbox.Reply{Which: string(ans.Which), Digest: ans.Digest, Values: ans.Values, Texts: ans.Texts}
		settle, home, err := b.draftAnswer(draft)
		if err == nil {
			err = b.seal(&settle)
		}
		b.send(home, settle, err, reply)
	})
	return a.finish(ctx, s, err)
}

// draftAnswer drafts an answer with the contract that the node has of the form.
func (b *mailboxActor) draftAnswer(r mailbox.Reply) (settle mailbox.SettleForm, home capabilities.ID, err error) {
	if m, found := b.state.FindForm(r.Which); found == nil && m.Form.IsOpen() {
		if r.Schema, err = b.contract(b.reg.id, m.Form, r.Values, r.Texts); err != nil {
			return settle, home, err
		}
	}
	now := b.node.now()
	settle, home, err = b.state.DraftAnswer(r, now, b.node.newID)
	if err == nil {
		err = b.state.CheckAnswer(b.node.accounts.limits(b.reg.id, now), settle, now)
	}
	return settle, home, err
}

// said is what came of saying something to a form: its outcome, or what is still to be said on another node.
type settlement struct {
	outcome view.Outcome
	remote  *remoteSettlement
}

// finish takes to its home what is to be settled on another node.
func (a *Agent) finish(ctx context.Context, s settlement, err error) (view.Outcome, error) {
	if err != nil || s.remote == nil {
		return s.outcome, err
	}
	return a.settleRemotely(ctx, *s.remote)
}

// seal puts the sealed form of secret values beside them.
func (b *mailboxActor) seal(c *mailbox.SettleForm) error {
	m, err := b.state.FindFormID(c.Form)
	if err != nil {
		return err
	}
	c.Sealed, err = b.node.secrets.SealFields(form.Secrets(m.Form.Fields), c.Values)
	return err
}

// send takes a settlement home, where it is decided.
func (b *mailboxActor) send(home capabilities.ID, c mailbox.SettleForm, err error, reply replyTo[settlement]) {
	if err != nil {
		b.answer(reply.durably(settlement{}, err))
		return
	}
	if home.Node != b.node.id {
		w, err := b.remoteSettlement(home, c)
		b.answer(reply.durably(settlement{remote: w}, err))
		return
	}
	b.node.registry.tell(home, visit{after: b.last, lost: reply.lost, run: func(h *mailboxActor) {
		_, err := h.decide(c)
		var outcome view.Outcome
		if err == nil {
			outcome, err = h.settled(c.Form, b.reg.id)
		}
		h.answer(reply.durably(settlement{outcome: outcome}, err))
	}})
}

// settled gives the outcome to who brought it about: its own values, without the home's names for people.
func (b *mailboxActor) settled(form, by capabilities.ID) (view.Outcome, error) {
	m, err := b.state.FindFormID(form)
	if err != nil {
		return view.Outcome{}, err
	}
	outcome, err := b.viewer().outcome(m.Form, by == b.reg.id)
	if by != b.reg.id {
		outcome.ByName = "SELF"
	}
	return outcome, err
}

// Decline says no to a form that the agent was asked.
func (a *Agent) Decline(ctx context.Context, w Which, reason string) (view.Outcome, error) {
	s, err := handOver(ctx, a, func(b *mailboxActor, reply replyTo[settlement]) {
		settle, home, err := b.state.DraftDecline(string(w), reason, b.node.newID)
		b.send(home, settle, err, reply)
	})
	return a.finish(ctx, s, err)
}

// Cancel takes back a form that the agent asked.
func (a *Agent) Cancel(ctx context.Context, w Which, reason string) (view.Outcome, error) {
	return visitFor(ctx, a, func(b *mailboxActor) (view.Outcome, error) {
		if _, err := b.decide(mailbox.CancelForm{Which: string(w), Reason: reason}); err != nil {
			return view.Outcome{}, err
		}
		m, err := b.state.FindForm(string(w))
		if err != nil {
			return view.Outcome{}, err
		}
		return b.viewer().outcome(m.Form, true)
	})
}

// Forward hands a form on to another agent that this one can reach. Whoever answers first settles it.
func (a *Agent) Forward(ctx context.Context, w Which, to string) error {
	abroad, err := handOver(ctx, a, func(b *mailboxActor, reply replyTo[bool]) {
		now := b.node.now()
		handover, home, err := b.state.DraftForward(string(w), to, now)
		if err == nil {
			err = b.state.CheckForward(b.node.accounts.limits(b.reg.id, now), handover.Form, now)
		}
		if err != nil || home.Node != b.node.id {
			b.answer(reply.durably(true, err))
			return
		}
		b.node.registry.tell(home, visit{after: b.last, lost: reply.lost, run: func(h *mailboxActor) {
			_, err := h.decide(handover)
			h.answer(reply.durably(false, err))
		}})
	})
	if err != nil || !abroad {
		return err
	}
	return a.queueForward(ctx, w, to)
}

// Resolve answers a request with what the agent has at a path. It refuses with NOT_A_REQUEST other forms.
func (a *Agent) Resolve(ctx context.Context, w Which, path string) (view.Outcome, error) {
	if err := a.checkRequest(ctx, w); err != nil {
		return view.Outcome{}, err
	}
	return a.Answer(ctx, Answer{Which: w, Texts: []form.Text{{Name: "value", Text: path}}})
}

// Reject says no to a request. It refuses with NOT_A_REQUEST other forms.
func (a *Agent) Reject(ctx context.Context, w Which, reason string) (view.Outcome, error) {
	if err := a.checkRequest(ctx, w); err != nil {
		return view.Outcome{}, err
	}
	return a.Decline(ctx, w, reason)
}

func (a *Agent) checkRequest(ctx context.Context, w Which) error {
	_, err := visitFor(ctx, a, func(b *mailboxActor) (struct{}, error) {
		return struct{}{}, b.state.CheckRequest(string(w))
	})
	return err
}
