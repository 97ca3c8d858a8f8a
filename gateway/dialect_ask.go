package gateway

import (
	"encoding/json"
	"strings"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
	"parley/mailbox/form"
)

// The dialect of seed 001, first part: an agent asks by widgets, and is answered with one text.
const askDialect = "ask"

// AskFrame is a prompt, from the asker and to who is asked.
type AskFrame struct {
	Type    string     `json:"type"` // ask_request
	ID      string     `json:"id"`
	Payload AskPayload `json:"payload"`
	Origin
}

// AskPayload is a prompt and the widgets to answer it by: the first that is used answers. None is one confirm.
type AskPayload struct {
	Prompt  string   `json:"prompt"`
	Widgets []Widget `json:"widgets"`
}

// Widget is one way to answer: buttons, confirm, select, radio or checkbox.
type Widget struct {
	Type    events.FieldType `json:"type"`
	Label   string           `json:"label,omitempty"`
	Options []string         `json:"options,omitempty"`
	Default string           `json:"default,omitempty"`
}

// Origin tells who is asked which form waits, and who asks.
type Origin struct {
	Form     string            `json:"form,omitempty"`
	From     capabilities.ID   `json:"from,omitzero"`
	FromName string            `json:"fromName,omitempty"`
	TS       capabilities.Time `json:"ts,omitzero"`
}

func originOf(e view.Message) Origin {
	return Origin{Form: e.MessageID.String(), From: e.From, FromName: e.FromName, TS: e.Date}
}

// AskedFrame is an answer, from who was asked and to the asker. Form, the form's own ID, is needed
// once another has used the same ID.
type AskedFrame struct {
	Type    string       `json:"type"` // ask_response
	ID      string       `json:"id,omitempty"`
	Payload AskedPayload `json:"payload"`
	Form    string       `json:"form,omitempty"`
}

// AskedPayload has the answer. Choices of a checkbox are separated by commas; a client may also give a list.
type AskedPayload struct {
	RequestID string             `json:"request_id"`
	Value     capabilities.Value `json:"value"`
}

func askFrame(c *wsSession, _ *head, text []byte) error {
	var f AskFrame
	if err := api.Decode(text, &f); err != nil {
		return err
	}
	if err := checkID("the id", f.ID); err != nil {
		return err
	}
	if strings.TrimSpace(f.Payload.Prompt) == "" {
		return parley.Refuse(parley.InvalidArgument, "an ask needs a prompt")
	}
	fields, err := widgetFields(f.Payload.Widgets)
	if err != nil {
		return err
	}
	return c.relay.ask(events.Origin{Dialect: askDialect, ID: f.ID}, api.FormRequest{Description: f.Payload.Prompt, Fields: api.FieldsOf(fields...)})
}

// widgetFields gives the fields for widgets.
func widgetFields(widgets []Widget) ([]events.Field, error) {
	asked := make([]form.Widget, len(widgets))
	for i, w := range widgets {
		asked[i] = form.Widget{Type: w.Type, Label: w.Label, Options: w.Options}
	}
	fields, err := form.WidgetFields(asked)
	if err != nil {
		return nil, err
	}
	for i, w := range widgets {
		if w.Default != "" {
			fields[i].Default = choiceOf(fields[i], capabilities.String(w.Default))
		}
	}
	return fields, nil
}

// widgetsOf gives the widgets for fields.
func widgetsOf(fields []events.Field) []Widget {
	widgets := make([]Widget, len(fields))
	for i, f := range fields {
		widgets[i] = Widget{Type: f.Type, Label: f.Label, Default: answerText(f.Default)}
		for _, o := range f.Options {
			widgets[i].Options = append(widgets[i].Options, o.Value)
		}
	}
	return widgets
}

// askedFrame answers a prompt.
func askedFrame(c *wsSession, h *head, text []byte) error {
	var f AskedFrame
	if err := api.Decode(text, &f); err != nil {
		return err
	}
	id := h.calledFor(f.Payload.RequestID, f.ID)
	form, err := c.askedByID(askDialect, id, f.Form)
	if err != nil {
		return err
	}
	values := map[string]capabilities.Value{}
	if field := widgetFor(form.Fields, f.Payload.Value); field.Name != "" {
		values[field.Name] = choiceOf(field, f.Payload.Value)
	}
	_, err = c.agent.Answer(c.acts, capabilities.FormID(form.MessageID), values)
	return err
}

// askedByID gives the form that a client calls by its asker's ID for it, or by its own.
func (c *wsSession) askedByID(dialect, id, form string) (dialectForm, error) {
	return c.asked(c.acts, calling{
		origin: events.Origin{Dialect: dialect, ID: id}, form: form, none: parley.Refuse(parley.NoSuchMessage, "nothing was asked as %.80q", id),
		called: func(f dialectForm) bool { return f.Asked.ID == id },
	})
}

func askPosed(m events.Origin, e view.Message) any {
	return AskFrame{Type: "ask_request", ID: m.ID, Payload: AskPayload{Prompt: e.Description, Widgets: widgetsOf(e.Fields)}, Origin: originOf(e)}
}

func askSettled(m events.Origin, e view.Message, o view.Outcome) any {
	return askOutcome(m, e.MessageID.String(), o)
}

func askOutcome(m events.Origin, form string, o view.Outcome) any {
	if o.Status != view.StatusAnswered {
		return endedByID(m, o)
	}
	values, _ := o.Values.AsRecord()
	var given []string
	for _, name := range o.Order {
		if v, ok := values[name]; ok {
			given = append(given, answerText(v))
		}
	}
	value := capabilities.String(strings.Join(given, choiceSeparator))
	return AskedFrame{Type: "ask_response", ID: m.ID, Payload: AskedPayload{RequestID: m.ID, Value: value}, Form: form}
}

// endedByID is the error for a form that ended without an answer.
func endedByID(m events.Origin, o view.Outcome) any {
	id, err := json.Marshal(m.ID)
	if err != nil {
		return nil
	}
	return failed(regarding{ID: id}, unanswered(o))
}
