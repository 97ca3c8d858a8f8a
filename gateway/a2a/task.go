package a2a

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/exchange"
	"parley/gateway/sanitize"
)

// taskOf returns an exchange as a task. Trouble, if any, is the reason why the caller's answer was refused.
func taskOf(e *exchange.Exchange, trouble error) *a2a.Task {
	t := &a2a.Task{ID: a2a.TaskID(e.ID()), ContextID: e.Agent(), Status: statusOf(e, trouble)}
	if e.Form.Sent {
		first := messageOf(t, e.ID(), a2a.NewTextPart(exchange.Words(&e.Form)))
		first.Role = a2a.MessageRoleUser
		t.History = []*a2a.Message{first}
	}
	if a := artifactOf(&e.Form); a != nil {
		t.Artifacts = []*a2a.Artifact{a}
	}
	return t
}

// messageOf returns a message of the agent within a task.
func messageOf(t a2a.TaskInfoProvider, id string, parts ...*a2a.Part) *a2a.Message {
	info := t.TaskInfo()
	return &a2a.Message{ID: id, TaskID: info.TaskID, ContextID: info.ContextID, Role: a2a.MessageRoleAgent, Parts: parts}
}

func statusOf(e *exchange.Exchange, trouble error) a2a.TaskStatus {
	info := a2a.TaskInfo{TaskID: a2a.TaskID(e.ID()), ContextID: e.Agent()}
	at := timeOf(e.Form.Date)
	s := a2a.TaskStatus{State: a2a.TaskStateWorking, Timestamp: at}
	switch {
	case e.Ended():
		o := e.Form.Outcome
		s.State, s.Timestamp = endOf(o.Status, e.Form.Sent), timeOf(o.At)
		if o.Note != "" {
			s.Message = messageOf(info, e.ID()+" end", a2a.NewTextPart(sanitize.Lines(o.Note)))
		}
	case e.Question != nil:
		s.State, s.Timestamp = a2a.TaskStateInputRequired, timeOf(e.Question.Date)
		s.Message = messageOf(info, e.Question.MessageID.String(), questionParts(e.Question, trouble)...)
		s.Message.Extensions = []string{Extension}
	case e.Approval != nil:
		s.State, s.Timestamp = a2a.TaskStateAuthRequired, timeOf(e.Approval.Date)
		s.Message = messageOf(info, e.Approval.MessageID.String(), a2a.NewTextPart("The agent waits for permission to make a call. Decide on the node's page, or with parley."))
	case e.Form.Sent && !e.Form.Delivered:
		s.State = a2a.TaskStateSubmitted
	}
	return s
}

func timeOf(t capabilities.Time) *time.Time {
	at := t.Std().UTC()
	return &at
}

// endOf returns the state of a task whose form has ended. A form that the caller declined is one that it cancelled.
func endOf(s view.FormStatus, sent bool) a2a.TaskState {
	switch s {
	case view.StatusAnswered:
		return a2a.TaskStateCompleted
	case view.StatusDeclined:
		if sent {
			return a2a.TaskStateRejected
		}
		return a2a.TaskStateCanceled
	case view.StatusExpired:
		return a2a.TaskStateFailed
	}
	return a2a.TaskStateCanceled
}

// questionParts returns a form for the caller: its text, the reasons why an answer was refused, and its schema.
func questionParts(q *view.Message, trouble error) []*a2a.Part {
	parts := []*a2a.Part{a2a.NewTextPart(exchange.Words(q))}
	data := map[string]any{"form": q.MessageID.String(), "revision": q.AnswerRevision(), "schema": exchange.Schema(q.Fields)}
	if q.Title != "" {
		data["title"] = sanitize.Line(q.Title)
	}
	if q.Deadline != 0 {
		data["deadline"] = q.Deadline
	}
	if trouble != nil {
		e := parley.AsError(trouble)
		text := "That was not accepted: " + e.Message
		shown := map[string]string{}
		for _, name := range slices.Sorted(maps.Keys(e.Fields)) {
			shown[name] = sanitize.Lines(e.Fields[name])
			text += "\n" + name + ": " + e.Fields[name]
		}
		parts = append(parts, a2a.NewTextPart(sanitize.Lines(text)))
		data["error"] = map[string]any{"code": e.Code, "fields": shown}
	}
	part := a2a.NewDataPart(data)
	part.MediaType = "application/json"
	return append(parts, part)
}

// artifactOf returns the answer to a form, or nil.
func artifactOf(m *view.Message) *a2a.Artifact {
	if m.Outcome == nil || m.Outcome.Status != view.StatusAnswered {
		return nil
	}
	a := &a2a.Artifact{ID: "answer", Name: "Answer"}
	if text := m.Outcome.Text(exchange.AnswerField); text != "" {
		a.Parts = append(a.Parts, a2a.NewTextPart(sanitize.Lines(text)))
	}
	values, err := json.Marshal(m.Outcome.Values)
	if err == nil {
		part := a2a.NewDataPart(json.RawMessage(sanitize.JSON(values)))
		part.MediaType = "application/json"
		a.Parts = append(a.Parts, part)
	}
	return a
}
