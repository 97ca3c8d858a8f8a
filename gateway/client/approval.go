package client

import (
	"context"
	"encoding/json"

	"parley"
	"parley/actors/view"
)

// Approval asks whether a tool may be called with an input, any JSON value, which is shown unchanged. With Attended it
// is asked only if somebody follows the mail of the agent that would decide: a page, a client or a command. See
// Permission.Unattended. An agent that asks an Editable one makes the call with Decision.Input.
type Approval = parley.Approval

// Permission is an accepted approval, which is on the node's disk. A standing rule or the agent's policy has decided it, or it is
// a form.
type Permission struct {
	Asked

	// Unattended reports, for an Approval with Attended, that nobody follows the mail of the recipient at this moment.
	// The call is then better decided elsewhere. If Form is "", nothing was asked, and Approve with the same Key looks
	// again. Otherwise the approval was asked before, and Cancel cancels it. A client that was just sent a message
	// counts as a follower only when it asks for more. So look more than once. Unattended is never set for a recipient
	// on another node.
	Unattended bool

	rule  *Decision
	input json.RawMessage
}

// Decision reports whether a call may be made. A call may not be made if its approval was declined, cancelled or has
// expired. Nor may it if an agent other than the host decided on it.
type Decision struct {
	Allowed bool
	Input   json.RawMessage // of the call that is allowed: the one that was asked, or for an Editable approval another one
	Reason  string          // in words, by whoever decided; may be empty
	Rule    ID              // the standing rule that decided; "" if a mandate, a policy or the recipient did
	Mandate ID              // the mandate that the call was charged to; "" if none covers it
	Outcome Outcome         // of the form, if there was one
}

// Approve asks once whether a tool may be called. It returns when the approval is accepted, decided or Unattended.
func (c *Client) Approve(ctx context.Context, a Approval) (*Permission, error) {
	var got view.Permitted
	outcome, err := c.ask(ctx, "approve", a, &got)
	if err != nil {
		return nil, err
	}
	p := &Permission{Asked: *c.asked(got.Asked, nil), Unattended: got.Unattended}
	if outcome != nil && got.Unattended { // the same call is probably made again
		outcome.link.forget(outcome)
		outcome = nil
	}
	p.pending = outcome
	if got.Decided {
		p.rule = &Decision{Allowed: got.Allowed, Rule: idOf(got.Rule), Mandate: idOf(got.Mandate), Input: a.Input}
	}
	p.input = a.Input
	return p, nil
}

// Await blocks until the decision, as Client.Await does. It refuses with NO_PENDING_PERMISSION if nothing was asked because the
// approval is Unattended.
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
	d := Decision{Outcome: o, Reason: o.Note, Input: p.input}
	if o.EditedInput != "" {
		d.Input = json.RawMessage(o.EditedInput)
	}
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
