package gateway

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
)

// frame is a type of frame that is no request of an operation.
type frame struct {
	scopes []api.Scope
	handle func(c *wsSession, h *head, text []byte) error // an error is told as one
	atOnce bool                                           // it does not wait for those before it
}

// frames are all types of frames but requests of operations.
func frames() map[string]frame {
	asks, answers := []api.Scope{api.ScopeAsk, api.ScopeRead}, []api.Scope{api.ScopeAnswer, api.ScopeRead}
	return map[string]frame{
		"follow_messages":         {scopes: []api.Scope{api.ScopeRead}, handle: followFrame, atOnce: true},
		"subscribe_agent_updates": {scopes: []api.Scope{api.ScopeRead}, handle: agentsFrame, atOnce: true},
		"unsubscribe":             {scopes: []api.Scope{api.ScopeRead}, handle: unsubscribeFrame, atOnce: true},

		"ask_request":       {scopes: asks, handle: askFrame},
		"ask_response":      {scopes: answers, handle: askedFrame},
		"approval_request":  {scopes: asks, handle: approvalFrame},
		"approval_response": {scopes: answers, handle: approvedFrame},

		"ask_user_request":        {scopes: asks, handle: questionFrame},
		"questions.submit":        {scopes: answers, handle: submitFrame},
		"questions.cancel":        {scopes: answers, handle: cancelFrame},
		"fetch_questions_request": {scopes: []api.Scope{api.ScopeRead}, handle: fetchQuestionsFrame},

		"request_input":  {scopes: asks, handle: requestInputFrame},
		"input_received": {scopes: asks, handle: inputReceivedFrame},
		"user_input":     {scopes: answers, handle: userInputFrame},
		"subscribe":      {scopes: answers, handle: watchRunFrame},
	}
}

// dispatch handles a frame, in its turn.
func (c *wsSession) dispatch(f frame, h head, text []byte) {
	leave, err := c.load.keep(c.principal.Account(), len(text))
	if err != nil {
		c.tell(failed(h.regarding, err))
		return
	}
	turn := func() {
		defer leave()
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
		leave()
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

func (c *wsSession) handle(f frame, h *head, text []byte) (err error) {
	defer c.survive(h.Type, &err)
	if err := c.check(c.acts); err != nil {
		return err
	}
	for _, needed := range f.scopes {
		if err := c.principal.May(api.Operation{Name: h.Type, Scope: needed}); err != nil {
			return err
		}
	}
	return f.handle(c, h, text)
}

// dialect turns the forms of one of the systems that others are used to into its frames. What it gives is a frame,
// or nil for none.
type dialect struct {
	posed   func(m events.Origin, e view.Message) any                 // to who is asked: there is a form
	settled func(m events.Origin, e view.Message, o view.Outcome) any // to who was asked: it has ended
	outcome func(m events.Origin, form string, o view.Outcome) any    // to who asked
}

// dialects are the dialects by the name in the origin of their forms.
func dialects() map[string]dialect {
	return map[string]dialect{
		askDialect:      {posed: askPosed, settled: askSettled, outcome: askOutcome},
		approvalDialect: {posed: approvalPosed, settled: approvalSettled, outcome: approvalOutcome},
		questionDialect: {posed: questionPosed, settled: questionSettled, outcome: questionOutcome},
		runDialect:      {posed: inputPosed, settled: inputSettled, outcome: inputOutcome},
	}
}

// formsOf lists the agent's forms of an origin, oldest first. Forms that are settled and dismissed are left out.
func (c *wsSession) formsOf(ctx context.Context, o events.Origin, wanted func(dialectForm) bool) ([]dialectForm, error) {
	in, err := c.agent.Mail().FormsOf(ctx, o)
	var found []dialectForm
	for _, e := range in.Messages {
		if f, ok := dialectOf(e); ok && wanted(f) {
			found = append(found, f)
		}
	}
	return found, err
}

// calling is how a client says which form it means.
type calling struct {
	origin  events.Origin
	form    string                 // the form's own ID, if the client gives it
	called  func(dialectForm) bool // reports whether a form goes by what the client calls it
	repeats bool                   // one asker calls all of its forms so, one after another
	none    error
}

// byID returns the form of a dialect with an ID of its own that was put to the agent, if there is one.
func (c *wsSession) byID(ctx context.Context, dialect, id string) (dialectForm, bool) {
	ref, err := capabilities.ParseFormRef(id)
	if err != nil {
		return dialectForm{}, false
	}
	e, err := c.agent.Message(ctx, ref)
	if err != nil || !e.Received || e.MessageID.String() != id {
		return dialectForm{}, false
	}
	f, ok := dialectOf(e)
	return f, ok && f.Asked.Dialect == dialect
}

// asked returns the form that was put to the agent and that a client means. Its asker's name for it is enough as long
// as no other form of that name is open or in view: what a client has seen may be over, and another's in its place.
// Then it refuses with AMBIGUOUS.
func (c *wsSession) asked(ctx context.Context, by calling) (dialectForm, error) {
	var forms []dialectForm
	var err error
	if by.form == "" {
		forms, err = c.formsOf(ctx, by.origin, func(f dialectForm) bool { return f.Received && by.called(f) })
	} else if f, ok := c.byID(ctx, by.origin.Dialect, by.form); ok && by.called(f) {
		forms = append(forms, f)
	}
	switch {
	case err != nil:
		return dialectForm{}, err
	case len(forms) == 0:
		return dialectForm{}, by.none
	}
	waits := slices.IndexFunc(forms, func(f dialectForm) bool { return f.AnswerNeeded })
	switch {
	case waits < 0 && by.repeats:
		return dialectForm{}, by.none
	case by.form == "" && by.shared(forms):
		return dialectForm{}, shared(forms)
	case waits < 0:
		waits = len(forms) - 1
	}
	return forms[waits], nil
}

// shared reports whether more than one form could be meant: of several askers, or of one that uses a name again.
func (by calling) shared(forms []dialectForm) bool {
	return slices.ContainsFunc(forms[1:], func(f dialectForm) bool { return !by.repeats || f.From != forms[0].From })
}

// maxWaiting is how many forms an error names.
const maxWaiting = 5

// shared refuses with AMBIGUOUS, and names the forms that wait.
func shared(forms []dialectForm) error {
	var waits []string
	for _, f := range forms {
		if f.AnswerNeeded && len(waits) < maxWaiting {
			waits = append(waits, fmt.Sprintf("%s of %s", f.MessageID, cmp.Or(f.FromName, f.From.String())))
		}
	}
	return parley.Refuse(parley.Ambiguous, "%d forms were called so, and %d of them wait", len(forms), len(waits)).
		WithHint(`say which one by its ID, as "form": %s`, cmp.Or(strings.Join(waits, ", "), "none waits now"))
}

// checkID refuses with INVALID_ARGUMENT what is missing, or too long to call something by.
func checkID(what, id string) error {
	if id == "" || len(id) > maxRequestID {
		return parley.Refuse(parley.InvalidArgument, "%s is a text of 1 to %d bytes", what, maxRequestID)
	}
	return nil
}

// unanswered gives the error that stands for a form's end without an answer.
func unanswered(o view.Outcome) error {
	switch o.Status {
	case view.StatusDeclined:
		return parley.Refuse(parley.Declined, "%s", cmp.Or(o.Note, "it was declined"))
	case view.StatusExpired:
		return parley.Refuse(parley.Expired, "its deadline passed")
	}
	return parley.Refuse(parley.Cancelled, "%s", cmp.Or(o.Note, "it was cancelled"))
}
