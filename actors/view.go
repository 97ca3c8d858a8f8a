package actors

import (
	"parley/actors/keys"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// view shows a mailbox to its agent: with the agent's own names for others.
type viewer struct {
	state   *mailbox.State
	secrets *keys.SecretBox
	waiting map[*mailbox.Message]bool // what has not arrived, once it was asked for
}

func (b *mailboxActor) viewer() *viewer {
	return &viewer{state: b.state, secrets: b.node.secrets}
}

func (v *viewer) wasDelivered(m *mailbox.Message) bool {
	if v.waiting == nil {
		v.waiting = v.state.Undelivered()
	}
	return !v.waiting[m]
}

func (v *viewer) envelope(m *mailbox.Message) (view.Message, error) {
	e := view.Message{
		Number: m.Number, Changed: m.Changed, Type: m.Type(), MessageID: m.ID(), Date: m.Date(), Dismissed: m.Dismissed,
		From: m.From(), FromName: v.state.NameOf(m.From()), To: m.To(), ToName: v.state.NameOf(m.To()),
		Sent: v.state.Sent(m), Received: v.state.Received(m), ReplyTo: m.ReplyTo(),
	}
	if !e.ReplyTo.IsZero() { // most are no reply
		if parent, err := v.state.FindID(e.ReplyTo); err == nil {
			e.ReplyNumber = &parent.Number
		}
	}
	e.Delivered = e.Sent && m.Refused == "" && v.wasDelivered(m)
	if m.Posted != nil {
		e.Refused = m.Refused
		v.message(&e, m.Posted)
		return e, nil
	}
	return e, v.form(&e, m.Form)
}

func (v *viewer) message(e *view.Message, p *events.MessagePosted) {
	e.Text, e.Queued, e.Interrupted = mailbox.ShowText(p.Text), v.state.IsPrompt(e.Number), v.state.WasInterrupted(e.Number)
	for _, s := range p.Text {
		if s.Edge == "" {
			continue
		}
		if e.Edges == nil {
			e.Edges = map[string]capabilities.Value{}
		}
		e.Edges[s.Edge] = s.Value
	}
}

func (v *viewer) form(e *view.Message, f *mailbox.Form) error {
	e.Title, e.Description, e.Fields = f.Title, f.Description, f.Fields
	e.PromiseID, e.ResolverID = f.Promise, f.Resolver
	e.Deadline, e.NoForward, e.Origin = f.Deadline, f.NoForward, f.AskedIn()
	e.Forwarder, e.ForwardName = f.Forwarder, v.state.NameOf(f.Forwarder)
	for _, id := range f.Chain {
		e.Chain = append(e.Chain, view.Party{ID: id, Name: v.state.NameOf(id)})
	}
	for _, h := range f.QueuedForwards {
		e.ForwardedTo = append(e.ForwardedTo, view.Party{ID: h.To, Name: v.state.NameOf(h.To)})
	}
	for _, h := range f.Forwarded {
		e.ForwardedTo = append(e.ForwardedTo, view.Party{ID: h.To, Name: v.state.NameOf(h.To)})
	}
	e.Answering, e.Refused, e.Digest = f.QueuedAnswer != nil, f.Refused, f.Digest()
	e.AnswerNeeded = f.IsOpen() && e.Received && !e.Answering
	if f.IsOpen() {
		return nil
	}
	outcome, err := v.outcome(f, false)
	e.Outcome = &outcome
	return err
}

// outcome gives how a form ended. With reveal, its asker sees what is sealed.
func (v *viewer) outcome(f *mailbox.Form, reveal bool) (view.Outcome, error) {
	o := view.Outcome{Status: view.StatusOpen, Form: f.ID, Promise: f.Promise}
	if c := f.Ended; c != nil {
		o.Status, o.By, o.At, o.Note, o.Settlement = view.FormStatus(c.Reason), c.By, c.Date, c.Note, c.Answer
		o.ByName = v.state.NameOf(c.By)
		return o, nil
	}
	a := f.Answered
	if a == nil {
		return o, nil
	}
	o.Status, o.By, o.ByName, o.At, o.Settlement = view.StatusAnswered, a.By, v.state.NameOf(a.By), a.Date, a.Answer
	if f.From == v.state.ID {
		o.Digest = f.Digest()
		o.Allowed = v.state.ApprovalResult(f, o.Digest).Allowed
	}
	if a.Withheld {
		return o, nil
	}
	o.Values = a.Values
	for _, field := range f.Fields {
		o.Order = append(o.Order, field.Name)
	}
	if !reveal || f.From != v.state.ID {
		return o, nil
	}
	opened, err := v.secrets.Open(a.Values)
	o.Values = opened
	return o, err
}

// sizeOf returns the bytes of text in a message, which is less than its JSON has.
func sizeOf(m *view.Message) int { return len(m.Text) + len(m.Title) + len(m.Description) }
