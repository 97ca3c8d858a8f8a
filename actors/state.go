package actors

import (
	"cmp"
	"context"
	"slices"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// AwaitState blocks until a message of the agent has come to a state: at once if it has come further. The status of the
// outcome is the state that it is in. A message that its recipient refused, or a form that ended before, has an outcome of its
// own. It refuses with AGENT_ARCHIVED a wait for what will not be, because a recipient is archived. It may be called at any time, and as often as wanted.
func (m Mail) AwaitState(ctx context.Context, ref capabilities.FormRef, until events.MessageState, all bool) (view.Outcome, error) {
	if until.Rank() == 0 && until != events.Delivered {
		return view.Outcome{}, parley.Refuse(parley.InvalidArgument, "%s is no state of a message", parley.Quoted(string(until), 40)).
			WithHint("the states are delivered, offered, shown and handled; a form may be awaited until it is asked about")
	}
	first, err := read(ctx, m.agent, queryReached{ref, until, all})
	if err != nil || first.Status != view.StatusOpen {
		return first.Outcome, err
	}
	node := m.agent.node
	touched := make(chan none, 1)
	defer node.touched.drop(node.touched.wait(messageKey{m.agent.id, first.number}, touched))
	changed := make(chan none, 1)
	var any *waiter[capabilities.ID, none] // an arrival is no change of the message, so until then each change of the mailbox counts
	defer func() {
		if any != nil {
			node.changed.drop(any)
		}
	}()
	for {
		now, err := read(ctx, m.agent, queryReached{ref, until, all})
		switch {
		case err != nil || now.Status != view.StatusOpen:
			return now.Outcome, err
		case !now.arrived && any == nil:
			any = node.changed.wait(m.agent.id, changed)
			continue // for what changed meanwhile
		case now.arrived && any != nil:
			node.changed.drop(any)
			any = nil
		}
		select {
		case <-touched:
		case <-changed:
		case <-ctx.Done():
			return now.Outcome, errEnded(ctx, node)
		case <-node.life.Done():
			return now.Outcome, errClosing()
		}
	}
}

// messageKey identifies a message in one mailbox.
type messageKey struct {
	mailbox capabilities.ID
	number  uint64
}

// reached says how far a message has come.
type reached struct {
	view.Outcome
	number  uint64
	arrived bool // or refused
}

// queryReached returns how far a message has come; with the status open if that is not far enough.
type queryReached struct {
	ref   capabilities.FormRef
	until events.MessageState
	all   bool // with all members of a group, whoever has replied for it
}

func (m queryReached) handle(b *mailboxActor) (reached, error) {
	b.recordAcksToShow()
	msg, err := b.state.Mail.Find(m.ref)
	if err != nil {
		return reached{}, err
	}
	v := b.viewer()
	e, err := v.envelope(msg)
	if err != nil {
		return reached{}, err
	}
	o := view.Outcome{Status: view.StatusOpen, Form: e.MessageID, Promise: e.PromiseID}
	cameTo := e.State != "" && e.State.Rank() >= m.until.Rank()
	if m.all && cameTo && m.until != events.Delivered && e.Sent {
		if cameTo, err = mailbox.CameToAll(b.state, msg, m.until); err != nil {
			return reached{}, err
		}
	}
	switch {
	case cameTo:
		o.Status, o.By, o.ByName = view.StatusOf(e.State), e.To, e.ToName
		for _, r := range msg.Receipts {
			if r.State == e.State {
				shown := v.receipt(r)
				o.By, o.ByName, o.At, o.Note = shown.Reader, shown.ReaderName, shown.At, shown.How
			}
		}
	case e.Type == "message" && e.Refused != "":
		o.Status, o.By, o.ByName, o.Note = view.StatusDeclined, e.To, e.ToName, e.Refused
	case e.Outcome != nil:
		o = *e.Outcome
	default:
		if i := slices.IndexFunc(e.Receipts, func(r view.Receipt) bool { return r.Absent != nil && r.Absent.Archived }); i >= 0 {
			return reached{}, parley.Refuse(parley.AgentArchived, "%s is archived: the message will not be %s", parley.Quoted(cmp.Or(e.Receipts[i].ByName, view.ShortID(e.Receipts[i].By)), 80), m.until)
		}
	}
	return reached{o, msg.Number, e.State != "" || e.Refused != ""}, nil
}

// notifyTouched notifies the waiters for messages that the last so many events have changed, once those are durable.
func (b *mailboxActor) notifyTouched(last int) {
	if b.node.touched.count.Load() == 0 {
		return
	}
	numbers, known := b.state.Mail.Index.Touched(b.state.Version - uint64(last))
	notify := func(key messageKey) {
		if b.node.touched.has(key) {
			b.release(func(error) { b.node.touched.notify(key, none{}) })
		}
	}
	if !known {
		for _, key := range b.node.touched.keys(func(k messageKey) bool { return k.mailbox == b.reg.id }) {
			notify(key)
		}
		return
	}
	for _, n := range numbers {
		notify(messageKey{b.reg.id, n})
	}
}

// Acknowledge records that the agent has taken note of a message that it received. Its sender is told.
func (m Mail) Acknowledge(ctx context.Context, ref capabilities.FormRef) error {
	_, err := call(ctx, m.agent, acknowledgeMessage{ref})
	return err
}

type acknowledgeMessage struct{ ref capabilities.FormRef }

func (m acknowledgeMessage) handle(b *mailboxActor) (none, error) {
	msg, err := b.state.Mail.Find(m.ref)
	if err != nil {
		return none{}, err
	}
	if msg.Form != nil {
		return none{}, parley.Refuse(parley.InvalidArgument, "message %d is a %s: answer or decline it", msg.Number, msg.Type())
	}
	_, err = b.decide(mailbox.HandleMessages{Reader: b.reg.id, Numbers: []uint64{msg.Number}, How: events.WasAcknowledged})
	return none{}, err
}
