package gateway

import (
	"cmp"
	"fmt"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
)

// The dialect of seed 003: an agent of a run waits for a person's text, and whoever watches the run may give it.
const (
	runDialect = "run"
	inputField = "text"
)

// InputRequest is an input that is waited for, from the run and to who watches it.
type InputRequest struct {
	Type      string            `json:"type"` // request_input
	RunID     string            `json:"runId"`
	AgentName string            `json:"agentName"`
	Prompt    string            `json:"prompt,omitempty"`
	RequestID string            `json:"requestId,omitempty"`
	Form      string            `json:"form,omitempty"` // to who watches
	TS        capabilities.Time `json:"ts,omitzero"`
}

// UserInput is an input, from who gives it and to the run.
type UserInput struct {
	Type      string            `json:"type"` // user_input
	RunID     string            `json:"runId"`
	AgentName string            `json:"agentName"`
	Text      string            `json:"text"`
	RequestID string            `json:"requestId,omitempty"`
	Form      string            `json:"form,omitempty"` // the one that it is for: needed once two agents have used the same names
	TS        capabilities.Time `json:"ts,omitzero"`
}

// RunFrame is about a run.
type RunFrame struct {
	RunID string `json:"runId"`
}

// inputNames are what an input goes by.
type inputNames struct {
	RunID     string `json:"runId"`
	AgentName string `json:"agentName"`
	RequestID string `json:"requestId"`
	Prompt    string `json:"prompt"`
	Text      string `json:"text"`
	Form      string `json:"form"`
}

func readInput(text []byte) (f inputNames, err error) {
	if err := decode(text, &f); err != nil {
		return f, err
	}
	return f, cmp.Or(checkID("the runId", f.RunID), checkID("the agentName", f.AgentName))
}

func (f inputNames) isOf(m mark) bool { return m.Run == f.RunID && m.Agent == f.AgentName }

// requestInputFrame asks for an input, or takes up again what was asked and not received.
func requestInputFrame(c *wsSession, _ *head, text []byte) error {
	f, err := readInput(text)
	if err != nil {
		return err
	}
	defer c.server.perSession.lock(c.principal.agent.ID().String() + f.RunID)()
	asked, err := c.formsOf(c.acts, runDialect, view.MessageFilter{All: true}, func(m mark, e view.Message) bool { return e.Sent && f.isOf(m) })
	if err != nil {
		return err
	}
	m := mark{Dialect: runDialect, ID: f.RequestID, Run: f.RunID, Agent: f.AgentName, Turn: len(asked) + 1, Bare: f.Prompt == ""}
	for _, old := range asked {
		if old.Dismissed || old.Outcome != nil && old.Outcome.Status != view.StatusAnswered {
			continue // that is over
		}
		if old.ID == m.ID && old.Bare == m.Bare && (m.Bare || old.Description == f.Prompt) {
			m = old.mark
			continue
		}
		if err := c.moveOn(old); err != nil {
			return err
		}
	}
	return c.relay.ask(m, actors.Ask{
		Title:       f.AgentName,
		Description: cmp.Or(f.Prompt, fmt.Sprintf("%s, in run %s, waits for your input.", f.AgentName, f.RunID)),
		Fields:      []events.Field{{Name: inputField, Label: "Input", Type: events.Text}},
	})
}

// moveOn ends what an agent of a run asked before it asked something else: it waits for one thing at a time.
func (c *wsSession) moveOn(old markedForm) error {
	which := actors.Which(old.MessageID.String())
	if old.Outcome == nil {
		if _, err := c.principal.agent.Cancel(c.acts, which, "the agent asked something else"); err != nil && !isSettled(err) {
			return err
		}
	}
	return c.principal.agent.Dismiss(c.acts, which)
}

// inputReceivedFrame takes note that an input has arrived, and need not be sent again: the asker's copy of the form
// is dismissed.
func inputReceivedFrame(c *wsSession, _ *head, text []byte) error {
	f, err := readInput(text)
	if err != nil {
		return err
	}
	answered, err := c.formsOf(c.acts, runDialect, view.MessageFilter{All: true}, func(m mark, e view.Message) bool {
		return e.Sent && !e.Dismissed && f.isOf(m) && e.Outcome != nil
	})
	for _, a := range answered {
		if err := c.principal.agent.Dismiss(c.acts, actors.Which(a.MessageID.String())); err != nil {
			return err
		}
	}
	return err
}

// userInputFrame gives an input.
func userInputFrame(c *wsSession, _ *head, text []byte) error {
	f, err := readInput(text)
	if err != nil {
		return err
	}
	none := parley.Refuse(parley.NoPendingInput, "No pending input request for run %s agent %s", f.RunID, f.AgentName)
	form, err := c.asked(c.acts, calling{
		dialect: runDialect, form: f.Form, repeats: true, none: none, called: func(m mark, _ view.Message) bool { return f.isOf(m) },
	})
	if err != nil {
		return err
	}
	values := map[string]capabilities.Value{inputField: capabilities.String(f.Text)}
	_, err = c.principal.agent.Answer(c.acts, actors.Answer{Which: actors.Which(form.MessageID.String()), Values: values})
	if isSettled(err) {
		return none
	}
	return err
}

// watchRunFrame has the client told of what a run waits for.
func watchRunFrame(c *wsSession, h *head, text []byte) error {
	var f RunFrame
	if err := decode(text, &f); err != nil {
		return err
	}
	if err := checkID("the runId", f.RunID); err != nil {
		return err
	}
	if h.RequestID != nil {
		c.tell(subscribed{Type: "subscribed", regarding: h.regarding})
	}
	return c.relay.watchRun(f.RunID)
}

func inputPosed(m mark, e view.Message) any {
	f := InputRequest{Type: "request_input", RunID: m.Run, AgentName: m.Agent, Prompt: e.Description, RequestID: m.ID, Form: e.MessageID.String(), TS: e.Date}
	if m.Bare {
		f.Prompt = ""
	}
	return f
}

// inputSettled says nothing: who watches a run sees it go on.
func inputSettled(mark, view.Message, view.Outcome) any { return nil }

func inputOutcome(m mark, _ string, o view.Outcome) any {
	if o.Status != view.StatusAnswered {
		return inputFailed{failed(regarding{}, unanswered(o)), m.Run, m.Agent, m.ID}
	}
	values, _ := o.Values.AsRecord()
	given, _ := values[inputField].AsString()
	return UserInput{Type: "user_input", RunID: m.Run, AgentName: m.Agent, Text: given, RequestID: m.ID, TS: o.At}
}

// inputFailed says that there will be no input.
type inputFailed struct {
	failureFrame
	RunID     string `json:"runId"`
	AgentName string `json:"agentName"`
	RequestID string `json:"requestId,omitempty"`
}
