package compat

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
	"parley/mailbox/form"
)

// askDialect is the first part of the dialect of seed 001: an agent asks with widgets, and the answer is one text.
const askDialect = "ask"

// AskFrame is a prompt. It goes from the asker to the answerer.
type AskFrame struct {
	Type    string     `json:"type"` // ask_request
	ID      string     `json:"id"`
	Payload AskPayload `json:"payload"`
	Origin
}

// AskPayload is a prompt with the widgets to answer it. The first widget that is used answers. No widgets are one confirm.
type AskPayload struct {
	Prompt  string   `json:"prompt"`
	Widgets []Widget `json:"widgets"`
}

// Widget is one way to answer: buttons, confirm, select, radio, checkbox or options. See form.Widget.
type Widget struct {
	Type    events.FieldType    `json:"type"`
	Label   string              `json:"label,omitempty"`
	Options []form.WidgetOption `json:"options,omitempty"`
	Default string              `json:"default,omitempty"`
	Several bool                `json:"multiSelect,omitempty"`
	Other   bool                `json:"other,omitempty"`
}

// Origin identifies an open form and its asker to the answerer.
type Origin struct {
	Form     string            `json:"form,omitempty"`
	From     capabilities.ID   `json:"from,omitzero"`
	FromName string            `json:"fromName,omitempty"`
	TS       capabilities.Time `json:"ts,omitzero"`
}

func originOf(e view.Message) Origin {
	return Origin{Form: e.MessageID.String(), From: e.From, FromName: e.FromName, TS: e.Date}
}

// AskedFrame is an answer. It goes from the answerer to the asker. Form is the form's own ID. It is needed when several
// askers have used the same ID.
type AskedFrame struct {
	Type    string       `json:"type"` // ask_response
	ID      string       `json:"id,omitempty"`
	Payload AskedPayload `json:"payload"`
	Data    AskedPayload `json:"data,omitzero"` // in place of the payload, from browsers of that system
	Form    string       `json:"form,omitempty"`
}

// AskedPayload has the answer. Commas separate the choices of a checkbox. A client may also send a list.
type AskedPayload struct {
	RequestID string             `json:"request_id"`
	Value     capabilities.Value `json:"value"`
}

func askFrame(r *Relay, _ *Head, text []byte) error {
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
	return r.ask(events.Origin{Dialect: askDialect, ID: f.ID}, parley.Form{Description: f.Payload.Prompt, Fields: fields})
}

// widgetFields returns the fields for widgets.
func widgetFields(widgets []Widget) ([]events.Field, error) {
	asked := make([]form.Widget, len(widgets))
	for i, w := range widgets {
		asked[i] = form.Widget{Type: w.Type, Label: w.Label, Options: w.Options, Several: w.Several, Other: w.Other}
	}
	fields, err := form.WidgetFields(asked)
	if err != nil {
		return nil, err
	}
	i := 0 // the index of the widget's field
	for _, w := range widgets {
		if w.Default != "" {
			fields[i].Default = choiceOf(fields[i], capabilities.String(w.Default))
		}
		if form.TakesOther(fields, i) {
			i++
		}
		i++
	}
	return fields, nil
}

// widgetsOf returns the widgets for fields.
func widgetsOf(fields []events.Field) []Widget {
	asked := form.FieldWidgets(fields)
	widgets := make([]Widget, len(asked))
	for i, w := range asked {
		widgets[i] = Widget{Type: w.Type, Label: w.Label, Options: w.Options, Default: answerText(w.Default), Other: w.Other}
	}
	return widgets
}

// askedFrame answers a prompt.
func askedFrame(r *Relay, h *Head, text []byte) error {
	var f AskedFrame
	if err := api.Decode(text, &f); err != nil {
		return err
	}
	if f.Payload.RequestID == "" && f.Data.RequestID != "" {
		f.Payload = f.Data
	}
	id := h.calledFor(f.Payload.RequestID, f.ID)
	form, err := r.askedByID(askDialect, id, f.Form)
	if err != nil {
		return err
	}
	return r.answer(form.MessageID, answerTo(form.Fields, f.Payload.Value))
}

// askedByID returns the received form with an ID that its asker gave it, or with its own.
func (r *Relay) askedByID(dialect, id, form string) (dialectForm, error) {
	return r.asked(r.ctx, calling{
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

func askOutcome(m events.Origin, formID string, o view.Outcome) any {
	if o.Status != view.StatusAnswered {
		return endedByID(m, o)
	}
	values, _ := o.Values.AsRecord()
	var given []string
	for _, name := range o.Order {
		if v := form.WidgetAnswer(name, values); !v.IsNull() {
			given = append(given, answerText(v))
		}
	}
	value := capabilities.String(strings.Join(given, choiceSeparator))
	return AskedFrame{Type: "ask_response", ID: m.ID, Payload: AskedPayload{RequestID: m.ID, Value: value}, Form: formID}
}

// endedByID returns the error frame for a form that ended without an answer.
func endedByID(m events.Origin, o view.Outcome) any {
	id, err := json.Marshal(m.ID)
	if err != nil {
		return nil
	}
	return Failed(Regarding{ID: id}, unanswered(o))
}

// choiceSeparator separates the choices of a checkbox.
const choiceSeparator = ", "

// answerTo returns an answer as the values of fields. It is for the first widget that accepts it. If none does, it is
// for the first that takes other words. Else it is for the first of all, to be refused later.
func answerTo(fields []events.Field, answer capabilities.Value) map[string]capabilities.Value {
	values := map[string]capabilities.Value{}
	field, accepted := widgetFor(fields, answer)
	if field.Name == "" {
		return values
	}
	values[field.Name] = choiceOf(field, answer)
	if accepted {
		return values
	}
	for i, f := range fields {
		if chosen, words := inOtherWords(f, answer); words != "" && form.TakesOther(fields, i) {
			delete(values, field.Name)
			form.AddOther(values, f, chosen, words)
			break
		}
	}
	return values
}

// inOtherWords returns the options in an answer, and the rest of it in words.
func inOtherWords(f events.Field, answer capabilities.Value) (chosen []string, words string) {
	parts, several := choiceOf(f, answer).AsList()
	if !several {
		parts = []capabilities.Value{answer}
	}
	var rest []string
	for _, p := range parts {
		s, _ := p.AsString()
		isOption := slices.ContainsFunc(f.Options, func(o events.Option) bool { return o.Value == s })
		switch s = strings.TrimSpace(s); {
		case s == "" || s == form.OtherOption:
		case isOption:
			chosen = append(chosen, s)
		default:
			rest = append(rest, s)
		}
	}
	return chosen, strings.Join(rest, choiceSeparator)
}

// widgetFor returns the first field that accepts an answer, or the first of all if none does.
func widgetFor(fields []events.Field, answer capabilities.Value) (first events.Field, accepted bool) {
	for _, f := range fields {
		chosen, isList := choiceOf(f, answer).AsList()
		if !isList {
			chosen = []capabilities.Value{answer}
		}
		all := len(chosen) > 0
		for _, v := range chosen {
			s, _ := v.AsString()
			all = all && slices.ContainsFunc(f.Options, func(o events.Option) bool { return o.Value == s })
		}
		if all {
			return f, true
		}
	}
	return fields[0], false
}

// choiceOf returns an answer as a value of its field, which is the list of choices for a checkbox. It leaves texts that
// are no choice unchanged, to be refused later.
func choiceOf(f events.Field, answer capabilities.Value) capabilities.Value {
	text, ok := answer.AsString()
	if form.ControlOf(&f) != form.Choices || !ok {
		return answer
	}
	options := make([]string, len(f.Options))
	for i, o := range f.Options {
		options[i] = o.Value
	}
	slices.SortFunc(options, func(a, b string) int { return cmp.Compare(len(b), len(a)) }) // the longest that fits: options may hold commas
	var chosen []string
	for rest := strings.TrimSpace(text); rest != ""; {
		next := rest
		for _, o := range options {
			if after, fits := strings.CutPrefix(rest, o); fits && (after == "" || strings.HasPrefix(strings.TrimSpace(after), ",")) {
				next = o
				break
			}
		}
		if next == rest && !slices.Contains(options, rest) {
			next, _, _ = strings.Cut(rest, ",")
		}
		chosen = append(chosen, next)
		rest = strings.TrimPrefix(strings.TrimSpace(rest[len(next):]), ",")
		rest = strings.TrimSpace(rest)
	}
	return capabilities.Strings(chosen...)
}

// answerText returns an answer as one text.
func answerText(v capabilities.Value) string {
	if l, ok := v.AsList(); ok {
		parts := make([]string, len(l))
		for i, e := range l {
			parts[i] = e.Text()
		}
		return strings.Join(parts, choiceSeparator)
	}
	if v.IsNull() {
		return ""
	}
	return v.Text()
}
