package actors

import (
	"context"

	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/form"
)

// Ask sends a form, and returns when it is durable; Await waits for the answer. A form that was asked before, by its
// Key or Name, is not sent again: Ask returns its present state.
func (a *Agent) Ask(ctx context.Context, ask Ask) (view.Asked, error) {
	return requestOf(a, ctx, ask.command())
}

func (ask Ask) command() mailbox.RequestForm {
	return mailbox.RequestForm{
		To: ask.To, Title: ask.Title, Description: ask.Description, Fields: ask.Fields,
		Deadline: ask.Deadline, NoForward: ask.NoForward, Key: ask.Key, Result: ask.Name, Origin: ask.Origin,
	}
}

// Send asks for a capability in words. Its answer is a record with that as "value".
func (rs Requests) Send(ctx context.Context, r Request) (view.Asked, error) {
	return requestOf(rs.agent, ctx, r.command())
}

func (r Request) command() mailbox.RequestForm {
	return mailbox.RequestForm{
		To: r.To, Kind: events.Request, Description: r.Text,
		Deadline: r.Deadline, NoForward: r.NoForward, Key: r.Key, Result: r.Name,
	}
}

func requestOf(a *Agent, ctx context.Context, ask mailbox.RequestForm) (view.Asked, error) {
	sent, err := call(ctx, a, requestForm{RequestForm: ask, reveal: a.reveals()})
	sent.result.Unreachable = anyUnreachable(a.node, ctx, sent.waits)
	return sent.result, err
}

// requestForm sends a form, or finds one that was sent before. With reveal, the outcome of that is unsealed. If the form is
// open, it adds the waiter for its outcome, if there is one.
type requestForm struct {
	mailbox.RequestForm
	reveal  bool
	waiting *outcomes
}

func (m requestForm) handle(b *mailboxActor) (pending[view.Asked], error) {
	if known, ok, err := m.FindExisting(b.state); err != nil {
		return pending[view.Asked]{}, err
	} else if ok {
		asked, err := knownAsk(b, m.RequestForm, known, m.reveal)
		if err == nil && asked.Outcome == nil {
			b.addWaiter(asked.Form, m.waiting)
		}
		return pending[view.Asked]{result: asked}, err
	}
	if m.Kind == events.PlainForm {
		var err error
		if m.Schema, err = compileFields(b.node, b.reg.id, m.Fields); err != nil {
			return pending[view.Asked]{}, err
		}
	}
	evs, err := b.decide(m.RequestForm)
	if err != nil {
		return pending[view.Asked]{}, err
	}
	e := evs[0].(*events.FormRequested)
	b.addWaiter(e.ID, m.waiting)
	return pending[view.Asked]{view.Asked{Form: e.ID, Promise: e.Promise, Number: e.Number}, nodesTo(b, e.To)}, nil
}

// addWaiter adds a waiter for the outcome of a form that is open. Nil is none.
func (b *mailboxActor) addWaiter(form capabilities.ID, w *outcomes) {
	if w != nil {
		b.node.ended.add(formKey{b.reg.id, form}, w)
	}
}

// pending is an accepted message or form, and the other nodes that have to be reachable for it to arrive.
type pending[T any] struct {
	result T
	waits  []capabilities.NodeID
}

func nodesTo(b *mailboxActor, to capabilities.ID) []capabilities.NodeID {
	if to.Node == b.node.id {
		return nil
	}
	return append(b.state.HeldFor(to), to.Node)
}

// anyUnreachable reports whether one of some other nodes cannot be reached now.
func anyUnreachable(n *Node, ctx context.Context, nodes []capabilities.NodeID) bool {
	for _, id := range nodes {
		if id != n.id && !n.peers.Peer(id).InReach(ctx) {
			return true
		}
	}
	return false
}

// knownAsk returns the result of an earlier request for the same form.
func knownAsk(b *mailboxActor, ask mailbox.RequestForm, k mailbox.Existing, reveal bool) (view.Asked, error) {
	if k.Message == nil {
		return boundOutcome(b, ask, k.Value, reveal)
	}
	f := k.Message.Form
	asked := view.Asked{Form: f.ID, Promise: f.Promise, Number: k.Message.Number}
	if f.IsOpen() {
		return asked, nil
	}
	outcome, err := b.outcomeOf(f, reveal)
	asked.Outcome = &outcome
	return asked, err
}

// boundOutcome returns the value that the request's name already has, as its answer.
func boundOutcome(b *mailboxActor, ask mailbox.RequestForm, v capabilities.Value, reveal bool) (view.Asked, error) {
	if reveal {
		var err error
		if v, err = b.node.secrets.Open(v); err != nil {
			return view.Asked{}, err
		}
	}
	outcome := view.Outcome{Status: view.StatusAnswered, Values: v}
	if _, isRecord := v.AsRecord(); !isRecord || ask.Kind == events.Request {
		outcome.Values = capabilities.Record(map[string]capabilities.Value{"value": v})
		outcome.Order = []string{"value"}
	}
	for _, f := range ask.Fields {
		outcome.Order = append(outcome.Order, f.Name)
	}
	return view.Asked{Outcome: &outcome}, nil
}

// Await blocks until a form that the agent asked, or was asked, has ended. It may be called at any time, and as often as
// wanted. Secret values are unsealed only for the asker, and for a token only if its scopes include that.
func (a *Agent) Await(ctx context.Context, ref capabilities.FormRef) (view.Outcome, error) {
	ended := make(chan result[view.Outcome], 1)
	waiting := &outcomes{ch: ended}
	defer a.node.ended.drop(waiting)
	first, err := call(ctx, a, awaitForm{ref, waiting, a.reveals()})
	if err != nil || first.Status != view.StatusOpen {
		return first, err
	}
	select {
	case r := <-ended:
		if r.err != nil || a.reveals() {
			return r.value, r.err
		}
		return call(ctx, a, queryOutcome{form: first.Form})
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

// awaitForm returns the outcome of a form. If the form is open, it adds the waiter for the outcome.
type awaitForm struct {
	form    capabilities.FormRef
	waiting *outcomes
	reveal  bool
}

func (m awaitForm) handle(b *mailboxActor) (view.Outcome, error) {
	msg, err := b.state.Mail.FindForm(m.form)
	if err != nil {
		return view.Outcome{}, err
	}
	if !msg.Form.IsOpen() {
		return b.outcomeOf(msg.Form, m.reveal)
	}
	b.addWaiter(msg.ID(), m.waiting)
	return view.Outcome{Status: view.StatusOpen, Form: msg.ID(), Promise: msg.Form.Promise}, nil
}

// queryOutcome returns the outcome of a form. With reveal, the asker's secrets are unsealed.
type queryOutcome struct {
	form   capabilities.ID
	reveal bool
}

func (m queryOutcome) handle(b *mailboxActor) (view.Outcome, error) {
	msg, err := b.state.Mail.FindFormID(m.form)
	if err != nil {
		return view.Outcome{}, err
	}
	return b.outcomeOf(msg.Form, m.reveal)
}

// Answer answers a form that the agent was asked. It refuses an answer with a wrong field with INVALID_ANSWER, and the
// form stays open.
func (a *Agent) Answer(ctx context.Context, ans Answer) (view.Outcome, error) {
	draft := mailbox.Reply{Form: ans.Form, Digest: ans.Digest, Revision: ans.Revision, Values: ans.Values, Texts: ans.Texts}
	return settle(a, ctx, answerForm{draft})
}

// Decline declines a form that the agent was asked.
func (a *Agent) Decline(ctx context.Context, ref capabilities.FormRef, reason string) (view.Outcome, error) {
	return settle(a, ctx, declineForm{ref, reason})
}

// settle settles a form at its home.
func settle(a *Agent, ctx context.Context, r relay[settlement]) (view.Outcome, error) {
	s, err := callRelay(ctx, a, r)
	if err != nil || s.remote == nil {
		return s.outcome, err
	}
	return s.remote.send(ctx, a)
}

// settlement is the outcome of a form, or what is still to be settled on another node.
type settlement struct {
	outcome view.Outcome
	remote  *remoteSettlement
}

// answerForm checks an answer and sends it to the form's home.
type answerForm struct{ draft mailbox.Reply }

func (m answerForm) handle(b *mailboxActor, reply replyTo[settlement]) {
	settle, home, err := draftAnswer(b, m.draft)
	if err == nil {
		err = b.seal(&settle)
	}
	sendHome(b, home, settle, err, reply)
}

// declineForm sends a refusal to answer to the form's home.
type declineForm struct {
	form   capabilities.FormRef
	reason string
}

func (m declineForm) handle(b *mailboxActor, reply replyTo[settlement]) {
	var home capabilities.ID
	settle, err := recalled(b, func() (s mailbox.SettleForm, err error) {
		s, home, err = b.state.DraftDecline(m.form, m.reason, b.node.newID)
		return s, err
	})
	sendHome(b, home, settle, err, reply)
}

// draftAnswer drafts an answer with the node's compiled schema of the form.
func draftAnswer(b *mailboxActor, r mailbox.Reply) (settle mailbox.SettleForm, home capabilities.ID, err error) {
	m, found := recalled(b, func() (*mailbox.Message, error) { return b.state.Mail.FindForm(r.Form) })
	if found == nil && m.Form.IsOpen() {
		if r.Schema, err = b.schema(b.reg.id, m.Form, r.Values, r.Texts); err != nil {
			return settle, home, err
		}
	}
	now := b.node.now()
	settle, err = recalled(b, func() (s mailbox.SettleForm, err error) {
		s, home, err = b.state.DraftAnswer(r, now, b.node.newID)
		return s, err
	})
	if err == nil {
		err = b.state.CheckAnswer(b.node.accounts.limits(b.reg.id, now), settle, now)
	}
	return settle, home, err
}

// seal adds the sealed form of secret values.
func (b *mailboxActor) seal(c *mailbox.SettleForm) error {
	m, err := b.formOf(c.Form)
	if err != nil {
		return err
	}
	c.Sealed, err = b.node.secrets.SealFields(form.Secrets(m.Form.Fields), c.Values)
	return err
}

// sendHome sends a settlement to the form's home, which decides on it. A home on another node is left to the caller.
func sendHome(b *mailboxActor, home capabilities.ID, c mailbox.SettleForm, err error, reply replyTo[settlement]) {
	switch {
	case err != nil:
		reply.release(b, settlement{}, err)
	case home.Node != b.node.id:
		remote, err := newRemoteSettlement(b, home, c)
		reply.release(b, settlement{remote: remote}, err)
	default:
		b.node.registry.tell(home, b.last, &settleForm{c, b.reg.id, reply})
	}
}

// settleForm settles a form at its home, on behalf of an agent of this node.
type settleForm struct {
	command mailbox.SettleForm
	by      capabilities.ID
	reply   replyTo[settlement]
}

func (m *settleForm) handle(b *mailboxActor) {
	_, err := b.decide(m.command)
	var outcome view.Outcome
	if err == nil {
		outcome, err = settledOutcome(b, m.command.Form, m.by)
	}
	m.reply.release(b, settlement{outcome: outcome}, err)
}

func (m *settleForm) fail(err error) { m.reply.fail(err) }

// settledOutcome returns the outcome to the agent that settled the form: with its own values, and without the home's names.
func settledOutcome(b *mailboxActor, form, by capabilities.ID) (view.Outcome, error) {
	outcome, err := queryOutcome{form, by == b.reg.id}.handle(b)
	if err == nil && by != b.reg.id {
		outcome.ByName = "SELF"
	}
	return outcome, err
}

// Cancel cancels a form that the agent asked.
func (a *Agent) Cancel(ctx context.Context, ref capabilities.FormRef, reason string) (view.Outcome, error) {
	return call(ctx, a, cancelForm{mailbox.CancelForm{Form: ref, Reason: reason}})
}

type cancelForm struct{ command mailbox.CancelForm }

func (m cancelForm) handle(b *mailboxActor) (view.Outcome, error) {
	if _, err := b.decide(m.command); err != nil {
		return view.Outcome{}, err
	}
	msg, err := b.state.Mail.FindForm(m.command.Form)
	if err != nil {
		return view.Outcome{}, err
	}
	return b.outcomeOf(msg.Form, true)
}

// Amend corrects the question of an open form that the agent asked. Nil parts stay as they are. Answers to an earlier
// revision are refused. It returns the form as it is now.
func (a *Agent) Amend(ctx context.Context, m Amendment) (view.Message, error) {
	return call(ctx, a, amendForm{mailbox.AmendForm{
		Form: m.Form, Title: m.Title, Description: m.Description, Fields: m.Fields, Note: m.Note,
	}})
}

type amendForm struct{ mailbox.AmendForm }

func (m amendForm) handle(b *mailboxActor) (view.Message, error) {
	if m.Fields != nil {
		var err error
		if m.Schema, err = compileFields(b.node, b.reg.id, m.Fields); err != nil {
			return view.Message{}, err
		}
	}
	if _, err := b.decide(m.AmendForm); err != nil {
		return view.Message{}, err
	}
	msg, err := b.state.Mail.FindForm(m.Form)
	if err != nil {
		return view.Message{}, err
	}
	return b.viewer().envelope(msg)
}

// Forward forwards a form to another agent that this one can reach. The first answer settles it.
func (a *Agent) Forward(ctx context.Context, ref capabilities.FormRef, to string) error {
	remote, err := callRelay(ctx, a, forwardForm{ref, to})
	if err != nil || !remote {
		return err
	}
	return sendForward(ctx, a, ref, to)
}

// forwardForm forwards a form at its home. Its result reports whether the home is on another node: then nothing was done.
type forwardForm struct {
	form capabilities.FormRef
	to   string
}

func (m forwardForm) handle(b *mailboxActor, reply replyTo[bool]) {
	now := b.node.now()
	var home capabilities.ID
	forward, err := recalled(b, func() (f mailbox.ForwardForm, err error) {
		f, home, err = b.state.DraftForward(m.form, m.to, now)
		return f, err
	})
	if err == nil {
		err = b.state.CheckForward(b.node.accounts.limits(b.reg.id, now), forward.Form, now)
	}
	if err != nil || home.Node != b.node.id {
		reply.release(b, true, err)
		return
	}
	b.node.registry.tell(home, b.last, &forwardAtHome{forward, reply})
}

// forwardAtHome has a form's home decide on a forward.
type forwardAtHome struct {
	command mailbox.ForwardForm
	reply   replyTo[bool]
}

func (m *forwardAtHome) handle(b *mailboxActor) {
	_, err := b.decide(m.command)
	m.reply.release(b, false, err)
}

func (m *forwardAtHome) fail(err error) { m.reply.fail(err) }

// Resolve answers a request with the agent's value at a path. It refuses other forms with NOT_A_REQUEST.
func (rs Requests) Resolve(ctx context.Context, ref capabilities.FormRef, path string) (view.Outcome, error) {
	if _, err := call(ctx, rs.agent, checkRequest{ref}); err != nil {
		return view.Outcome{}, err
	}
	return rs.agent.Answer(ctx, Answer{Form: ref, Texts: []events.FieldText{{Name: "value", Text: path}}})
}

// Reject declines a request. It refuses other forms with NOT_A_REQUEST.
func (rs Requests) Reject(ctx context.Context, ref capabilities.FormRef, reason string) (view.Outcome, error) {
	if _, err := call(ctx, rs.agent, checkRequest{ref}); err != nil {
		return view.Outcome{}, err
	}
	return rs.agent.Decline(ctx, ref, reason)
}

// checkRequest refuses a form that is not a request.
type checkRequest struct{ form capabilities.FormRef }

func (m checkRequest) handle(b *mailboxActor) (none, error) {
	return none{}, b.state.Mail.CheckRequest(m.form)
}

// Ask is a form to be sent. To is a path of the asker's names, or the ID or locator of an agent that it
// holds. The zero value of everything but To, Description and Fields is a good default.
type Ask struct {
	To          string
	Description string
	Title       string
	Fields      []events.Field
	Name        string            // the answer is bound to this name; if it is bound, nothing is sent
	Key         string            // idempotency key: the same key is the same form
	Deadline    capabilities.Time // the form expires at this time
	NoForward   bool
	Origin      *events.Origin // of a form asked in a dialect
}

// Request asks for a capability in words.
type Request struct {
	To        string
	Text      string
	Name      string // the capability is bound to this name
	Key       string
	Deadline  capabilities.Time
	NoForward bool
}

// Answer is an answer to a form. Values are typed; a string for a capability field is a path of the answerer's names.
// Texts are read by the types of their fields, as on a command line. A field is in one of the two. Digest, if it is
// not "", is the digest of the call that was shown: an approval of another call is refused. Revision, if it is not 0, is
// that of the question that was shown: an answer to another one is refused.
type Answer struct {
	Form     capabilities.FormRef
	Digest   string
	Revision uint64
	Values   map[string]capabilities.Value
	Texts    []events.FieldText
}

// Amendment corrects the question of a form. Nil parts stay as they are.
type Amendment struct {
	Form        capabilities.FormRef
	Title       *string
	Description *string
	Fields      []events.Field
	Note        string // why
}

// Requests are the forms by which an agent asks others for capabilities, and others ask it.
type Requests struct{ agent *Agent }

// Requests returns the requests for capabilities that the agent sends and settles.
func (a *Agent) Requests() Requests { return Requests{a} }
