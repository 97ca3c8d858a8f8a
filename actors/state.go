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
	return awaitChange(ctx, m.agent, queryReached{ref, until})
}

// AwaitQuestion is Agent.Await for a form that the agent asked, which also ends when one who may answer it has asked back: with the
// status asked and the number of the message, which is higher than after. A question counts until the agent has replied in its thread.
func (m Mail) AwaitQuestion(ctx context.Context, ref capabilities.FormRef, after uint64) (view.Outcome, error) {
	return awaitChange(ctx, m.agent, queryQuestion{ref, after, m.agent.reveals()})
}

// awaitChange looks at the agent's mailbox at each change, until the outcome is not open.
func awaitChange(ctx context.Context, a *Agent, look request[view.Outcome]) (view.Outcome, error) {
	changed := make(chan struct{}, 1)
	defer a.node.changed.drop(a.node.changed.wait(a.id, changed))
	for {
		o, err := read(ctx, a, look)
		if err != nil || o.Status != view.StatusOpen {
			return o, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return o, errEnded(ctx, a.node)
		case <-a.node.life.Done():
			return o, errClosing()
		}
	}
}

// queryQuestion returns the outcome of a form, or the first question about it after a message.
type queryQuestion struct {
	form   capabilities.FormRef
	after  uint64
	reveal bool
}

func (q queryQuestion) handle(b *mailboxActor) (view.Outcome, error) {
	o, err := awaitForm{q.form, nil, q.reveal}.handle(b)
	if err != nil || o.Status != view.StatusOpen {
		return o, err
	}
	msg, err := b.state.Mail.FindForm(q.form)
	if err != nil {
		return o, err
	}
	for _, n := range msg.Form.Questions() {
		if n <= q.after {
			continue
		}
		asked, err := b.state.Mail.Find(capabilities.FormNumber(n))
		if err != nil {
			return o, err
		}
		e, err := b.viewer().envelope(asked)
		if err != nil {
			return o, err
		}
		o.Status, o.By, o.ByName, o.At, o.Note, o.Message = view.StatusAsked, e.From, e.FromName, e.Date, e.Text, &n
		break
	}
	return o, nil
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
