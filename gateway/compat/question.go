package compat

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
	"parley/mailbox/form"
)

// questionDialect is the dialect of seed 002: the agent of a session asks one question at a time, as a form on a page.
const questionDialect = "question"

// The error codes of questions.
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
	ReplacePending bool           `json:"replacePending,omitempty"` // cancel the session's earlier questions
	Multiple       bool           `json:"multiple,omitempty"`       // keep the session's earlier questions open
}

func questionFrame(r *Relay, _ *Head, text []byte) error {
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
	for i := range f.Schema.Fields {
		f.Schema.Fields[i].Type = cmp.Or(f.Schema.Fields[i].Type, events.Text)
	}
	if err := f.Schema.check(); err != nil {
		return err
	}
	ask := parley.Form{Title: f.Title, Description: cmp.Or(f.Context, f.Title), Fields: f.Schema.fields()}
	if f.TimeoutMs > 0 {
		ask.Deadline = capabilities.At(time.Now().Add(time.Duration(min(f.TimeoutMs, maxTimeoutMs)) * time.Millisecond))
	}
	defer r.locks.lock(r.agent.ID().String() + f.SessionID)()
	if !f.Multiple {
		if err := r.makeRoom(f); err != nil {
			return err
		}
	}
	return r.ask(f.origin(), ask)
}

// origin returns the origin of the question's form.
func (f QuestionFrame) origin() events.Origin {
	return events.Origin{Dialect: questionDialect, ID: f.RequestID, Session: f.SessionID, Submit: f.Schema.SubmitLabel, Bare: f.Context == ""}
}

// maxTimeoutMs bounds a timeout in milliseconds: a century.
const maxTimeoutMs = 100 * 365 * 24 * 3600 * 1000

// makeRoom cancels the session's pending question if it is to be replaced. Otherwise it refuses with PENDING_EXISTS.
func (r *Relay) makeRoom(f QuestionFrame) error {
	again, err := r.agent.Mail().HasAsked(r.ctx, keyOf(f.origin()))
	if err != nil || again { // it is the same question again
		return err
	}
	all, err := r.formsOf(r.ctx, f.origin(), func(q dialectForm) bool { return q.Sent && q.Outcome == nil })
	if err != nil {
		return err
	}
	for _, q := range all {
		if !f.ReplacePending {
			return parley.Refuse(PendingExists, "session %s has the question %s pending", f.SessionID, q.MessageID).
				WithHint("set replacePending to ask this one in its place, or multiple to ask both")
		}
		if err := r.cancel(q.MessageID, "another question took its place"); err != nil {
			return err
		}
	}
	return nil
}

// isSettled reports whether err is that a form has ended already.
func isSettled(err error) bool {
	switch parley.CodeOf(err) {
	case parley.AlreadyAnswered, parley.AlreadyCancelled, parley.AlreadyDeclined, parley.AlreadyExpired:
		return true
	}
	return false
}

// QuestionAnswered sends the outcome of a question to the asker.
type QuestionAnswered struct {
	Type      string          `json:"type"` // ask_user_response
	RequestID string          `json:"requestId"`
	Result    QuestionOutcome `json:"result"`
}

// QuestionOutcome is an answer, or the reason for its absence.
type QuestionOutcome struct {
	Status     string          `json:"status"` // answered, cancelled
	Answer     *QuestionAnswer `json:"answer,omitempty"`
	QuestionID string          `json:"questionId,omitempty"`
	SessionID  string          `json:"sessionId,omitempty"`
	Reason     view.FormStatus `json:"reason,omitempty"` // declined, cancelled, expired
}

// QuestionAnswer has the values of an answer.
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

// Question is a question that waits for an answer, as the client of the asker's host sees it.
type Question struct {
	QuestionID string            `json:"questionId"`
	SessionID  string            `json:"sessionId"`
	Title      string            `json:"title"`
	Context    string            `json:"context,omitempty"`
	Schema     QuestionSchema    `json:"schema"`
	AskedAt    capabilities.Time `json:"askedAt"`
	Deadline   capabilities.Time `json:"deadline,omitzero"`
	From       capabilities.ID   `json:"from"`
	FromName   string            `json:"fromName,omitempty"`
}

func questionOf(m events.Origin, e view.Message) Question {
	q := Question{
		QuestionID: e.MessageID.String(), SessionID: m.Session, Title: e.Title, Context: e.Description,
		Schema: schemaOf(m, e.Fields), AskedAt: e.Date, Deadline: e.Deadline, From: e.From, FromName: e.FromName,
	}
	if m.Bare {
		q.Context = ""
	}
	return q
}

// QuestionPending announces a question that waits.
type QuestionPending struct {
	Type     string   `json:"type"` // question_pending
	Question Question `json:"question"`
}

// QuestionSettled announces that a question waits no more.
type QuestionSettled struct {
	Type       string            `json:"type"` // question_settled
	QuestionID string            `json:"questionId"`
	SessionID  string            `json:"sessionId"`
	Status     string            `json:"status"`      // answered, cancelled
	By         capabilities.ID   `json:"by,omitzero"` // zero if it expired
	ByName     string            `json:"byName,omitempty"`
	At         capabilities.Time `json:"at"`
}

func questionPosed(m events.Origin, e view.Message) any {
	return QuestionPending{Type: "question_pending", Question: questionOf(m, e)}
}

func questionSettled(m events.Origin, e view.Message, o view.Outcome) any {
	settled := QuestionSettled{
		Type: "question_settled", QuestionID: e.MessageID.String(), SessionID: m.Session, Status: "cancelled",
		By: o.By, ByName: o.ByName, At: o.At,
	}
	if o.Status == view.StatusAnswered {
		settled.Status = "answered"
	}
	return settled
}

// FetchQuestionsFrame asks for the questions that wait, of one session or of all.
type FetchQuestionsFrame struct {
	SessionID string `json:"sessionId,omitempty"`
}

// FetchQuestionsResponse has the questions that wait, oldest first.
type FetchQuestionsResponse struct {
	Type      string          `json:"type"` // fetch_questions_response
	RequestID json.RawMessage `json:"requestId,omitempty"`
	Questions []Question      `json:"questions"`
}

func fetchQuestionsFrame(r *Relay, h *Head, text []byte) error {
	var f FetchQuestionsFrame
	if err := api.Decode(text, &f); err != nil {
		return err
	}
	forms, err := r.questions(f.SessionID)
	if err != nil {
		return err
	}
	resp := FetchQuestionsResponse{Type: "fetch_questions_response", RequestID: h.RequestID, Questions: []Question{}}
	for _, q := range forms {
		resp.Questions = append(resp.Questions, questionOf(q.Asked, q.Message))
	}
	r.session.Tell(resp)
	return nil
}

// questions returns the questions of a session that wait for the agent, oldest first; of all sessions for "".
func (r *Relay) questions(session string) (waiting []dialectForm, err error) {
	if session != "" {
		o := events.Origin{Dialect: questionDialect, Session: session}
		return r.formsOf(r.ctx, o, func(q dialectForm) bool { return q.AnswerNeeded && !q.Dismissed })
	}
	for e, err := range r.agent.Mail().All(r.ctx, view.MessageFilter{Pending: true}) {
		if err != nil {
			return nil, err
		}
		if q, ok := dialectOf(e); ok && q.Asked.Dialect == questionDialect {
			waiting = append(waiting, q)
		}
	}
	return waiting, nil
}

// QuestionCommand answers or declines a question.
type QuestionCommand struct {
	QuestionID string                        `json:"questionId"`
	SessionID  string                        `json:"sessionId"`
	Values     map[string]capabilities.Value `json:"values,omitempty"`
}

func submitFrame(r *Relay, _ *Head, text []byte) error {
	return r.commandQuestion(text, func(form capabilities.ID, f QuestionCommand) error {
		err := r.answer(form, f.Values)
		if parley.CodeOf(err) == parley.AlreadyAnswered && r.isAnswer(form, f.Values) {
			return nil // the client lost what came back, and submits again
		}
		return err
	})
}

// isAnswer reports whether the agent answered a form with these values.
func (r *Relay) isAnswer(id capabilities.ID, values map[string]capabilities.Value) bool {
	e, err := r.agent.Message(r.ctx, capabilities.FormID(id))
	if err != nil || e.Outcome == nil || e.Outcome.By != r.agent.ID() {
		return false
	}
	schema, err := form.CompileAccepted(e.Fields)
	if err != nil {
		return false
	}
	stored, err := schema.Check(values)
	return err == nil && capabilities.Record(stored).Equal(e.Outcome.Values)
}

func cancelFrame(r *Relay, _ *Head, text []byte) error {
	return r.commandQuestion(text, func(form capabilities.ID, _ QuestionCommand) error {
		return api.DeclineForm.Run(r.ctx, r.session, api.DeclineRequest{FormRef: refTo(form)})
	})
}

// commandQuestion calls do for a question that the agent received.
func (r *Relay) commandQuestion(text []byte, do func(capabilities.ID, QuestionCommand) error) error {
	var f QuestionCommand
	if err := api.Decode(text, &f); err != nil {
		return err
	}
	var e view.Message
	ref, err := capabilities.ParseFormRef(f.QuestionID)
	if err == nil {
		e, err = r.agent.Message(r.ctx, ref)
	}
	q, ok := dialectOf(e)
	if hidden := []parley.Code{parley.NoSuchMessage, parley.InvalidArgument}; err != nil && !slices.Contains(hidden, parley.CodeOf(err)) {
		return err
	}
	if err != nil || !ok || q.Asked.Dialect != questionDialect || !e.Received || e.MessageID.String() != f.QuestionID {
		return parley.Refuse(QuestionNotFound, "there is no question %.120q", f.QuestionID)
	}
	if q.Asked.Session != f.SessionID {
		return parley.Refuse(SessionMismatch, "question %s is not of session %.80q", f.QuestionID, f.SessionID)
	}
	err = do(e.MessageID, f)
	switch parley.CodeOf(err) {
	case parley.AlreadyDeclined, parley.AlreadyExpired: // this dialect does not tell them apart
		return parley.Refuse(parley.AlreadyCancelled, "%s", parley.AsError(err).Message)
	}
	return err
}
