package client

import (
	"context"
	"encoding/json"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
)

// Answer answers a form. values is a struct or map that JSON makes a record of, with the types that the fields want; for
// a capability that is a Ref, or a name of the answerer's. A wrong answer is refused with INVALID_ANSWER, with what is
// wrong with each field, and leaves the form open. The outcome is that of this answer; after the first it is ALREADY_ANSWERED.
func (c *Client) Answer(ctx context.Context, form ID, values any) (Outcome, error) {
	written, err := json.Marshal(values)
	if err != nil {
		return Outcome{}, unwritable(err)
	}
	var each map[string]json.RawMessage
	if err := json.Unmarshal(written, &each); err != nil {
		return Outcome{}, parley.Refuse(parley.InvalidArgument, "the values of an answer are a record, not %.80s", written)
	}
	record := make(map[string]capabilities.Value, len(each))
	for name, v := range each {
		if record[name], err = capabilities.ParseJSON(v); err != nil {
			return Outcome{}, err
		}
	}
	return get[Outcome](ctx, c, "respond_form", api.RespondFormRequest{FormRef: refTo(form), Values: record})
}

// AnswerText answers a form with texts by the names of the fields, which are read by the fields' types, as on a command
// line: 443, true, or a name of the answerer's for a capability. A field for several choices has several texts.
func (c *Client) AnswerText(ctx context.Context, form ID, texts map[string][]string) (Outcome, error) {
	a := api.RespondFormRequest{FormRef: refTo(form)}
	for name, several := range texts {
		for _, t := range several {
			a.Texts = append(a.Texts, events.FieldText{Name: name, Text: t})
		}
	}
	return get[Outcome](ctx, c, "respond_form", a)
}

// Decide answers an approval, as it was shown in a message: with deny or once, or with always or never for the calls that
// the rule covers, too. An approval of another call than that message shows is refused with INVALID_ARGUMENT.
func (c *Client) Decide(ctx context.Context, approval Message, decision, reason string) (Outcome, error) {
	a := api.RespondFormRequest{
		FormRef: refTo(approval.MessageID), Digest: approval.Digest, Values: map[string]capabilities.Value{"decision": capabilities.String(decision)},
	}
	if reason != "" {
		a.Values["reason"] = capabilities.String(reason)
	}
	return get[Outcome](ctx, c, "respond_form", a)
}

// Decline says no to a form, in words if there are any.
func (c *Client) Decline(ctx context.Context, form ID, reason string) (Outcome, error) {
	return get[Outcome](ctx, c, "decline_form", api.EndRequest{FormRef: refTo(form), Reason: reason})
}

// Cancel takes back a form that the agent asked.
func (c *Client) Cancel(ctx context.Context, form ID, reason string) (Outcome, error) {
	return get[Outcome](ctx, c, "cancel_form", api.EndRequest{FormRef: refTo(form), Reason: reason})
}

// Reject says no to a request.
func (c *Client) Reject(ctx context.Context, request ID, reason string) (Outcome, error) {
	return get[Outcome](ctx, c, "reject", api.EndRequest{FormRef: refTo(request), Reason: reason})
}

// Resolve gives what was requested: what the agent holds under a name.
func (c *Client) Resolve(ctx context.Context, request ID, name string) (Outcome, error) {
	return get[Outcome](ctx, c, "resolve", api.ResolveRequest{FormRef: refTo(request), Name: name})
}

// Forward hands a form on: whoever answers first settles it.
func (c *Client) Forward(ctx context.Context, form ID, to string) error {
	return c.Call(ctx, "forward_form", api.ForwardFormRequest{FormRef: refTo(form), Recipient: to}, nil)
}
