package compat

import (
	"cmp"
	"encoding/json"
	"sync"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
)

// MaxRequestID bounds the IDs of a client's requests and subscriptions, in bytes.
const MaxRequestID = 256

// Head has the members that all frames have.
type Head struct {
	Type string `json:"type"`
	Regarding
}

// Regarding has the IDs of a frame's request. An error frame repeats them.
type Regarding struct {
	RequestID      json.RawMessage `json:"requestId,omitempty"`
	ID             json.RawMessage `json:"id,omitempty"` // of the dialect that has no requestId
	SubscriptionID json.RawMessage `json:"subscriptionId,omitempty"`
	QuestionID     json.RawMessage `json:"questionId,omitempty"`
}

// calledFor returns the ID of the form that an answer is for: the one within the payload, or else the one outside. An error
// is about that ID then.
func (h *Head) calledFor(within, outside string) string {
	id := cmp.Or(within, outside)
	if raw, err := json.Marshal(id); err == nil && IsBrief(raw) {
		h.ID = raw
	}
	return id
}

// IsBrief reports whether a JSON text is a string or number that is short enough for an ID.
func IsBrief(raw json.RawMessage) bool {
	if len(raw) == 0 {
		return true
	}
	return len(raw) <= MaxRequestID && (raw[0] == '"' || raw[0] == '-' || '0' <= raw[0] && raw[0] <= '9')
}

// FailureFrame is a frame with an error.
type FailureFrame struct {
	Type string `json:"type"` // error
	Regarding
	Code    parley.Code       `json:"code"`
	Message string            `json:"message"`
	Hint    string            `json:"hint,omitempty"`
	Fields  map[string]string `json:"fields,omitempty"`
	TS      capabilities.Time `json:"ts"`
}

// Failed returns the frame for an error.
func Failed(about Regarding, err error) FailureFrame {
	e := api.Shown(err)
	if about.RequestID == nil {
		about.RequestID = about.ID
	}
	return FailureFrame{
		Type: "error", Regarding: about, Code: e.Code, Message: e.Message, Hint: e.Hint, Fields: e.Fields,
		TS: capabilities.At(time.Now()),
	}
}

// Subscribed acknowledges the beginning or the end of a subscription, if a requestId was given.
type Subscribed struct {
	Type string `json:"type"` // subscribed, unsubscribed
	Regarding
}

// Frame is a type of frame of a dialect, from a client to the node.
type Frame struct {
	Scopes []api.Scope // that the client's token needs
	// Handle handles a frame. The session tells the client an error as a FailureFrame about h. Frames of one session are
	// handled one after the other, in the order in which they came.
	Handle func(r *Relay, h *Head, text []byte) error
}

// Frames returns all types of frames of the dialects by name.
func Frames() map[string]Frame {
	looks := []api.Scope{api.ScopeRead}
	asks, answers := []api.Scope{api.ScopeAsk, api.ScopeRead}, []api.Scope{api.ScopeAnswer, api.ScopeRead}
	return map[string]Frame{
		"ask_request":       {asks, askFrame},
		"ask_response":      {answers, askedFrame},
		"approval_request":  {asks, approvalFrame},
		"approval_response": {answers, approvedFrame},

		"ask_user_request":        {asks, questionFrame},
		"questions.submit":        {answers, submitFrame},
		"questions.cancel":        {answers, cancelFrame},
		"fetch_questions_request": {looks, fetchQuestionsFrame},

		"request_input":  {asks, requestInputFrame},
		"input_received": {asks, inputReceivedFrame},
		"user_input":     {answers, userInputFrame},
		"subscribe":      {answers, watchRunFrame},
	}
}

// dialect turns forms into the frames of one system. Each function returns a frame, or nil for none.
type dialect struct {
	posed   func(m events.Origin, e view.Message) any                 // to the answerer: a new form
	settled func(m events.Origin, e view.Message, o view.Outcome) any // to the answerer: its end
	outcome func(m events.Origin, form string, o view.Outcome) any    // to the asker
}

// dialects returns the dialects by the name in the origin of their forms.
var dialects = sync.OnceValue(func() map[string]dialect {
	return map[string]dialect{
		askDialect:      {posed: askPosed, settled: askSettled, outcome: askOutcome},
		approvalDialect: {posed: approvalPosed, settled: approvalSettled, outcome: approvalOutcome},
		questionDialect: {posed: questionPosed, settled: questionSettled, outcome: questionOutcome},
		runDialect:      {posed: inputPosed, settled: inputSettled, outcome: inputOutcome},
	}
})
