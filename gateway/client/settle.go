package client

import (
	"context"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
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

// AnswerText answers a form with texts by the names of the fields. The node reads them by the fields' types, as on a command
// line: 443, true, or a name of the answerer's for a capability. A field for several choices has several texts.
func (c *Client) AnswerText(ctx context.Context, form ID, texts map[string][]string) (Outcome, error) {
	return get[Outcome](ctx, c, "respond_form", api.RespondFormRequest{FormRef: refTo(form), Answer: parley.Answer{Texts: textsOf(texts)}})
}

// textsOf returns texts by name as a list.
func textsOf(texts map[string][]string) (list []events.FieldText) {
	for name, several := range texts {
		for _, t := range several {
			list = append(list, events.FieldText{Name: name, Text: t})
		}
	}
	return list
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

// Decided is the result of one decision of DecideMany: the outcome of the form, or why the decision was refused.
type Decided = api.Decided

// DecideMany decides on approvals as Decide does, all in the same way. It returns the result of each. An approval that has
// ended, or is of another call than its message shows, does not stop the others. At most 256 are decided in one call. The
// call is made once, also if it is repeated.
func (c *Client) DecideMany(ctx context.Context, approvals []Message, decision, reason string) ([]Decided, error) {
	r := api.DecideManyRequest{Key: string(NewKey())}
	for _, m := range approvals {
		r.Decisions = append(r.Decisions, parley.Decision{Form: m.MessageID, Digest: m.Digest, Decision: decision, Reason: reason})
	}
	got, err := get[api.DecideManyResponse](ctx, c, "decide_many", r)
	return got.Results, err
}

// Decline declines a form. The reason may be empty.
func (c *Client) Decline(ctx context.Context, form ID, reason string) (Outcome, error) {
	return get[Outcome](ctx, c, "decline_form", api.DeclineRequest{FormRef: refTo(form), Reason: reason})
}

// DeclineShown is Decline for the form as a message shows it. If the asker has amended the form since, it refuses with AMENDED.
func (c *Client) DeclineShown(ctx context.Context, form Message, reason string) (Outcome, error) {
	return get[Outcome](ctx, c, "decline_form", api.DeclineRequest{FormRef: refTo(form.ID()), Revision: max(form.Revision, 1), Reason: reason})
}

// Cancel cancels a form that the agent asked.
func (c *Client) Cancel(ctx context.Context, form ID, reason string) (Outcome, error) {
	return get[Outcome](ctx, c, "cancel_form", api.EndRequest{FormRef: refTo(form), Reason: reason})
}

// Amendment corrects the question of a form. Nil parts stay as they are.
type Amendment = parley.Amendment

// Amend corrects the question of an open form that the agent asked, and returns the form as it is now. Those who were asked
// see the change. An answer to the earlier question is refused with AMENDED.
func (c *Client) Amend(ctx context.Context, form ID, a Amendment) (Message, error) {
	return get[Message](ctx, c, "amend_form", api.AmendFormRequest{FormRef: refTo(form), Amendment: a})
}

// AnswerShown is AnswerText for the form as a message shows it. If the asker has amended the form since, it refuses the
// answer with AMENDED.
func (c *Client) AnswerShown(ctx context.Context, form Message, texts map[string][]string) (Outcome, error) {
	return get[Outcome](ctx, c, "respond_form", api.RespondFormRequest{FormRef: refTo(form.ID()), Answer: parley.Answer{Revision: max(form.Revision, 1), Texts: textsOf(texts)}})
}

// Withdraw takes back the agent's vote on a form that needs several and is open. It reports whether the withdrawal is
// queued: then the form's home cannot be reached, and the vote may still count until that has it.
func (c *Client) Withdraw(ctx context.Context, form ID) (queued bool, err error) {
	var w api.Withdrawn
	err = c.Call(ctx, "withdraw_vote", api.MessageRequest{FormRef: refTo(form)}, &w)
	return w.Queued, err
}

// NewRight describes a right to answer an open form in the agent's place. Without Outcomes it denies and allows an approval
// once, or answers and declines a form. It ends with the form at the latest.
type NewRight struct {
	Outcomes []string  // among deny, once, always and never for an approval, and answer and decline for a form
	Until    time.Time // the zero time for the end of the form
	Uses     uint32    // 0 for any number
	Name     string    // of the receiver, for people
}

// Right is a right to answer a form. Whoever shows the secret may use it. Revoking the grant ends it, with all that were made
// of it.
type Right = view.AnswerRight

func (n NewRight) request() api.GrantAnswerRequest {
	r := api.GrantAnswerRequest{Outcomes: n.Outcomes, Uses: n.Uses, Name: n.Name}
	if !n.Until.IsZero() {
		r.Until = capabilities.At(n.Until)
	}
	return r
}

// GrantAnswer makes a right to answer a form in the agent's place.
func (c *Client) GrantAnswer(ctx context.Context, form ID, n NewRight) (Right, error) {
	r := n.request()
	r.FormRef = refTo(form)
	return get[Right](ctx, c, "grant_answer", r)
}

// NarrowRight makes a right of the one with a secret, for its bearer to hand on. It has no more than that, its uses count for
// both, and it ends with it.
func (c *Client) NarrowRight(ctx context.Context, secret string, n NewRight) (Right, error) {
	r := n.request()
	r.Secret = secret
	return get[Right](ctx, c, "grant_answer", r)
}

// RightUse is a use of a right to answer. Reason is for a decision or a decline, Texts for an answer.
type RightUse struct {
	Outcome string
	Reason  string
	Texts   map[string][]string
}

// AnswerWith answers a form by the secret of a right. It may be repeated if the response was lost. It refuses with
// NOT_PERMITTED a right that is spent or revoked, and what the right does not permit.
func (c *Client) AnswerWith(ctx context.Context, secret string, u RightUse) (Outcome, error) {
	return get[Outcome](ctx, c, "answer_with", api.AnswerWithRequest{Secret: secret, Outcome: u.Outcome, Reason: u.Reason, Texts: textsOf(u.Texts)})
}

// Reject declines a request.
func (c *Client) Reject(ctx context.Context, request ID, reason string) (Outcome, error) {
	return get[Outcome](ctx, c, "reject", api.DeclineRequest{FormRef: refTo(request), Reason: reason})
}

// Resolve answers a request with the value that the agent holds under a name.
func (c *Client) Resolve(ctx context.Context, request ID, name string) (Outcome, error) {
	return get[Outcome](ctx, c, "resolve", api.ResolveRequest{FormRef: refTo(request), Name: name})
}

// Forward forwards a form to another agent. The first answer settles it.
func (c *Client) Forward(ctx context.Context, form ID, to string) error {
	return c.Call(ctx, "forward_form", api.ForwardFormRequest{FormRef: refTo(form), Recipient: to}, nil)
}

// StandIns are the agents to which the forms of an agent are forwarded as they come.
type StandIns = view.StandIns

// SetAway has the forms that come until a time forwarded to another agent, or to nobody if to is "". The zero time ends the
// absence.
func (c *Client) SetAway(ctx context.Context, until time.Time, to string) (StandIns, error) {
	r := api.SetAwayRequest{To: to}
	if !until.IsZero() {
		r.Until = capabilities.At(until)
	}
	return get[StandIns](ctx, c, "set_away", r)
}

// SetMember adds a member to the agent, which makes it a group, or removes one.
func (c *Client) SetMember(ctx context.Context, agent string, in bool) (StandIns, error) {
	return get[StandIns](ctx, c, "set_member", api.SetMemberRequest{Agent: agent, Remove: !in})
}

// StandIns returns to whom the agent's forms are forwarded as they come.
func (c *Client) StandIns(ctx context.Context) (StandIns, error) {
	return get[StandIns](ctx, c, "list_stand_ins", api.StandInsRequest{})
}
