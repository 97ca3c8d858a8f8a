package exchange

import (
	"context"
	"encoding/json"
	"math"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
)

// Reply is a caller's reply to a question: values by the names of fields, or a text for a form with one field.
type Reply struct {
	Values map[string]any // JSON values; nil for a text
	Text   string
	Form   string // ID of the question that the reply is to; "" for the present one
	// Revision is that of the question that was shown; 0 for the present one.
	Revision uint64
}

// Answer answers the question of an exchange. It refuses with INVALID_ANSWER, or another code, what the form does not
// accept, and then nothing has changed.
func (e *Exchange) Answer(ctx context.Context, c api.Client, r Reply) error {
	q := e.Question
	switch {
	case q == nil:
		return parley.Refuse(parley.NoPendingInput, "no answer is needed now")
	case r.Form != "" && r.Form != q.MessageID.String():
		return parley.Refuse(parley.NoPendingInput, "the form %s is not the one that waits", parley.Quoted(r.Form, 100))
	}
	request := api.RespondFormRequest{FormRef: api.RefTo(q.MessageID.String()), Answer: parley.Answer{Revision: r.Revision}}
	if r.Revision == 0 {
		request.Revision = q.AnswerRevision()
	}
	if r.Values == nil {
		field, err := onlyField(q)
		if err != nil {
			return err
		}
		request.Texts = []events.FieldText{{Name: field, Text: r.Text}}
		return api.RespondForm.Run(ctx, c, request)
	}
	var err error
	if request.Values, err = valuesOf(r.Values); err != nil {
		return err
	}
	return api.RespondForm.Run(ctx, c, request)
}

// onlyField returns the field that a text answers: the only one, or the only one that is required.
func onlyField(q *view.Message) (string, error) {
	name, required := "", 0
	for _, f := range q.Fields {
		if f.Required || len(q.Fields) == 1 {
			name = f.Name
			required++
		}
	}
	if required != 1 {
		return "", parley.Refuse(parley.InvalidAnswer, "the form has several fields: answer with data, an object with a member for each")
	}
	return name, nil
}

// maxExact is the largest integer up to which JSON numbers are exact in all clients.
const maxExact = 1 << 53

// valuesOf reads JSON values. It refuses numbers that were not read exactly.
func valuesOf(given map[string]any) (map[string]capabilities.Value, error) {
	values := make(map[string]capabilities.Value, len(given))
	for name, v := range given {
		if !isExact(v) {
			return nil, wrongField(name, "a number over 2^53 is not exact: give it as text")
		}
		text, err := json.Marshal(v)
		if err != nil {
			return nil, wrongField(name, "want JSON")
		}
		if values[name], err = capabilities.ParseJSON(text); err != nil {
			return nil, wrongField(name, parley.AsError(err).Message)
		}
	}
	return values, nil
}

func wrongField(name, why string) error {
	e := parley.Refuse(parley.InvalidAnswer, "%s: %s", parley.Quoted(name, 100), why)
	e.Fields = map[string]string{name: why}
	return e
}

func isExact(v any) bool {
	switch v := v.(type) {
	case float64:
		return math.Abs(v) <= maxExact || v != math.Trunc(v)
	case []any:
		for _, e := range v {
			if !isExact(e) {
				return false
			}
		}
	case map[string]any:
		for _, e := range v {
			if !isExact(e) {
				return false
			}
		}
	}
	return true
}

// End withdraws the form of an exchange that the caller has asked, or declines one that it was asked. It refuses with
// the code of the outcome if the form has ended already.
func (e *Exchange) End(ctx context.Context, c api.Client, reason string) error {
	form := api.RefTo(e.ID())
	if e.Form.Sent {
		return api.CancelForm.Run(ctx, c, api.EndRequest{FormRef: form, Reason: reason})
	}
	return api.DeclineForm.Run(ctx, c, api.DeclineRequest{FormRef: form, Revision: e.Form.AnswerRevision(), Reason: reason})
}

// Decline declines the question of an exchange, if it is the one with an ID.
func (e *Exchange) Decline(ctx context.Context, c api.Client, id, reason string) error {
	if e.Question == nil || e.Question.MessageID.String() != id {
		return parley.Refuse(parley.NoPendingInput, "the form %s is not the one that waits", parley.Quoted(id, 100))
	}
	return api.DeclineForm.Run(ctx, c, api.DeclineRequest{FormRef: api.RefTo(id), Revision: e.Question.AnswerRevision(), Reason: reason})
}
