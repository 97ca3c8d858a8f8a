package actors

import (
	"context"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// AwaitState blocks until a message of the agent has come to a state: at once if it has come further. The status of the
// outcome is the state that it is in. A message that its recipient refused, or a form that ended before, has an outcome of its
// own. It may be called at any time, and as often as wanted.
func (m Mail) AwaitState(ctx context.Context, ref capabilities.FormRef, until events.MessageState) (view.Outcome, error) {
	if until.Rank() == 0 && until != events.Delivered {
		return view.Outcome{}, parley.Refuse(parley.InvalidArgument, "%s is no state of a message", parley.Quoted(string(until), 40)).
			WithHint("the states are delivered, offered, shown and handled; a form may be awaited until it is asked about")
	}
	changed := make(chan struct{}, 1)
	defer m.agent.node.changed.drop(m.agent.node.changed.wait(m.agent.id, changed))
	for {
		o, err := read(ctx, m.agent, queryReached{ref, until})
		if err != nil || o.Status != view.StatusOpen {
			return o, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return o, errEnded(ctx, m.agent.node)
		case <-m.agent.node.life.Done():
			return o, errClosing()
		}
	}
}

// queryReached returns how far a message has come; with the status open if that is not far enough.
type queryReached struct {
	ref   capabilities.FormRef
	until events.MessageState
}

func (m queryReached) handle(b *mailboxActor) (view.Outcome, error) {
	b.recordAcksToShow()
	msg, err := b.state.Mail.Find(m.ref)
	if err != nil {
		return view.Outcome{}, err
	}
	v := b.viewer()
	e, err := v.envelope(msg)
	if err != nil {
		return view.Outcome{}, err
	}
	o := view.Outcome{Status: view.StatusOpen, Form: e.MessageID, Promise: e.PromiseID}
	switch {
	case e.State != "" && e.State.Rank() >= m.until.Rank():
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
	}
	return o, nil
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
