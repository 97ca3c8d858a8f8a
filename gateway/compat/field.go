package compat

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/form"
)

// wireVersion is the version of QuestionSchema.
const wireVersion = 1

// Bounds of a question's form, in fields, options and characters, as its dialect has them.
const (
	maxFields  = 8
	maxOptions = 50
	maxLabel   = 160
	maxHelp    = 500
	maxPattern = 512
	maxText    = 4000
)

// QuestionSchema describes a question's form.
type QuestionSchema struct {
	WireVersion *int            `json:"wireVersion,omitempty"` // 1, which it also is without
	Fields      []QuestionField `json:"fields"`
	SubmitLabel string          `json:"submitLabel,omitempty"`
}

// QuestionField describes a field of a question's form.
type QuestionField struct {
	Type         events.FieldType   `json:"type"`
	Name         string             `json:"name"`
	Label        string             `json:"label"`
	Required     bool               `json:"required,omitempty"`
	Placeholder  string             `json:"placeholder,omitempty"`
	DefaultValue capabilities.Value `json:"defaultValue,omitzero"`
	HelpText     string             `json:"helpText,omitempty"`
	Options      []events.Option    `json:"options,omitempty"`
	limits
}

// limits bound the answer to a field. In the form they are its pattern.
type limits struct {
	MinLength     *int     `json:"minLength,omitempty"` // of a text or textarea, in characters
	MaxLength     *int     `json:"maxLength,omitempty"`
	Pattern       string   `json:"pattern,omitempty"` // of a text: a regular expression that it contains
	Min           *float64 `json:"min,omitempty"`     // of a number
	Max           *float64 `json:"max,omitempty"`
	Step          *float64 `json:"step,omitempty"` // between the numbers that are allowed, from min on
	Integer       bool     `json:"integer,omitempty"`
	MinSelections *int     `json:"minSelections,omitempty"` // of a multiselect
	MaxSelections *int     `json:"maxSelections,omitempty"`
}

// schemaLimits is a JSON Schema with the keywords for limits.
type schemaLimits struct {
	Type       string   `json:"type,omitempty"`
	MultipleOf *float64 `json:"multipleOf,omitempty"`
	MinLength  *int     `json:"minLength,omitempty"`
	MaxLength  *int     `json:"maxLength,omitempty"`
	Pattern    string   `json:"pattern,omitempty"`
	Minimum    *float64 `json:"minimum,omitempty"`
	Maximum    *float64 `json:"maximum,omitempty"`
	MinItems   *int     `json:"minItems,omitempty"`
	MaxItems   *int     `json:"maxItems,omitempty"`
}

// of returns the limits that a field of a type may have.
func (l limits) of(t events.FieldType) limits {
	switch form.ControlOf(&events.Field{Type: t}) {
	case form.Line:
		return limits{MinLength: l.MinLength, MaxLength: l.MaxLength, Pattern: l.Pattern}
	case form.Lines:
		return limits{MinLength: l.MinLength, MaxLength: l.MaxLength}
	case form.Number:
		return limits{Min: l.Min, Max: l.Max, Step: l.Step, Integer: l.Integer}
	case form.Choices:
		return limits{MinSelections: l.MinSelections, MaxSelections: l.MaxSelections}
	}
	return limits{}
}

// wrong returns why the limits cannot be those of a field of a type, or "".
func (l limits) wrong(t events.FieldType) string {
	mostText := maxText
	switch {
	case l != l.of(t):
		return "a " + string(t) + " field takes no such limits"
	case above(l.MinLength, l.MaxLength):
		return "minLength is above maxLength"
	case above(l.Min, l.Max):
		return "min is above max"
	case l.Step != nil && !(*l.Step > 0):
		return "step is not above 0"
	case above(l.MinLength, &mostText) || above(l.MaxLength, &mostText):
		return fmt.Sprintf("a length is above %d", mostText)
	case utf8.RuneCountInString(l.Pattern) > maxPattern:
		return fmt.Sprintf("the pattern is longer than %d characters", maxPattern)
	case above(l.MinSelections, l.MaxSelections):
		return "minSelections is above maxSelections"
	}
	return ""
}

func above[T int | float64](least, most *T) bool {
	return least != nil && most != nil && *least > *most
}

// divides reports whether a number is a multiple of a step, both as they are written in decimals.
func divides(step, number float64) bool {
	s, ok := new(big.Rat).SetString(strconv.FormatFloat(step, 'g', -1, 64))
	n, also := new(big.Rat).SetString(strconv.FormatFloat(number, 'g', -1, 64))
	return ok && also && n.Quo(n, s).IsInt()
}

// schema returns the limits as the pattern of a field; nil if there are none.
func (l limits) schema() json.RawMessage {
	if l == (limits{}) {
		return nil
	}
	s := schemaLimits{
		MinLength: l.MinLength, MaxLength: l.MaxLength, Pattern: l.Pattern, Minimum: l.Min, Maximum: l.Max, MultipleOf: l.Step,
		MinItems: l.MinSelections, MaxItems: l.MaxSelections,
	}
	if l.Integer {
		s.Type = "integer"
	}
	if l.Step != nil && l.Min != nil && !divides(*l.Step, *l.Min) { // steps that do not begin at 0 have no keyword
		s.MultipleOf = nil
	}
	text, err := json.Marshal(s)
	if err != nil { // numbers and texts can always be written
		return nil
	}
	return text
}

// limitsOf returns the limits in a field's pattern. It ignores keywords for which there are none.
func limitsOf(f events.Field) limits {
	var s schemaLimits
	if len(f.Pattern) == 0 || json.Unmarshal(f.Pattern, &s) != nil {
		return limits{}
	}
	l := limits{
		MinLength: s.MinLength, MaxLength: s.MaxLength, Pattern: s.Pattern, Min: s.Minimum, Max: s.Maximum, Step: s.MultipleOf, Integer: s.Type == "integer",
		MinSelections: s.MinItems, MaxSelections: s.MaxItems,
	}
	return l.of(f.Type)
}

// fieldName matches the names of a question's fields.
var fieldName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`) })

// wrong returns why the field cannot be one of a question, or "". The form's own rules are checked later.
func (f QuestionField) wrong() string {
	switch f.Name {
	case "__proto__", "prototype", "constructor":
		return "the name has a meaning of its own in scripts"
	}
	if !fieldName().MatchString(f.Name) {
		return "a name is a letter and up to 63 letters, digits, _ and -"
	}
	if why := f.tooLong(); why != "" {
		return why
	}
	return f.limits.wrong(f.Type)
}

// tooLong returns what of the field is longer than a question's may be, or "".
func (f QuestionField) tooLong() string {
	if len(f.Options) > maxOptions {
		return fmt.Sprintf("it has %d options, and may have %d", len(f.Options), maxOptions)
	}
	type part struct {
		what, text string
		most       int
	}
	suggested, _ := f.DefaultValue.AsString()
	parts := []part{
		{"label", f.Label, maxLabel}, {"placeholder", f.Placeholder, maxLabel}, {"helpText", f.HelpText, maxHelp}, {"defaultValue", suggested, maxText},
	}
	for _, o := range f.Options {
		parts = append(parts, part{"value of an option", o.Value, maxLabel}, part{"label of an option", o.Label, maxLabel},
			part{"description of an option", o.Description, maxHelp})
	}
	for _, p := range parts {
		if n := utf8.RuneCountInString(p.text); n > p.most {
			return fmt.Sprintf("the %s has %d characters, and may have %d", p.what, n, p.most)
		}
	}
	return ""
}

// check refuses with INVALID_FORM another version, and fields that cannot be a question's.
func (s QuestionSchema) check() error {
	if s.WireVersion != nil && *s.WireVersion != wireVersion {
		return parley.Refuse(parley.InvalidForm, "wireVersion %d is not known: want %d", *s.WireVersion, wireVersion)
	}
	if len(s.Fields) > maxFields {
		return parley.Refuse(parley.InvalidForm, "%d fields are more than the %d that a question may have", len(s.Fields), maxFields)
	}
	if utf8.RuneCountInString(s.SubmitLabel) > maxLabel {
		return parley.Refuse(parley.InvalidForm, "the submitLabel is longer than %d characters", maxLabel)
	}
	problems := map[string]string{}
	var whys []string
	for i, f := range s.Fields {
		if why := f.wrong(); why != "" {
			name := cmp.Or(parley.Shown(f.Name, 64), fmt.Sprintf("field %d", i+1))
			problems[name] = why
			whys = append(whys, name+": "+why)
		}
	}
	if len(whys) == 0 {
		return nil
	}
	e := parley.Refuse(parley.InvalidForm, "%s", parley.Cut(strings.Join(whys, "; "), 1000))
	e.Fields = problems
	return e
}

// fields returns the form's fields.
func (s QuestionSchema) fields() []events.Field {
	fields := make([]events.Field, len(s.Fields))
	for i, f := range s.Fields {
		fields[i] = events.Field{
			Name: f.Name, Label: f.Label, Type: f.Type, Required: f.Required, Placeholder: f.Placeholder,
			Default: f.DefaultValue, Help: f.HelpText, Options: f.Options, Pattern: f.limits.schema(),
		}
	}
	return fields
}

// schemaOf returns the schema for a form's fields.
func schemaOf(m events.Origin, fields []events.Field) QuestionSchema {
	version := wireVersion
	s := QuestionSchema{WireVersion: &version, SubmitLabel: m.Submit, Fields: make([]QuestionField, len(fields))}
	for i, f := range fields {
		s.Fields[i] = QuestionField{
			Type: f.Type, Name: f.Name, Label: f.Label, Required: f.Required, Placeholder: f.Placeholder,
			DefaultValue: f.Default, HelpText: f.Help, Options: f.Options, limits: limitsOf(f),
		}
	}
	return s
}
