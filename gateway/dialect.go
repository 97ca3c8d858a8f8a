package gateway

import (
	"cmp"
	"context"

	"parley"
	"parley/actors"
)

// frame is a type of frame that is no request of an operation.
type frame struct {
	scopes []scope
	handle func(c *conversation, h *head, text []byte) error // an error is told as one
	atOnce bool                                              // it does not wait for those before it
}

// frames are all types of frames but requests of operations.
func frames() map[string]frame {
	asks, answers := []scope{scopeAsk, scopeRead}, []scope{scopeAnswer, scopeRead}
	return map[string]frame{
		"follow_messages":         {scopes: []scope{scopeRead}, handle: followFrame, atOnce: true},
		"subscribe_agent_updates": {scopes: []scope{scopeRead}, handle: agentsFrame, atOnce: true},
		"unsubscribe":             {scopes: []scope{scopeRead}, handle: unsubscribeFrame, atOnce: true},

		"ask_request":       {scopes: asks, handle: askFrame},
		"ask_response":      {scopes: answers, handle: askedFrame},
		"approval_request":  {scopes: asks, handle: approvalFrame},
		"approval_response": {scopes: answers, handle: approvedFrame},

		"ask_user_request":        {scopes: asks, handle: questionFrame},
		"questions.submit":        {scopes: answers, handle: submitFrame},
		"questions.cancel":        {scopes: answers, handle: cancelFrame},
		"fetch_questions_request": {scopes: []scope{scopeRead}, handle: fetchQuestionsFrame},

		"request_input":  {scopes: asks, handle: requestInputFrame},
		"input_received": {scopes: asks, handle: inputReceivedFrame},
		"user_input":     {scopes: answers, handle: userInputFrame},
		"subscribe":      {scopes: answers, handle: watchRunFrame},
	}
}

// dispatch handles a frame, in its turn.
func (c *conversation) dispatch(f frame, h head, text []byte) {
	turn := func() {
		if err := c.handle(f, &h, text); err != nil {
			c.note(h.Type, err)
			c.tell(failed(h.regarding, err))
		}
	}
	if f.atOnce {
		turn()
		return
	}
	first, err := c.turns.add(turn)
	if err != nil {
		c.tell(failed(h.regarding, err))
		return
	}
	if first {
		c.work.Go(func() {
			for c.turns.next() {
			}
		})
	}
}

func (c *conversation) handle(f frame, h *head, text []byte) (err error) {
	defer c.survive(h.Type, &err)
	if err := c.check(c.acts); err != nil {
		return err
	}
	for _, needed := range f.scopes {
		if err := c.principal.may(operation{name: h.Type, scope: needed}); err != nil {
			return err
		}
	}
	return f.handle(c, h, text)
}

// dialect turns the forms of one of the systems that others are used to into its frames. What it gives is a frame,
// or nil for none.
type dialect struct {
	posed   func(m mark, e actors.Envelope) any                   // to who is asked: there is a form
	settled func(m mark, e actors.Envelope, o actors.Outcome) any // to who was asked: it has ended
	outcome func(m mark, form string, o actors.Outcome) any       // to who asked
}

// dialects are the dialects by the name in their forms' marks.
func dialects() map[string]dialect {
	return map[string]dialect{
		askDialect:      {posed: askPosed, settled: askSettled, outcome: askOutcome},
		approvalDialect: {posed: approvalPosed, settled: approvalSettled, outcome: approvalOutcome},
		questionDialect: {posed: questionPosed, settled: questionSettled, outcome: questionOutcome},
		runDialect:      {posed: inputPosed, settled: inputSettled, outcome: inputOutcome},
	}
}

// markedForm is a form of a dialect in the agent's mailbox.
type markedForm struct {
	mark
	actors.Envelope
}

// formsOf lists the agent's forms of a dialect, oldest first.
func (c *conversation) formsOf(ctx context.Context, dialect string, v actors.View, wanted func(mark, actors.Envelope) bool) ([]markedForm, error) {
	in, err := c.principal.agent.Inbox(ctx, v)
	if err != nil {
		return nil, err
	}
	var found []markedForm
	for _, e := range in.Messages {
		if m, ok := markOf(e); ok && m.Dialect == dialect && wanted(m, e) {
			found = append(found, markedForm{m, e})
		}
	}
	return found, nil
}

// asked gives the form that was put to the agent and that a client means: the one that waits, or else the last that
// did. There may be several where askers call theirs the same; then it refuses with AMBIGUOUS.
func (c *conversation) asked(ctx context.Context, dialect string, none error, wanted func(mark, actors.Envelope) bool) (markedForm, error) {
	forms, err := c.formsOf(ctx, dialect, actors.View{All: true}, func(m mark, e actors.Envelope) bool {
		return e.Received && wanted(m, e)
	})
	if err != nil {
		return markedForm{}, err
	}
	var waits []markedForm
	for _, f := range forms {
		if f.AnswerNeeded {
			waits = append(waits, f)
		}
	}
	switch {
	case len(waits) == 1:
		return waits[0], nil
	case len(waits) > 1:
		return markedForm{}, parley.Refuse(parley.Ambiguous, "%d forms that wait are called so", len(waits)).
			WithHint(`say which one by its ID, as "form"`)
	case len(forms) > 0:
		return forms[len(forms)-1], nil
	}
	return markedForm{}, none
}

// checkID refuses with INVALID_ARGUMENT what is missing, or too long to call something by.
func checkID(what, id string) error {
	if id == "" || len(id) > maxRequestID {
		return parley.Refuse(parley.InvalidArgument, "%s is a text of 1 to %d bytes", what, maxRequestID)
	}
	return nil
}

// unanswered gives the error that stands for a form's end without an answer.
func unanswered(o actors.Outcome) error {
	switch o.Status {
	case actors.StatusDeclined:
		return parley.Refuse(parley.Declined, "%s", cmp.Or(o.Note, "it was declined"))
	case actors.StatusExpired:
		return parley.Refuse(parley.Expired, "its deadline passed")
	}
	return parley.Refuse(parley.Cancelled, "%s", cmp.Or(o.Note, "it was cancelled"))
}
