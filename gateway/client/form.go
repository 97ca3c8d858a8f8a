package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"parley"
	"parley/actors/view"
	"parley/events"
	"parley/gateway/mux"
)

// Form is a form to be sent. The zero values of all but To, Description and Fields are good defaults.
type Form struct {
	To          string    `json:"recipient"` // a path of the asker's names, as HOST, or the ID or locator of an agent that it holds
	Description string    `json:"description"`
	Title       string    `json:"title,omitempty"`
	Fields      []Field   `json:"fields"`
	Name        string    `json:"name,omitempty"`    // the answer is bound to this name; if it is bound, nothing is sent
	Key         string    `json:"key,omitempty"`     // idempotency key, of 255 bytes at most: the same one is the same form
	Deadline    time.Time `json:"deadline,omitzero"` // it expires then
	NoForward   bool      `json:"noForward,omitempty"`

	Remind   []Delay      `json:"remind,omitempty"` // when who may answer is reminded, after it was asked
	Escalate []Escalation `json:"escalate,omitempty"`
	Need     uint32       `json:"need,omitempty"`   // so many hosts have to answer; another node counts as one; 0 is 1
	Veto     *bool        `json:"veto,omitempty"`   // of a form that needs several: one decline ends it; nil is true
	NoSelf   bool         `json:"noSelf,omitempty"` // answers by agents of the asker's own host are refused
}

// Delay is a time after a form was asked.
type Delay time.Duration

// MarshalText writes the delay as in "1h0m0s".
func (d Delay) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads a delay as in "1h".
func (d *Delay) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	*d = Delay(parsed)
	return err
}

// Escalation lets another agent answer a form that is still open after a time.
type Escalation struct {
	After Delay  `json:"after"`
	To    string `json:"to"` // as in Form
}

// Field is one question of a form. Type is one of those that docs/forms.md lists, such as text, select or date. Pattern is a
// JSON Schema (2020-12) for the answer's JSON form.
type Field struct {
	Name        string          `json:"name"`
	Label       string          `json:"label,omitempty"`
	Type        string          `json:"type,omitempty"` // "" is text, or what the pattern allows
	Required    bool            `json:"required,omitempty"`
	Default     any             `json:"default,omitempty"`
	Placeholder string          `json:"placeholder,omitempty"`
	Help        string          `json:"help,omitempty"`
	Options     []Option        `json:"options,omitempty"`
	Example     any             `json:"example,omitempty"`
	Pattern     json.RawMessage `json:"pattern,omitempty"`
}

// Option is one choice of a field. An empty Label shows the value.
type Option = events.Option

// Request asks for a capability in words. Its answer is a Ref, under the name "value".
type Request struct {
	To        string    `json:"recipient"`
	Text      string    `json:"text"`
	Name      string    `json:"name,omitempty"` // what is given is bound to this name
	Key       string    `json:"key,omitempty"`
	Deadline  time.Time `json:"deadline,omitzero"`
	NoForward bool      `json:"noForward,omitempty"`
}

// Asked is an accepted form or request, which is on the node's disk. Form is "" if nothing was sent because the name for the
// answer is bound already.
type Asked struct {
	Form        ID
	Promise     ID
	Number      uint64 // of the form in the asker's mailbox
	Unreachable bool   // the recipient's node cannot be reached now: the form goes there when it can

	client  *Client
	outcome *Outcome // if it was settled already
	pending *pending // brings the outcome; nil: it is asked for
}

// accepted is the node's response to a form or request.
type accepted struct {
	Form        ID       `json:"form,omitempty"`
	Promise     ID       `json:"promise,omitempty"`
	Number      uint64   `json:"number"`
	Outcome     *Outcome `json:"outcome,omitempty"`
	Unreachable bool     `json:"unreachable,omitempty"`
}

// by returns the Asked of a client.
func (a accepted) by(c *Client) *Asked {
	return &Asked{Form: a.Form, Promise: a.Promise, Number: a.Number, Unreachable: a.Unreachable, client: c, outcome: a.Outcome}
}

// Ask sends a form, once, and returns when it is accepted. The recipient may answer at any time from then on.
func (c *Client) Ask(ctx context.Context, f Form) (*Asked, error) {
	if f.Key == "" {
		f.Key = NewKey()
	}
	if f.Fields == nil {
		f.Fields = []Field{} // which is refused as what it is
	}
	var got accepted
	outcome, err := c.ask(ctx, "form", f, &got)
	if err != nil {
		return nil, err
	}
	asked := got.by(c)
	asked.pending = outcome
	return asked, nil
}

// ask asks by an operation, with a request that has a key, and decodes the response into out. The outcome of what is open
// comes to what it returns, unless that is nil.
func (c *Client) ask(ctx context.Context, operation string, in, out any) (outcome *pending, err error) {
	b, err := c.request(in)
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
	if r.Key == "" {
		r.Key = NewKey()
	}
	var got accepted
	outcome, err := c.ask(ctx, "request", r, &got)
	if err != nil {
		return nil, err
	}
	asked := got.by(c)
	asked.pending = outcome
	return asked, nil
}

// Await is Client.Await for the form.
func (a *Asked) Await(ctx context.Context) (Outcome, error) {
	if a.outcome != nil && a.outcome.Status != Open {
		return *a.outcome, nil
	}
	if a.pending == nil {
		return a.client.Await(ctx, a.Form)
	}
	return a.client.take(ctx, a.pending, a.Form)
}

// take waits for the outcome that is on its way on the connection. If that is lost, it asks for the outcome.
func (c *Client) take(ctx context.Context, p *pending, form ID) (Outcome, error) {
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
	Open       = "open"
	Answered   = "answered"
	Cancelled  = "cancelled"
	Declined   = "declined"
	Expired    = "expired"
	Superseded = "superseded"
	Answering  = "answering" // an answer is on its way to a home that cannot be reached: the form is open until it arrives
	Voted      = "voted"     // an answer counts as a vote: the form is open until it has as many as it needs
)

// Outcome is the end of a form. Values is a record. A secret is in the clear for the asker, and {"$sealed":true} for others.
// Order has the names of the values in the order of the form.
type Outcome struct {
	Status  string          `json:"status"`
	Form    ID              `json:"form,omitempty"`
	Promise ID              `json:"promise,omitempty"`
	By      ID              `json:"by,omitempty"`
	ByName  string          `json:"byName,omitempty"` // the client's agent's name for By
	At      time.Time       `json:"at,omitzero"`
	Note    string          `json:"note,omitempty"` // in words, by whoever declined or cancelled
	Values  json.RawMessage `json:"values,omitempty"`
	Order   []string        `json:"order,omitempty"`
	Votes   *view.Votes     `json:"votes,omitempty"` // of the status Voted

	// Of an approval. Allowed reports whether the asker's host has allowed the call, of which only the asker has the Digest.
	Digest  string `json:"digest,omitempty"`
	Allowed bool   `json:"allowed,omitempty"`

	// Of an approval that allows the call with another input: that input, and the digest of the call with it. No other call
	// is allowed then.
	EditedInput  string `json:"editedInput,omitempty"`
	EditedDigest string `json:"editedDigest,omitempty"`

	// Raw is the outcome as the node sent it.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON reads an outcome and keeps its text as Raw.
func (o *Outcome) UnmarshalJSON(b []byte) error {
	type plain Outcome
	*o = Outcome{}
	o.Raw = append(o.Raw, b...)
	return json.Unmarshal(b, (*plain)(o))
}

// UnmarshalBody does the same with the body of a frame.
func (o *Outcome) UnmarshalBody(body []byte) (err error) {
	type plain Outcome
	*o = Outcome{}
	if err = mux.Read(body, (*plain)(o)); err == nil {
		o.Raw, err = mux.ToJSON(body)
	}
	return err
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
	if len(o.Values) == 0 {
		return parley.Refuse(parley.NotPermitted, "what %s was answered is not for this agent", o.Form)
	}
	if err := json.Unmarshal(o.Values, into); err != nil {
		return unreadable("await", err)
	}
	return nil
}
