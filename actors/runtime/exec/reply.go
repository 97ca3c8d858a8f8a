package exec

import (
	"encoding/json"
	"math"
	"time"

	"parley"
	"parley/actors/runtime"
)

// The lines that a program gets on its input.

type promptLine struct {
	Type  string `json:"type"` // prompt
	ID    string `json:"id"`   // of the message
	Run   string `json:"run"`
	Agent string `json:"agent"`
	From  string `json:"from"`
	Text  string `json:"text"`
}

type answerLine struct {
	Type   string          `json:"type"` // answer
	ID     string          `json:"id"`
	Status string          `json:"status"` // answered, declined, cancelled or expired
	Value  json.RawMessage `json:"value,omitempty"`
	Values json.RawMessage `json:"values,omitempty"`
	By     string          `json:"by,omitempty"`
	Note   string          `json:"note,omitempty"`
}

type decisionLine struct {
	Type     string `json:"type"` // decision
	ID       string `json:"id"`
	Approved bool   `json:"approved"`
	Always   bool   `json:"always"`
	Reason   string `json:"reason,omitempty"`
}

type sentLine struct {
	Type string `json:"type"` // sent
	ID   string `json:"id"`
}

type cancelLine struct {
	Type string `json:"type"` // cancel
	Run  string `json:"run"`
}

type errorLine struct {
	Type    string            `json:"type"` // error
	ID      string            `json:"id,omitempty"`
	Code    parley.Code       `json:"code"`
	Message string            `json:"message"`
	Hint    string            `json:"hint,omitempty"`
	Fields  map[string]string `json:"fields,omitempty"`
}

func promptFrame(p runtime.Prompt, written chan error) runtime.Frame {
	f := runtime.NewFrame(promptLine{Type: "prompt", ID: p.Message, Run: p.Run, Agent: p.Agent, From: p.From, Text: p.Text})
	f.Written = written
	return f
}

// refusal says what is wrong with what a program said.
func refusal(id string, err error) runtime.Frame {
	e := parley.AsError(err)
	return runtime.NewFrame(errorLine{Type: "error", ID: id, Code: e.Code, Message: e.Message, Hint: e.Hint, Fields: e.Fields})
}

// milliseconds is a time that a program gives, as long as times can be.
func milliseconds(ms int64) time.Duration {
	return time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}
