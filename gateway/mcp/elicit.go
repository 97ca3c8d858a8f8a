package mcp

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley"
	"parley/actors/view"
	"parley/gateway/api"
	"parley/gateway/sanitize"
)

const (
	maxRounds = 5 // bounds how often one form is shown after invalid answers
	inputName = "form"

	// Versions of the protocol, compared as texts.
	inResults   = "2026-07-28" // a result may request input
	titledEnums = "2025-11-25" // choices have titles, and several may be chosen

	accepted, declined, cancelled = "accept", "decline", "cancel"
	inForm, byLink                = "form", "url"
)

// client has the abilities of a call's client.
type client struct {
	form, link bool // it can show forms, links
	inResults  bool
	titles     bool
}

func clientOf(r *sdk.CallToolRequest) client {
	p := r.Session.InitializeParams()
	if p == nil || p.Capabilities == nil || p.Capabilities.Elicitation == nil {
		return client{}
	}
	e := p.Capabilities.Elicitation
	return client{
		form: e.Form != nil || e.URL == nil, link: e.URL != nil,
		inResults: p.ProtocolVersion >= inResults, titles: p.ProtocolVersion >= titledEnums,
	}
}

// shown tells how a form is shown: in a result, elsewhere during the call, or not at all.
type shown struct {
	result    *sdk.CallToolResult
	elsewhere *showing
	why       string // the reason why it is not shown
}

// present shows a form to the person at the client. trouble is the reason why the former answer was refused.
func (c *call) present(ctx context.Context, m *view.Message, trouble error, n int) (shown, error) {
	can := clientOf(c.request)
	p, why := c.elicitation(ctx, can, m, trouble)
	if p == nil {
		return shown{why: why}, nil
	}
	if !can.inResults {
		return c.show(ctx, m, p), nil
	}
	state, err := c.seals.seal(c.agent.Identity(), round{
		Form: m.MessageID.String(), Round: n, Link: p.Mode == byLink, Asked: c.sent != "", Until: time.Now().Add(stateTime),
	})
	if err != nil {
		return shown{}, err
	}
	return shown{result: &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{inputName: p}, RequestState: state}}, nil
}

// elicitation returns the request for an answer to a form: as a form if the client's forms can express it, or as a link.
// It returns nil and the reason if neither is possible, or if the agent may not answer.
func (c *call) elicitation(ctx context.Context, can client, m *view.Message, trouble error) (p *sdk.ElicitParams, why string) {
	if !can.form && !can.link {
		return nil, "it has no elicitation"
	}
	if err := c.agent.May("respond_form"); err != nil {
		return nil, parley.AsError(err).Message
	}
	text := wordsOf(m, trouble)
	why = "it shows links only"
	if can.form {
		schema, misfit := flat(m.Fields, can.titles)
		if misfit == nil {
			return &sdk.ElicitParams{Mode: inForm, Message: text, RequestedSchema: schema}, ""
		}
		why = whyMisfit(misfit)
	}
	if !can.link {
		return nil, why
	}
	link := c.agent.Link(ctx, m.MessageID.String())
	if link == "" {
		return nil, why
	}
	return &sdk.ElicitParams{Mode: byLink, Message: text, URL: link, ElicitationID: m.MessageID.String()}, ""
}

// wordsOf returns the text above a form's fields.
func wordsOf(m *view.Message, trouble error) string {
	var parts []string
	if trouble != nil {
		parts = append(parts, "That was not accepted. "+fieldErrors(trouble))
	}
	for _, s := range []string{m.Title, m.Description} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return sanitize.Lines(strings.Join(parts, "\n\n"))
}

// FieldErrors returns the errors of an answer's fields as text.
func FieldErrors(err error) string { return fieldErrors(err) }

// fieldErrors returns the errors of the fields as text.
func fieldErrors(err error) string {
	e := parley.AsError(err)
	if len(e.Fields) == 0 {
		return e.Message
	}
	var each []string
	for _, name := range slices.Sorted(maps.Keys(e.Fields)) {
		each = append(each, fmt.Sprintf("%s: %s", name, e.Fields[name]))
	}
	return strings.Join(each, "; ")
}

// isRetry reports whether the call has a person's response.
func (c *call) isRetry() bool {
	return c.request.Params.RequestState != "" || len(c.request.Params.InputResponses) > 0
}

// takeUp continues with a form that was shown in a result. The seal alone names the form.
func (c *call) takeUp(ctx context.Context, wait time.Duration) (any, error) {
	r, err := c.seals.open(c.agent.Identity(), c.request.Params.RequestState, time.Now())
	if err != nil {
		return nil, err
	}
	if r.Asked {
		c.sent = r.Form
	}
	did, ok := c.request.Params.InputResponses[inputName].(*sdk.ElicitResult)
	if !ok {
		return nil, parley.Refuse(parley.InvalidArgument, "the inputResponses have no result for %q", inputName).
			WithHint("%s", c.elsewhere(ctx, r.Form))
	}
	m, err := c.message(ctx, r.Form)
	if err != nil {
		return nil, err
	}
	if m.Outcome != nil || r.Link && did.Action == accepted { // settled already, or to be answered on the page
		return c.await(ctx, r.Form, wait)
	}
	err = c.settle(ctx, m, did)
	if parley.CodeOf(err) == parley.InvalidAnswer && r.Round < maxRounds {
		shown, presenting := c.present(ctx, m, err, r.Round+1)
		if shown.result != nil || presenting != nil {
			return shown.result, presenting
		}
	}
	if err != nil {
		e := parley.AsError(err)
		return nil, e.WithHint("%s", c.elsewhere(ctx, r.Form))
	}
	return c.await(ctx, r.Form, 0)
}

// elsewhere returns the hint of a refused response: where the person may answer, and how the wait goes on.
func (c *call) elsewhere(ctx context.Context, form string) string {
	hint := "await_answer with the handle " + form + " goes on"
	if link := c.agent.Link(ctx, form); link != "" {
		hint = "the person may answer at " + link + "; " + hint
	}
	return hint
}

// settle answers, declines or cancels a form by the person's response. A form that has ended already is no error.
func (c *call) settle(ctx context.Context, m *view.Message, did *sdk.ElicitResult) error {
	var err error
	again, form := steady{c.agent}, api.RefTo(m.MessageID.String())
	switch did.Action {
	case accepted:
		values, wrong := answerOf(m.Fields, did.Content)
		if wrong != nil {
			return wrong
		}
		err = api.RespondForm.Run(ctx, again, api.RespondFormRequest{FormRef: form, Answer: parley.Answer{Revision: m.AnswerRevision(), Values: values}})
	case declined:
		err = api.DeclineForm.Run(ctx, again, api.DeclineRequest{FormRef: form, Revision: m.AnswerRevision()})
	case cancelled:
		err = api.CancelForm.Run(ctx, again, api.EndRequest{FormRef: form, Reason: "dismissed at the client"})
	default:
		return parley.Refuse(parley.InvalidArgument, "nothing is known of the action %.40q", did.Action)
	}
	switch parley.CodeOf(err) {
	case parley.AlreadyAnswered, parley.AlreadyCancelled, parley.AlreadyDeclined, parley.AlreadyExpired, parley.AnswerPending:
		return nil
	}
	return err
}
