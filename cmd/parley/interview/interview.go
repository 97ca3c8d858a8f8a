package interview

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"charm.land/huh/v2"

	"parley/capabilities"
	"parley/cmd/parley/terminal"
	"parley/events"
	"parley/mailbox/form"
)

// ErrAborted is the error of an interview that the person ended.
var ErrAborted = errors.New("the interview was ended")

// field is a field of a form.
type field struct{ events.Field }

// question is a field on a terminal, with a function that returns the answer to it.
type question struct {
	widget huh.Field
	texts  func() []events.FieldText
}

// Ask asks for an answer field by field, below a description and the asker's name.
func Ask(ctx context.Context, in io.Reader, out io.Writer, description, asker string, fields []events.Field) ([]events.FieldText, error) {
	widgets := []huh.Field{huh.NewNote().Title(terminal.Visible(description)).Description("asked by " + asker)}
	questions := make([]question, len(fields))
	for i, f := range fields {
		questions[i] = (&field{f}).question()
		widgets = append(widgets, questions[i].widget)
	}
	shown := huh.NewForm(huh.NewGroup(widgets...)).WithInput(in).WithOutput(out)
	if err := shown.RunWithContext(ctx); err != nil {
		if errors.Is(err, huh.ErrUserAborted) || ctx.Err() != nil {
			return nil, ErrAborted
		}
		return nil, fmt.Errorf("ask on the terminal: %w", err)
	}
	var texts []events.FieldText
	for _, q := range questions {
		texts = append(texts, q.texts()...)
	}
	return texts, nil
}

// Remember makes an answer the default of the fields, so that a person can correct it. It forgets secrets.
func Remember(fields []events.Field, texts []events.FieldText) {
	for i := range fields {
		remember(&fields[i], texts)
	}
}

func remember(f *events.Field, texts []events.FieldText) {
	var said []string
	for _, t := range texts {
		if t.Name == f.Name {
			said = append(said, t.Text)
		}
	}
	switch asks := form.ControlOf(f); {
	case asks == form.Secret || len(said) == 0:
	case asks == form.Choices:
		f.Default = capabilities.Strings(said...)
	case asks == form.YesNo:
		f.Default = capabilities.Bool(said[0] == "true")
	default:
		f.Default = capabilities.String(said[0])
	}
}

func (f *field) question() question {
	switch form.ControlOf(&f.Field) {
	case form.YesNo:
		return f.yesOrNo()
	case form.Choice:
		return f.oneOf()
	case form.Choices:
		return f.someOf()
	case form.Lines:
		text := f.preset()
		w := huh.NewText().Title(f.title()).Description(f.help()).Placeholder(terminal.Visible(f.Placeholder)).Value(&text).Validate(f.check)
		return question{
			&typed{w, &text, newAreaMirror(text)},
			func() []events.FieldText { return f.said(text) },
		}
	}
	return f.line()
}

func (f *field) line() question {
	text := f.preset()
	w := huh.NewInput().Title(f.title()).Description(f.help()).Placeholder(f.hint()).Value(&text).Validate(f.check)
	if form.ControlOf(&f.Field) == form.Secret {
		w.EchoMode(huh.EchoModePassword)
	}
	return question{&typed{w, &text, newLineMirror(text)}, func() []events.FieldText { return f.said(text) }}
}

func (f *field) yesOrNo() question {
	yes, _ := f.Default.AsBool()
	return question{
		huh.NewConfirm().Title(f.title()).Description(f.help()).Value(&yes),
		func() []events.FieldText { return f.said(fmt.Sprint(yes)) },
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
		func() []events.FieldText { return f.said(chosen) },
	}
}

func (f *field) someOf() question {
	var chosen []string
	defaults, _ := f.Default.AsList() // without a default nothing is chosen
	for _, v := range defaults {
		if text, ok := v.AsString(); ok {
			chosen = append(chosen, text)
		}
	}
	w := huh.NewMultiSelect[string]().Title(f.title()).Description(f.help()).Options(f.choices()...).Value(&chosen)
	if f.Required {
		w.Validate(func(c []string) error {
			if len(c) == 0 {
				return errors.New("choose at least one")
			}
			return nil
		})
	}
	return question{w, func() []events.FieldText {
		var texts []events.FieldText
		for _, c := range chosen {
			texts = append(texts, events.FieldText{Name: f.Name, Text: c})
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

// said returns the answer to the field. An empty text is no answer, so that a default holds.
func (f *field) said(text string) []events.FieldText {
	if text == "" {
		return nil
	}
	return []events.FieldText{{Name: f.Name, Text: text}}
}

func (f *field) check(text string) error {
	if f.Required && strings.TrimSpace(text) == "" && f.preset() == "" {
		return errors.New("this is needed")
	}
	return nil
}

// preset returns the field's default as text.
func (f *field) preset() string {
	if f.Default.IsNull() || f.Default.IsSealed() {
		return ""
	}
	return f.Default.Text()
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
	if help == "" && form.ControlOf(&f.Field) == form.Reference {
		help = "a name that you hold"
	}
	return terminal.Visible(help)
}

// hint returns the text that an empty line shows.
func (f *field) hint() string {
	if f.Placeholder != "" {
		return terminal.Visible(f.Placeholder)
	}
	if !f.Example.IsNull() && !f.Example.IsSealed() {
		return "as in " + terminal.Visible(f.Example.Text())
	}
	return ""
}
