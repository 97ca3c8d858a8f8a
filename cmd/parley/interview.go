package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"charm.land/huh/v2"

	"parley"
	"parley/capabilities"
	"parley/cmd/parley/terminal"
	"parley/events"
	"parley/gateway/api"
)

// field is a field of a form as the node sends it.
type field struct {
	events.Field
	Default json.RawMessage `json:"default"`
	Example json.RawMessage `json:"example"`
}

// question is a field on a terminal, and how to read what was said to it.
type question struct {
	widget huh.Field
	texts  func() []api.Text
}

// answerInPerson has the person at the terminal answer a form. An answer that is wrong is asked for again,
// with what was said before.
func (p *program) answerInPerson(ctx context.Context, answer api.RespondFormRequest, which string) error {
	var e envelope
	if err := p.call(ctx, "get_message", api.MessageRequest{Acting: answer.Acting, Subject: answer.Subject}, &e); err != nil {
		return err
	}
	for {
		if err := p.interview(ctx, e, &answer); err != nil {
			return err
		}
		err := p.settle(ctx, "respond_form", answer, which)
		if parley.CodeOf(err) != parley.InvalidAnswer || len(answer.Texts) == 0 {
			return err
		}
		fmt.Fprintln(p.stderr, terminal.Visible(parley.AsError(err).Message))
		for i := range e.Fields {
			e.Fields[i].remember(answer.Texts)
		}
	}
}

// interview asks for an answer field by field. Everything in a form comes from its asker and is made
// visible before it is shown.
func (p *program) interview(ctx context.Context, e envelope, answer *api.RespondFormRequest) error {
	if len(e.Fields) == 0 || e.Outcome != nil { // the node says why it cannot be answered
		return nil
	}
	widgets := []huh.Field{huh.NewNote().Title(terminal.Visible(e.Description)).Description("asked by " + party(e.FromName, e.From))}
	questions := make([]question, len(e.Fields))
	for i, f := range e.Fields {
		questions[i] = f.question()
		widgets = append(widgets, questions[i].widget)
	}
	form := huh.NewForm(huh.NewGroup(widgets...)).WithInput(p.stdin).WithOutput(p.stdout)
	if err := form.RunWithContext(ctx); err != nil {
		if errors.Is(err, huh.ErrUserAborted) || ctx.Err() != nil {
			return &interrupted{message: "nothing was answered; the form stays open"}
		}
		return fmt.Errorf("ask on the terminal: %w", err)
	}
	answer.Texts = nil
	for _, q := range questions {
		answer.Texts = append(answer.Texts, q.texts()...)
	}
	return nil
}

// remember makes what was said the field's default, but for secrets.
func (f *field) remember(texts []api.Text) {
	var said []string
	for _, t := range texts {
		if t.Name == f.Name {
			said = append(said, t.Text)
		}
	}
	switch { // strings can always be written as JSON
	case f.Type == events.Secret || len(said) == 0:
	case f.Type == events.Multiselect:
		f.Default, _ = json.Marshal(said)
	case f.Type == events.Checkbox || f.Type == events.Confirm && len(f.Options) == 0:
		f.Default = json.RawMessage(said[0])
	default:
		f.Default, _ = json.Marshal(said[0])
	}
}

func (f *field) question() question {
	switch f.Type {
	case events.Checkbox, events.Confirm:
		if f.Type == events.Checkbox || len(f.Options) == 0 {
			return f.yesOrNo()
		}
		return f.oneOf()
	case events.Select, events.Radio, events.Buttons:
		return f.oneOf()
	case events.Multiselect:
		return f.someOf()
	case events.Textarea:
		text := f.preset()
		return question{
			huh.NewText().Title(f.title()).Description(f.help()).Placeholder(terminal.Visible(f.Placeholder)).Value(&text).Validate(f.check),
			func() []api.Text { return f.said(text) },
		}
	}
	return f.line()
}

func (f *field) line() question {
	text := f.preset()
	w := huh.NewInput().Title(f.title()).Description(f.help()).Placeholder(f.hint()).Value(&text).Validate(f.check)
	if f.Type == events.Secret {
		w.EchoMode(huh.EchoModePassword)
	}
	return question{w, func() []api.Text { return f.said(text) }}
}

func (f *field) yesOrNo() question {
	yes := string(f.Default) == "true"
	return question{
		huh.NewConfirm().Title(f.title()).Description(f.help()).Value(&yes),
		func() []api.Text { return f.said(fmt.Sprint(yes)) },
	}
}

func (f *field) oneOf() question {
	chosen := f.preset()
	options := f.choices()
	if !f.Required && chosen == "" {
		options = append([]huh.Option[string]{huh.NewOption("(none)", "")}, options...)
	}
	return question{
		huh.NewSelect[string]().Title(f.title()).Description(f.help()).Options(options...).Value(&chosen),
		func() []api.Text { return f.said(chosen) },
	}
}

func (f *field) someOf() question {
	var chosen []string
	_ = json.Unmarshal(f.Default, &chosen) // without a default nothing is chosen
	w := huh.NewMultiSelect[string]().Title(f.title()).Description(f.help()).Options(f.choices()...).Value(&chosen)
	if f.Required {
		w.Validate(func(c []string) error {
			if len(c) == 0 {
				return errors.New("choose at least one")
			}
			return nil
		})
	}
	return question{w, func() []api.Text {
		var texts []api.Text
		for _, c := range chosen {
			texts = append(texts, api.Text{Name: f.Name, Text: c})
		}
		return texts
	}}
}

func (f *field) choices() []huh.Option[string] {
	options := make([]huh.Option[string], len(f.Options))
	for i, o := range f.Options {
		label := o.Label
		if label == "" {
			label = o.Value
		}
		if o.Description != "" {
			label += " - " + o.Description
		}
		options[i] = huh.NewOption(terminal.Visible(label), o.Value)
	}
	return options
}

// said is the answer to the field; nothing said is no answer, so that a default holds.
func (f *field) said(text string) []api.Text {
	if text == "" {
		return nil
	}
	return []api.Text{{Name: f.Name, Text: text}}
}

func (f *field) check(text string) error {
	if f.Required && strings.TrimSpace(text) == "" && f.preset() == "" {
		return errors.New("this is needed")
	}
	return nil
}

// preset is the field's default as text.
func (f *field) preset() string {
	v, err := capabilities.ParseJSON(f.Default)
	if err != nil || v.IsNull() {
		return ""
	}
	return v.Text()
}

func (f *field) title() string {
	label := f.Label
	if label == "" {
		label = f.Name
	}
	if f.Required {
		label += " *"
	}
	return terminal.Visible(label)
}

func (f *field) help() string {
	help := f.Help
	if help == "" && f.Type == events.Capability {
		help = "a name that you hold"
	}
	return terminal.Visible(help)
}

// hint is what an empty line shows.
func (f *field) hint() string {
	if f.Placeholder != "" {
		return terminal.Visible(f.Placeholder)
	}
	if v, err := capabilities.ParseJSON(f.Example); err == nil && !v.IsNull() {
		return "as in " + terminal.Visible(v.Text())
	}
	return ""
}
