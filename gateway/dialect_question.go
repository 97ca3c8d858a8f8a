package gateway

import (
	"cmp"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
)

// The dialect of seed 002: the agent of a session asks one question at a time, which is a form on a page.
const questionDialect = "question"

// The codes that only questions have.
const (
	QuestionNotFound parley.Code = "QUESTION_NOT_FOUND"
	SessionMismatch  parley.Code = "SESSION_MISMATCH"
	PendingExists    parley.Code = "PENDING_EXISTS"
)

// QuestionFrame asks a question. The same requestId in a session is the same question.
type QuestionFrame struct {
	RequestID      string         `json:"requestId"`
	SessionID      string         `json:"sessionId"`
	Title          string         `json:"title"`
	Context        string         `json:"context,omitempty"`
	Schema         QuestionSchema `json:"schema"`
	TimeoutMs      int64          `json:"timeoutMs,omitempty"`
	ReplacePending bool           `json:"replacePending,omitempty"` // what the session asked before is cancelled
	Multiple       bool           `json:"multiple,omitempty"`       // and what it asked before goes on waiting
}

// QuestionSchema is a question's form.
type QuestionSchema struct {
	Fields      []QuestionField `json:"fields"`
	SubmitLabel string          `json:"submitLabel,omitempty"`
}

// QuestionField is a field: a form's, in the words of this dialect.
type QuestionField struct {
	Type         events.FieldType   `json:"type"`
	Name         string             `json:"name"`
	Label        string             `json:"label"`
	Required     bool               `json:"required,omitempty"`
	Placeholder  string             `json:"placeholder,omitempty"`
	DefaultValue capabilities.Value `json:"defaultValue,omitzero"`
	HelpText     string             `json:"helpText,omitempty"`
	Options      []events.Option    `json:"options,omitempty"`
}

func questionFrame(c *wsSession, _ *head, text []byte) error {
	var f QuestionFrame
	if err := api.Decode(text, &f); err != nil {
		return err
	}
	if err := cmp.Or(checkID("the requestId", f.RequestID), checkID("the sessionId", f.SessionID)); err != nil {
		return err
	}
	if f.Title == "" || f.TimeoutMs < 0 {
		return parley.Refuse(parley.InvalidArgument, "a question has a title, and a timeoutMs that is not negative")
	}
	ask := api.FormRequest{Title: f.Title, Description: cmp.Or(f.Context, f.Title), Fields: api.FieldsOf(f.Schema.fields()...)}
	if f.TimeoutMs > 0 {
		ask.Deadline = capabilities.At(time.Now().Add(time.Duration(min(f.TimeoutMs, maxTimeoutMs)) * time.Millisecond))
	}
	defer c.server.perSession.lock(c.agent.ID().String() + f.SessionID)()
	if !f.Multiple {
		if err := c.makeRoom(f); err != nil {
			return err
		}
	}
	return c.relay.ask(f.origin(), ask)
}

// origin returns the origin of the question's form.
func (f QuestionFrame) origin() events.Origin {
	return events.Origin{Dialect: questionDialect, ID: f.RequestID, Session: f.SessionID, Submit: f.Schema.SubmitLabel, Bare: f.Context == ""}
}

// maxTimeoutMs is a century: more than that is for ever.
const maxTimeoutMs = 100 * 365 * 24 * 3600 * 1000

// makeRoom sees to it that the session has no other question pending: it refuses with PENDING_EXISTS, or cancels it.
func (c *wsSession) makeRoom(f QuestionFrame) error {
	again, err := c.agent.Mail().HasAsked(c.acts, keyOf(f.origin()))
	if err != nil || again { // whatever else the session asks
		return err
	}
	all, err := c.formsOf(c.acts, f.origin(), func(q dialectForm) bool { return q.Sent && q.Outcome == nil })
	if err != nil {
		return err
	}
	for _, q := range all {
		if !f.ReplacePending {
			return parley.Refuse(PendingExists, "session %s has the question %s pending", f.SessionID, q.MessageID).
				WithHint("set replacePending to ask this one in its place, or multiple to ask both")
		}
		_, err := c.agent.Cancel(c.acts, capabilities.FormID(q.MessageID), "another question took its place")
		if err != nil && !isSettled(err) {
			return err
		}
	}
	return nil
}

// isSettled reports whether err says no more than that a form has ended.
func isSettled(err error) bool {
	switch parley.CodeOf(err) {
	case parley.AlreadyAnswered, parley.AlreadyCancelled, parley.AlreadyDeclined, parley.AlreadyExpired:
		return true
	}
	return false
}

func (s QuestionSchema) fields() []events.Field {
	fields := make([]events.Field, len(s.Fields))
	for i, f := range s.Fields {
		fields[i] = events.Field{
			Name: f.Name, Label: f.Label, Type: cmp.Or(f.Type, events.Text), Required: f.Required, Placeholder: f.Placeholder,
			Default: f.DefaultValue, Help: f.HelpText, Options: f.Options,
		}
	}
	return fields
}

func schemaOf(m events.Origin, fields []events.Field) QuestionSchema {
	s := QuestionSchema{SubmitLabel: m.Submit, Fields: make([]QuestionField, len(fields))}
	for i, f := range fields {
		s.Fields[i] = QuestionField{
			Type: f.Type, Name: f.Name, Label: f.Label, Required: f.Required, Placeholder: f.Placeholder,
			DefaultValue: f.Default, HelpText: f.Help, Options: f.Options,
		}
	}
	return s
}

// QuestionAnswered is the response to who asked: how the question ended.
type QuestionAnswered struct {
	Type      string          `json:"type"` // ask_user_response
	RequestID string          `json:"requestId"`
	Result    QuestionOutcome `json:"result"`
}

// QuestionOutcome is an answer, or that there will be none, and then why.
type QuestionOutcome struct {
	Status     string          `json:"status"` // answered, cancelled
	Answer     *QuestionAnswer `json:"answer,omitempty"`
	QuestionID string          `json:"questionId,omitempty"`
	SessionID  string          `json:"sessionId,omitempty"`
	Reason     view.FormStatus `json:"reason,omitempty"` // declined, cancelled, expired
}

// QuestionAnswer is the values that were given.
type QuestionAnswer struct {
	QuestionID  string             `json:"questionId"`
	SessionID   string             `json:"sessionId"`
	Values      capabilities.Value `json:"values"`
	SubmittedAt capabilities.Time  `json:"submittedAt"`
}

func questionOutcome(m events.Origin, form string, o view.Outcome) any {
	result := QuestionOutcome{Status: "cancelled", QuestionID: form, SessionID: m.Session, Reason: o.Status}
	if o.Status == view.StatusAnswered {
		result = QuestionOutcome{Status: "answered", Answer: &QuestionAnswer{
			QuestionID: form, SessionID: m.Session, Values: o.Values, SubmittedAt: o.At,
		}}
	}
	return QuestionAnswered{Type: "ask_user_response", RequestID: m.ID, Result: result}
}
