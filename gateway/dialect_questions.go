package gateway

import (
	"encoding/json"
	"slices"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
)

// This is the side of seed 002 where questions are answered: the client of the asker's host.

// Question is a question that waits.
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

// QuestionPending tells that a question waits.
type QuestionPending struct {
	Type     string   `json:"type"` // question_pending
	Question Question `json:"question"`
}

// QuestionSettled tells that one waits no more.
type QuestionSettled struct {
	Type       string            `json:"type"` // question_settled
	QuestionID string            `json:"questionId"`
	SessionID  string            `json:"sessionId"`
	Status     string            `json:"status"`      // answered, cancelled
	By         capabilities.ID   `json:"by,omitzero"` // nobody, if its time had passed
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

// FetchQuestionsFrame asks what waits, in one session or in all.
type FetchQuestionsFrame struct {
	SessionID string `json:"sessionId,omitempty"`
}

// FetchQuestionsResponse has the questions that wait, oldest first.
type FetchQuestionsResponse struct {
	Type      string          `json:"type"` // fetch_questions_response
	RequestID json.RawMessage `json:"requestId,omitempty"`
	Questions []Question      `json:"questions"`
}

func fetchQuestionsFrame(c *wsSession, h *head, text []byte) error {
	var f FetchQuestionsFrame
	if err := api.Decode(text, &f); err != nil {
		return err
	}
	forms, err := c.questions(f.SessionID)
	if err != nil {
		return err
	}
	resp := FetchQuestionsResponse{Type: "fetch_questions_response", RequestID: h.RequestID, Questions: []Question{}}
	for _, q := range forms {
		resp.Questions = append(resp.Questions, questionOf(q.Asked, q.Message))
	}
	c.tell(resp)
	return nil
}

// questions lists the questions of a session that wait for the agent, oldest first; of all sessions for "".
func (c *wsSession) questions(session string) (waiting []dialectForm, err error) {
	if session != "" {
		o := events.Origin{Dialect: questionDialect, Session: session}
		return c.formsOf(c.acts, o, func(q dialectForm) bool { return q.AnswerNeeded && !q.Dismissed })
	}
	for e, err := range c.agent.Mail().All(c.acts, view.MessageFilter{Pending: true}) {
		if err != nil {
			return nil, err
		}
		if q, ok := dialectOf(e); ok && q.Asked.Dialect == questionDialect {
			waiting = append(waiting, q)
		}
	}
	return waiting, nil
}

// QuestionCommand answers a question, or says no to it.
type QuestionCommand struct {
	QuestionID string                        `json:"questionId"`
	SessionID  string                        `json:"sessionId"`
	Values     map[string]capabilities.Value `json:"values,omitempty"`
}

func submitFrame(c *wsSession, _ *head, text []byte) error {
	return c.commandQuestion(text, func(ref capabilities.FormRef, f QuestionCommand) error {
		_, err := c.agent.Answer(c.acts, ref, f.Values)
		return err
	})
}

func cancelFrame(c *wsSession, _ *head, text []byte) error {
	return c.commandQuestion(text, func(ref capabilities.FormRef, _ QuestionCommand) error {
		_, err := c.agent.Decline(c.acts, ref, "")
		return err
	})
}

// commandQuestion does something to a question that was put to the agent.
func (c *wsSession) commandQuestion(text []byte, do func(capabilities.FormRef, QuestionCommand) error) error {
	var f QuestionCommand
	if err := api.Decode(text, &f); err != nil {
		return err
	}
	var e view.Message
	ref, err := capabilities.ParseFormRef(f.QuestionID)
	if err == nil {
		e, err = c.agent.Message(c.acts, ref)
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
	err = do(ref, f)
	switch parley.CodeOf(err) {
	case parley.AlreadyDeclined, parley.AlreadyExpired: // to this dialect they are all one
		return parley.Refuse(parley.AlreadyCancelled, "%s", parley.AsError(err).Message)
	}
	return err
}
