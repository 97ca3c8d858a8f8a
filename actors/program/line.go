package program

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// Bounds of a line of the exec protocol.
const (
	maxDepth = 64  // how deep its JSON nests
	maxID    = 200 // bytes of an id
)

// line is what a program says on a line of JSON: of each type, the parts that it has.
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
	Message   string          `json:"message"`   // error
	Error     string          `json:"error"`     // done
	Run       string          `json:"run"`       // done: the run that is, if it says so
}

// widget is one way to answer an ask.
type widget struct {
	Type    events.FieldType   `json:"type"`
	Label   string             `json:"label"`
	Options []string           `json:"options"`
	Default capabilities.Value `json:"default"`
}

// The types of lines.
const (
	saysOutput   = "output"
	saysAsk      = "ask"
	saysAskUser  = "ask_user"
	saysApproval = "approval"
	saysSend     = "send"
	saysError    = "error"
	saysDone     = "done"
)

// parseLine reads what a program has put out. A line that is not an object of JSON with a type is none, and no error:
// it is plain output. An error is for the program; plain says whether what it is about is plain output all the same.
func parseLine(text string) (l line, plain bool, err error) {
	body := bytes.TrimSpace([]byte(text))
	if len(body) == 0 || body[0] != '{' || !json.Valid(body) {
		return line{}, true, nil
	}
	if depthOf(body) > maxDepth {
		return line{}, true, parley.Refuse(parley.InvalidArgument, "the line nests deeper than %d", maxDepth)
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
	if len(l.ID) > maxID {
		l.ID = ""
	}
	switch kind {
	case saysOutput, saysAsk, saysAskUser, saysApproval, saysSend, saysError, saysDone:
	default:
		return l, true, parley.Refuse(parley.InvalidArgument, "there is no type %.40q", kind)
	}
	whole := line{}
	if err := json.Unmarshal(body, &whole); err != nil {
		return l, false, parley.Refuse(parley.InvalidArgument, "%s: %s", kind, strings.TrimPrefix(err.Error(), "json: "))
	}
	if err := whole.check(); err != nil {
		return l, false, err
	}
	return whole, false, nil
}

// check refuses a line that lacks what its type needs.
func (l *line) check() error {
	needs := func(what string) error {
		return parley.Refuse(parley.InvalidArgument, "%s needs %s", l.Type, what)
	}
	if len(l.ID) > maxID {
		return parley.Refuse(parley.InvalidArgument, "an id has at most %d bytes", maxID)
	}
	if l.TimeoutMs < 0 {
		return parley.Refuse(parley.InvalidArgument, "a timeoutMs is not negative")
	}
	switch l.Type {
	case saysAsk, saysAskUser, saysApproval:
		if l.ID == "" {
			return needs("an id")
		}
	}
	switch {
	case l.Type == saysAsk && strings.TrimSpace(l.Prompt) == "":
		return needs("a prompt")
	case l.Type == saysAskUser && strings.TrimSpace(l.Title) == "":
		return needs("a title")
	case l.Type == saysAskUser && len(l.Fields) == 0:
		return needs("fields")
	case l.Type == saysApproval && l.Tool == "":
		return needs("a tool")
	case l.Type == saysSend && l.To == "":
		return needs("whom it is to")
	case l.Type == saysError && l.Message == "":
		return needs("a message")
	}
	return nil
}

// question is what an ask or ask_user asks.
func (l *line) question() (Question, error) {
	q := Question{ID: l.ID, To: l.To, Title: l.Title, Timeout: milliseconds(l.TimeoutMs)}
	if l.Type == saysAskUser {
		q.Description, q.Fields = cmp.Or(l.Context, l.Title), l.Fields
		return q, nil
	}
	q.Description = l.Prompt
	widgets := l.Widgets
	if len(widgets) == 0 {
		widgets = []widget{{Type: events.Confirm, Options: []string{"Yes", "No"}}}
	}
	for i, w := range widgets {
		f, err := w.field(i, len(widgets) == 1)
		if err != nil {
			return Question{}, err
		}
		q.Fields = append(q.Fields, f)
	}
	return q, nil
}

// field gives the field for a widget: value, value2, value3 and so on.
func (w widget) field(i int, required bool) (events.Field, error) {
	f := events.Field{Name: "value", Label: w.Label, Type: w.Type, Required: required, Default: w.Default}
	if i > 0 {
		f.Name = fmt.Sprintf("value%d", i+1)
	}
	switch w.Type {
	case events.Buttons, events.Confirm, events.Select, events.Radio, events.Checkbox:
	default:
		return f, parley.Refuse(parley.InvalidForm, "widget %d: there is no widget %.40q", i+1, string(w.Type))
	}
	if w.Type == events.Checkbox && len(w.Options) == 0 {
		return f, parley.Refuse(parley.InvalidForm, "widget %d: a checkbox needs options", i+1)
	}
	for _, o := range w.Options {
		f.Options = append(f.Options, events.Option{Value: o})
	}
	if one, ok := w.Default.AsString(); ok && w.Type == events.Checkbox {
		f.Default = capabilities.Strings(one)
	}
	return f, nil
}

// call is what an approval is about.
func (l *line) call() Call {
	if len(l.Input) == 0 {
		return Call{Tool: l.Tool, Input: "null"}
	}
	var b bytes.Buffer
	if err := json.Compact(&b, l.Input); err != nil {
		return Call{Tool: l.Tool, Input: string(l.Input)}
	}
	return Call{Tool: l.Tool, Input: b.String()}
}

// depthOf gives how deep JSON nests.
func depthOf(text []byte) int {
	depth, deepest, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}
