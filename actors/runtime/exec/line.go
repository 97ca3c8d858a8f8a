package exec

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"strings"
	"time"

	"parley"
	"parley/actors/runtime"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/form"
)

// line is a line of JSON from a program. Each type uses some of the fields.
type line struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Text      string          `json:"text"`      // output, send, done
	Prompt    string          `json:"prompt"`    // ask
	Widgets   []widget        `json:"widgets"`   // ask
	To        string          `json:"to"`        // ask, ask_user, send
	Title     string          `json:"title"`     // ask, ask_user
	TimeoutMs int64           `json:"timeoutMs"` // ask, ask_user
	Context   string          `json:"context"`   // ask_user
	Fields    []events.Field  `json:"fields"`    // ask_user
	Tool      string          `json:"tool"`      // approval
	Input     json.RawMessage `json:"input"`     // approval
	Reason    string          `json:"reason"`    // approval
	Part      string          `json:"part"`      // approval
	Message   string          `json:"message"`   // error
	Error     string          `json:"error"`     // done
	Run       string          `json:"run"`       // done: the run that is over; empty is the present one
}

// widget is one way to answer an ask.
type widget struct {
	Type    events.FieldType    `json:"type"`
	Label   string              `json:"label"`
	Options []form.WidgetOption `json:"options"`
	Default capabilities.Value  `json:"default"`
	Several bool                `json:"multiSelect"`
	Other   bool                `json:"other"`
}

// The types of lines.
const (
	typeOutput   = "output"
	typeAsk      = "ask"
	typeAskUser  = "ask_user"
	typeApproval = "approval"
	typeSend     = "send"
	typeError    = "error"
	typeDone     = "done"
)

// parseLine parses a line of output. Anything but a JSON object with a type is plain output, without an error. An
// error is for the program. plain reports whether the line is plain output nevertheless.
func parseLine(text string) (l line, plain bool, err error) {
	body := bytes.TrimSpace([]byte(text))
	if len(body) == 0 || body[0] != '{' || !json.Valid(body) {
		return line{}, true, nil
	}
	if capabilities.Nesting(body) > runtime.MaxDepth {
		return line{}, true, parley.Refuse(parley.InvalidArgument, "the line nests deeper than %d", runtime.MaxDepth)
	}
	var head struct {
		Type any `json:"type"`
		ID   any `json:"id"`
	}
	if err := json.Unmarshal(body, &head); err != nil {
		return line{}, true, nil
	}
	kind, typed := head.Type.(string)
	if !typed {
		return line{}, true, nil
	}
	l.Type = kind
	l.ID, _ = head.ID.(string)
	if len(l.ID) > runtime.MaxID {
		l.ID = ""
	}
	switch kind {
	case typeOutput, typeAsk, typeAskUser, typeApproval, typeSend, typeError, typeDone:
	default:
		return l, true, parley.Refuse(parley.InvalidArgument, "there is no type %.40q", kind)
	}
	// What only says something, and not as it should, may be a line of another program, which passes it on: nothing of it is lost.
	says := kind == typeOutput || kind == typeError || kind == typeDone
	whole := line{}
	if err := json.Unmarshal(body, &whole); err != nil {
		return l, says, parley.Refuse(parley.InvalidArgument, "%s: %s", kind, strings.TrimPrefix(err.Error(), "json: "))
	}
	if err := whole.check(); err != nil {
		return l, says, err
	}
	return whole, false, nil
}

// check refuses a line without the fields that its type needs.
func (l *line) check() error {
	needs := func(what string) error {
		return parley.Refuse(parley.InvalidArgument, "%s needs %s", l.Type, what)
	}
	if len(l.ID) > runtime.MaxID {
		return parley.Refuse(parley.InvalidArgument, "an id has at most %d bytes", runtime.MaxID)
	}
	if l.TimeoutMs < 0 {
		return parley.Refuse(parley.InvalidArgument, "a timeoutMs is not negative")
	}
	switch l.Type {
	case typeAsk, typeAskUser, typeApproval:
		if l.ID == "" {
			return needs("an id")
		}
	}
	switch {
	case l.Type == typeAsk && strings.TrimSpace(l.Prompt) == "":
		return needs("a prompt")
	case l.Type == typeAskUser && strings.TrimSpace(l.Title) == "":
		return needs("a title")
	case l.Type == typeAskUser && len(l.Fields) == 0:
		return needs("fields")
	case l.Type == typeApproval && l.Tool == "":
		return needs("a tool")
	case l.Type == typeSend && l.To == "":
		return needs("whom it is to")
	case l.Type == typeError && l.Message == "":
		return needs("a message")
	}
	return nil
}

// question returns the question of an ask or ask_user.
func (l *line) question() (runtime.Question, error) {
	q := runtime.Question{ID: l.ID, To: l.To, Title: l.Title, Timeout: milliseconds(l.TimeoutMs)}
	if l.Type == typeAskUser {
		q.Description, q.Fields = cmp.Or(l.Context, l.Title), l.Fields
		return q, nil
	}
	q.Description = l.Prompt
	widgets := make([]form.Widget, len(l.Widgets))
	for i, w := range l.Widgets {
		widgets[i] = form.Widget(w)
		t := form.TypeOf(w.Type)
		if one, ok := w.Default.AsString(); ok && (w.Several || t != nil && t.Ticks != "") {
			widgets[i].Default = capabilities.Strings(one)
		}
	}
	var err error
	q.Fields, err = form.WidgetFields(widgets)
	return q, err
}

// call returns the call of an approval.
func (l *line) call() runtime.Call {
	asks := parley.Permission{Tool: l.Tool, Input: "null", Reason: l.Reason, Part: l.Part}
	if len(l.Input) > 0 {
		asks.Input = string(l.Input)
		var b bytes.Buffer
		if json.Compact(&b, l.Input) == nil {
			asks.Input = b.String()
		}
	}
	return runtime.Call{Permission: asks}
}

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

// refusal returns the error line for a program's line.
func refusal(id string, err error) runtime.Frame {
	e := parley.AsError(err)
	return runtime.NewFrame(errorLine{Type: "error", ID: id, Code: e.Code, Message: e.Message, Hint: e.Hint, Fields: e.Fields})
}

// milliseconds converts a program's duration, cut to the longest possible one.
func milliseconds(ms int64) time.Duration {
	return time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}
