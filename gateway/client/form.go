package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"parley"
	"parley/actors/view"
	"parley/gateway/mux"
)

// Form is a form to be sent.
type Form = parley.Form

// Field is one question of a form.
type Field = parley.Field

// Option is one choice of a field.
type Option = parley.Option

// Escalation lets another agent answer a form that is still open after a time.
type Escalation = parley.Escalation

// Delay is a time after a form was asked.
type Delay = parley.Delay

// Request asks for a capability in words. Its answer is a Ref, under the name "value".
type Request = parley.Request

// Asked is an accepted form or request, which is on the node's disk. Form is "" if nothing was sent because the name for the
// answer is bound already.
type Asked struct {
	Form        ID
	Promise     ID
	Number      uint64 // of the form in the asker's mailbox
	Unreachable bool   // the recipient's node cannot be reached now: the form goes there when it can

	Promised *view.Promised // the form for whose answer it waits; nil if it does not

	client  *Client
	outcome *Outcome // if it was settled already
	pending *pending // brings the outcome; nil: it is asked for
}

// asked returns the Asked of a node's response to a form or request.
func (c *Client) asked(v view.Asked, outcome *pending) *Asked {
	a := &Asked{Form: idOf(v.Form), Promise: idOf(v.Promise), Number: v.Number, Unreachable: v.Unreachable, Promised: v.Promised, client: c, pending: outcome}
	if v.Outcome != nil {
		raw, _ := json.Marshal(v.Outcome) // what was read can be written
		a.outcome = &Outcome{Outcome: *v.Outcome, Raw: raw}
	}
	return a
}

// Ask sends a form, once, and returns when it is accepted. The recipient may answer at any time from then on.
func (c *Client) Ask(ctx context.Context, f Form) (*Asked, error) {
	if f.Fields == nil {
		f.Fields = []Field{} // which is refused as what it is
	}
	var got view.Asked
	outcome, err := c.ask(ctx, "form", f, &got)
	if err != nil {
		return nil, err
	}
	return c.asked(got, outcome), nil
}

// ask asks by an operation, with a request that has a key, and decodes the response into out. The outcome of what is open
// comes to what it returns, unless that is nil.
func (c *Client) ask(ctx context.Context, operation string, in, out any) (outcome *pending, err error) {
	b, err := c.request(operation, in)
	if err != nil {
		return nil, err
	}
	got, err := c.perform(ctx, again{client: c, operation: operation, body: b, keyed: true, exchange: func(ctx context.Context, _ string, b []byte) (a answer, err error) {
		a, outcome, err = c.transport.ask(ctx, operation, b)
		return a, err
	}})
	if err != nil {
		return nil, err
	}
	return outcome, got.decode(operation, out)
}

// Request asks for a capability, once.
func (c *Client) Request(ctx context.Context, r Request) (*Asked, error) {
	var got view.Asked
	outcome, err := c.ask(ctx, "request", r, &got)
	if err != nil {
		return nil, err
	}
	return c.asked(got, outcome), nil
}

// Await is Client.Await for the form.
func (a *Asked) Await(ctx context.Context) (Outcome, error) {
	if a.outcome != nil && a.outcome.Status != Open {
		return *a.outcome, nil
	}
	if a.pending == nil {
		return a.client.Await(ctx, a.Form)
	}
	return take(ctx, a.client, a.pending, a.Form)
}

// take waits for the outcome that is on its way on the connection. If that is lost, it asks for the outcome.
func take(ctx context.Context, c *Client, p *pending, form ID) (Outcome, error) {
	defer p.claim()()
	select {
	case <-p.last:
	case <-ctx.Done():
		ends := again{client: c, operation: "await"}
		return Outcome{}, ends.over(ctx, &lost{sent: true, cause: ctx.Err()})
	}
	var l *lost
	err := p.lost
	if err == nil && p.outcome.status != http.StatusOK {
		err = refusal(p.outcome)
	}
	if p.lost != nil || errors.As(err, &l) {
		return c.Await(ctx, form)
	}
	if err != nil {
		return Outcome{}, err
	}
	var o Outcome
	err = p.outcome.decode("await", &o)
	return o, err
}

// The statuses of a form. All but Open, Answering and Voted are ends.
const (
	Open       = view.StatusOpen
	Answered   = view.StatusAnswered
	Cancelled  = view.StatusCancelled
	Declined   = view.StatusDeclined
	Expired    = view.StatusExpired
	Superseded = view.StatusSuperseded
	Answering  = view.StatusAnswering // an answer is on its way to a home that cannot be reached: the form is open until it arrives
	Voted      = view.StatusVoted     // an answer counts as a vote: the form is open until it has as many as it needs
)

// Outcome is the end of a form. A secret is in the clear for the asker, and masked for others.
type Outcome struct {
	view.Outcome

	Raw json.RawMessage `json:"-"` // the outcome as the node sent it
}

// UnmarshalJSON reads an outcome and keeps its text as Raw.
func (o *Outcome) UnmarshalJSON(b []byte) error {
	*o = Outcome{Raw: slices.Clone(b)}
	return o.Outcome.UnmarshalJSON(b)
}

// UnmarshalBody does the same with the body of a frame.
func (o *Outcome) UnmarshalBody(body []byte) error {
	type plain view.Outcome // without its own JSON, which is for masked values
	*o = Outcome{}
	text, err := mux.ToJSON(body)
	if err != nil {
		return err
	}
	if mux.Read(body, (*plain)(&o.Outcome)) != nil {
		return o.UnmarshalJSON(text)
	}
	o.Raw = text
	return nil
}

// Err returns nil for an answer, and for another end the error DECLINED, CANCELLED or EXPIRED.
func (o Outcome) Err() error {
	code := parley.Cancelled
	switch o.Status {
	case Answered:
		return nil
	case Declined:
		code = parley.Declined
	case Expired:
		code = parley.Expired
	case Open, Answering:
		return parley.Refuse(parley.Timeout, "form %s is %s", o.Form, o.Status)
	}
	if o.Note != "" {
		return parley.Refuse(code, "form %s was %s: %s", o.Form, o.Status, o.Note)
	}
	return parley.Refuse(code, "form %s was %s", o.Form, o.Status)
}

// Decode reads the answer's values into a struct or map, as json.Unmarshal does. It returns Err if there is no answer.
func (o Outcome) Decode(into any) error {
	if err := o.Err(); err != nil {
		return err
	}
	if o.Values.IsNull() {
		return parley.Refuse(parley.NotPermitted, "what %s was answered is not for this agent", o.Form)
	}
	text, err := json.Marshal(o.Values)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return unreadable("await", err)
	}
	return nil
}
