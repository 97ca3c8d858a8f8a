package client

import (
	"context"
	"encoding/json"
	"time"

	"parley"
)

// Approval asks whether a tool may be called with an input, any JSON value, which is shown to the letter. With Attended it is asked
// only where somebody follows the mail of who would decide, a page, a client or a command, as Permission.Unattended says.
type Approval struct {
	To       string          `json:"recipient,omitempty"` // default: the agent's host
	Tool     string          `json:"tool"`
	Input    json.RawMessage `json:"input"`
	Folder   string          `json:"folder,omitempty"` // where the call is made: an absolute path; wider rules need it
	Key      string          `json:"key,omitempty"`
	Deadline time.Time       `json:"deadline,omitzero"`
	Attended bool            `json:"attended,omitempty"` // do not ask where nobody follows the mail of who is asked
}

// permitted is what became of an approval when it was asked for.
type permitted struct {
	accepted
	Decided    bool `json:"decided"`
	Allowed    bool `json:"allowed"`
	Rule       ID   `json:"rule,omitempty"`
	Unattended bool `json:"unattended,omitempty"`
}

// Permission is an approval that was asked for, and is on the node's disk: a standing rule or the agent's policy has decided it, or
// it is a form.
type Permission struct {
	Asked

	// Unattended says of an Approval with Attended that nobody follows the mail of who would decide at this moment, so that it is
	// better decided elsewhere. If Form is "", as it is the first time, nothing was asked, and to Approve with the same Key again is
	// to look again; else it was asked before, and Cancel takes it back. Who was told something a moment ago may not be seen to
	// follow before they ask for more: look more than once. Of who is on another node it is never said.
	Unattended bool

	rule *Decision
}

// Decision says whether the call may be made. One that was declined, cancelled or has expired may not, nor one that somebody else than
// the agent's host has decided.
type Decision struct {
	Allowed bool
	Reason  string  // in words, by who decided, if there are any
	Rule    ID      // the standing rule that decided; "" if that was a policy, or who was asked
	Outcome Outcome // of the form, if there was one
}

// Approve asks whether a tool may be called, once, and returns when the question is accepted or decided, or is Unattended.
func (c *Client) Approve(ctx context.Context, a Approval) (*Permission, error) {
	if a.Key == "" {
		a.Key = NewKey()
	}
	got, err := get[permitted](ctx, c, "approve", a)
	if err != nil {
		return nil, err
	}
	p := &Permission{Asked: *got.by(c), Unattended: got.Unattended}
	if got.Decided {
		p.rule = &Decision{Allowed: got.Allowed, Rule: got.Rule}
	}
	return p, nil
}

// Await waits for the decision, as Client.Await does. Where nothing was asked, as Unattended says, it refuses with
// NO_PENDING_PERMISSION.
func (p *Permission) Await(ctx context.Context) (Decision, error) {
	switch {
	case p.rule != nil:
		return *p.rule, nil
	case p.Unattended && p.Form == "":
		return Decision{}, parley.Refuse(parley.NoPendingPermission, "nobody follows the mail of who would decide, and nothing was asked").
			WithHint("ask without Attended, or again when somebody is there")
	}
	o, err := p.Asked.Await(ctx)
	if err != nil {
		return Decision{}, err
	}
	d := Decision{Outcome: o, Reason: o.Note}
	if o.Status != Answered {
		return d, nil
	}
	var said struct{ Reason string }
	if err := o.Decode(&said); err != nil {
		return Decision{}, err
	}
	d.Allowed, d.Reason = o.Allowed, said.Reason
	return d, nil
}
