package compat

import (
	"cmp"
	"fmt"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
)

// runDialect is the dialect of seed 003: an agent of a run waits for a person's text, which any watcher of the run may
// give.
const (
	runDialect = "run"
	inputField = "text"
)

// InputRequest asks for an input. It goes from the run to its watchers.
type InputRequest struct {
	Type      string            `json:"type"` // request_input
	RunID     string            `json:"runId"`
	AgentName string            `json:"agentName"`
	Prompt    string            `json:"prompt,omitempty"`
	RequestID string            `json:"requestId,omitempty"`
	Form      string            `json:"form,omitempty"` // to watchers
	TS        capabilities.Time `json:"ts,omitzero"`
}

// UserInput is an input. It goes from a watcher to the run.
type UserInput struct {
	Type      string            `json:"type"` // user_input
	RunID     string            `json:"runId"`
	AgentName string            `json:"agentName"`
	Text      string            `json:"text"`
	RequestID string            `json:"requestId,omitempty"`
	Form      string            `json:"form,omitempty"` // needed when two agents have used the same names
	TS        capabilities.Time `json:"ts,omitzero"`
}

// RunFrame names a run to watch.
type RunFrame struct {
	RunID string `json:"runId"`
}

// inputNames has the members of frames that name an input.
type inputNames struct {
	RunID     string `json:"runId"`
	AgentName string `json:"agentName"`
	RequestID string `json:"requestId"`
	Prompt    string `json:"prompt"`
	Form      string `json:"form"`

	Text *string `json:"text"` // nil if it is missing; "" is an input
}

func readInput(text []byte) (f inputNames, err error) {
	if err := api.Decode(text, &f); err != nil {
		return f, err
	}
	return f, cmp.Or(checkID("the runId", f.RunID), checkID("the agentName", f.AgentName))
}

// origin returns the origin of the inputs of the run's agent.
func (f inputNames) origin() events.Origin {
	return events.Origin{Dialect: runDialect, Run: f.RunID, Agent: f.AgentName}
}

func (f inputNames) isOf(o events.Origin) bool { return o.Run == f.RunID && o.Agent == f.AgentName }

// requestInputFrame asks for an input, or resumes a request whose input was not received.
func requestInputFrame(r *Relay, _ *Head, text []byte) error {
	f, err := readInput(text)
	if err != nil {
		return err
	}
	defer r.locks.lock(r.agent.ID().String() + f.RunID)()
	in, err := r.agent.Mail().FormsOf(r.ctx, f.origin())
	if err != nil {
		return err
	}
	o := f.origin()
	o.ID, o.Bare, o.Turn = f.RequestID, f.Prompt == "", in.Cursor+1 // no form before has this turn: each moves the cursor
	for _, e := range in.Messages {
		old, ok := dialectOf(e)
		if !ok || !e.Sent || e.Dismissed || e.Outcome != nil && e.Outcome.Status != view.StatusAnswered {
			continue // it has ended
		}
		if old.Asked.ID == o.ID && old.Asked.Bare == o.Bare && (o.Bare || old.Description == f.Prompt) {
			o = old.Asked
			continue
		}
		if err := r.moveOn(old); err != nil {
			return err
		}
	}
	return r.ask(o, parley.Form{
		Title:       f.AgentName,
		Description: cmp.Or(f.Prompt, fmt.Sprintf("%s, in run %s, waits for your input.", f.AgentName, f.RunID)),
		Fields:      []events.Field{{Name: inputField, Label: "Input", Type: events.Text}},
	})
}

// moveOn ends the earlier request of a run's agent, which waits for one input at a time.
func (r *Relay) moveOn(old dialectForm) error {
	if old.Outcome == nil {
		if err := r.cancel(old.MessageID, "the agent asked something else"); err != nil {
			return err
		}
	}
	return r.dismiss(old.MessageID)
}

// inputReceivedFrame acknowledges an input, which is not sent again. It dismisses the asker's copy of the form.
func inputReceivedFrame(r *Relay, _ *Head, text []byte) error {
	f, err := readInput(text)
	if err != nil {
		return err
	}
	answered, err := r.formsOf(r.ctx, f.origin(), func(a dialectForm) bool { return a.Sent && !a.Dismissed && a.Outcome != nil })
	for _, a := range answered {
		if err := r.dismiss(a.MessageID); err != nil {
			return err
		}
	}
	return err
}

// userInputFrame answers a request with an input.
func userInputFrame(r *Relay, _ *Head, text []byte) error {
	f, err := readInput(text)
	if err != nil {
		return err
	}
	if f.Text == nil {
		return parley.Refuse(parley.InvalidArgument, "a user_input needs a text")
	}
	none := parley.Refuse(parley.NoPendingInput, "No pending input request for run %s agent %s", f.RunID, f.AgentName)
	form, err := r.asked(r.ctx, calling{
		origin: f.origin(), form: f.Form, repeats: true, none: none, called: func(q dialectForm) bool { return f.isOf(q.Asked) },
	})
	if err != nil {
		return err
	}
	err = r.answer(form.MessageID, map[string]capabilities.Value{inputField: capabilities.String(*f.Text)})
	if isSettled(err) {
		return none
	}
	return err
}

// watchRunFrame subscribes the client to the inputs that a run waits for.
func watchRunFrame(r *Relay, h *Head, text []byte) error {
	var f RunFrame
	if err := api.Decode(text, &f); err != nil {
		return err
	}
	if err := checkID("the runId", f.RunID); err != nil {
		return err
	}
	if h.RequestID != nil {
		r.session.Tell(Subscribed{Type: "subscribed", Regarding: h.Regarding})
	}
	return r.watchRun(f.RunID)
}

func inputPosed(m events.Origin, e view.Message) any {
	f := InputRequest{Type: "request_input", RunID: m.Run, AgentName: m.Agent, Prompt: e.Description, RequestID: m.ID, Form: e.MessageID.String(), TS: e.Date}
	if m.Bare {
		f.Prompt = ""
	}
	return f
}

// inputSettled returns nil: watchers of a run see it go on.
func inputSettled(events.Origin, view.Message, view.Outcome) any { return nil }

func inputOutcome(m events.Origin, _ string, o view.Outcome) any {
	if o.Status != view.StatusAnswered {
		return inputFailed{Failed(Regarding{}, unanswered(o)), m.Run, m.Agent, m.ID}
	}
	values, _ := o.Values.AsRecord()
	given, _ := values[inputField].AsString()
	return UserInput{Type: "user_input", RunID: m.Run, AgentName: m.Agent, Text: given, RequestID: m.ID, TS: o.At}
}

// inputFailed reports to the run that there will be no input.
type inputFailed struct {
	FailureFrame
	RunID     string `json:"runId"`
	AgentName string `json:"agentName"`
	RequestID string `json:"requestId,omitempty"`
}
