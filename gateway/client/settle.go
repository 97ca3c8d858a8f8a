package client

import (
	"context"

	"parley"
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

// Cancel cancels a form that the agent asked.
func (c *Client) Cancel(ctx context.Context, form ID, reason string) (Outcome, error) {
	return get[Outcome](ctx, c, "cancel_form", api.EndRequest{FormRef: refTo(form), Reason: reason})
}
