package client

import (
	"context"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
)

// Answer answers a form. The values are a struct or map that encodes as a JSON object, with the types of the fields. A
// capability is a Ref, or a name of the answerer's. Answer refuses a wrong answer with INVALID_ANSWER and the errors of all
// fields; the form stays open. It refuses an answer after the first with ALREADY_ANSWERED.
func (c *Client) Answer(ctx context.Context, form ID, values any) (Outcome, error) {
	record, err := recordOf(values)
	if err != nil {
		return Outcome{}, err
	}
	return get[Outcome](ctx, c, "respond_form", api.RespondFormRequest{FormRef: refTo(form), Answer: parley.Answer{Values: record}})
}

// Decide answers the approval that a message shows: with deny or once, or with always or never for all calls that the rule
// covers. It refuses with INVALID_ARGUMENT if the approval is of another call than the message shows.
func (c *Client) Decide(ctx context.Context, approval Message, decision, reason string) (Outcome, error) {
	a := api.RespondFormRequest{FormRef: refTo(approval.ID()), Answer: parley.Answer{
		Digest: approval.Digest,
		Values: map[string]capabilities.Value{"decision": capabilities.String(decision)},
	}}
	if reason != "" {
		a.Values["reason"] = capabilities.String(reason)
	}
	return get[Outcome](ctx, c, "respond_form", a)
}

// Decline declines a form. The reason may be empty.
func (c *Client) Decline(ctx context.Context, form ID, reason string) (Outcome, error) {
	return get[Outcome](ctx, c, "decline_form", api.DeclineRequest{FormRef: refTo(form), Reason: reason})
}

// Claim is who is on a form, until when.
type Claim = view.Claim

// Claimed is the result of a claim.
type Claimed = view.Claimed

// Claim has the agent be on a form that others may answer too, for a time; 0 is 30 minutes. With takeOver it takes over the claim of
// another, which is refused with CLAIMED otherwise.
func (c *Client) Claim(ctx context.Context, form ID, long time.Duration, takeOver bool) (Claimed, error) {
	r := api.ClaimFormRequest{FormRef: refTo(form), TakeOver: takeOver}
	if long != 0 {
		ms := long.Milliseconds()
		r.ForMs = &ms
	}
	return get[Claimed](ctx, c, "claim_form", r)
}

// Release ends the agent's claim of a form.
func (c *Client) Release(ctx context.Context, form ID) (Claimed, error) {
	return get[Claimed](ctx, c, "claim_form", api.ClaimFormRequest{FormRef: refTo(form), Release: true})
}

// Cancel cancels a form that the agent asked, or ends a message or a use that waits for the answer of one.
func (c *Client) Cancel(ctx context.Context, form ID, reason string) (Outcome, error) {
	return get[Outcome](ctx, c, "cancel_form", api.EndRequest{FormRef: refTo(form), Reason: reason})
}
