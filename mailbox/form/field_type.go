package form

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/events"
)

// Type is a row of the table of field types. An edge reads what it has to know of a type here, or by its kind of control.
// So a new type is a row.
type Type struct {
	Name   events.FieldType
	Says   string          // what it asks for, in a few words
	Asks   Control         // how it is asked for
	Ticks  Control         // how it is asked for with options, if that differs
	Takes  Taking          // whether it takes options
	Given  []events.Option // its options if the asker gives none
	Format string          // of the text in JSON Schema; "" for any text
	Narrow bool            // not every text of the format is an answer
	Shape  string          // how a page draws its one choice: select, radios or buttons
	Input  string          // the type of its HTML input; "" if it has no input
	Hint   bool            // its control can show a placeholder
	Widget bool            // a prompt may have it as a widget

	wrong func(text string) string // why a text is no answer, or ""; nil takes every text
}

// Control is a kind of control. Edges that need code of their own for a field switch on it, and not on the type.
type Control string

// The kinds of controls.
const (
	Line      Control = "line"      // a line of text
	Lines     Control = "lines"     // lines of text
	Number    Control = "number"    // a number
	YesNo     Control = "yesno"     // true or false
	Choice    Control = "choice"    // the value of one option
	Choices   Control = "choices"   // a list of values of options
	Date      Control = "date"      // a date as text
	Secret    Control = "secret"    // a line of text that is not shown, kept or passed on
	Reference Control = "reference" // a capability, by its name
	File      Control = "file"      // a file that the answerer stores first
	Any       Control = "any"       // a line of text, or with a pattern any value that it accepts
)

// Taking tells whether a type takes options.
type Taking string

// The ways of taking options.
const (
	NoOptions    Taking = "no"
	MayHave      Taking = "may"
	NeedsOptions Taking = "needs"
)

// The shapes of a choice.
const (
	Menu    = "select"
	Radios  = "radios"
	Buttons = "buttons"
)

// Types is the table of field types, in the order in which they are listed. Of two rows that suit equally, the first is
// the usual one. It is not changed.
var Types = []Type{
	{Name: events.Text, Says: "a line of text", Asks: Line, Takes: NoOptions, Input: "text", Hint: true},
	{Name: events.Textarea, Says: "lines of text", Asks: Lines, Takes: NoOptions, Hint: true},
	{Name: events.Number, Says: "a number", Asks: Number, Takes: NoOptions, Input: "text", Hint: true},
	{Name: events.Checkbox, Says: "to be ticked, or options to tick", Asks: YesNo, Ticks: Choices, Takes: MayHave, Widget: true},
	{Name: events.Select, Says: "one option of a menu", Asks: Choice, Takes: NeedsOptions, Shape: Menu, Hint: true, Widget: true},
	{Name: events.Multiselect, Says: "several options", Asks: Choices, Takes: NeedsOptions},
	{Name: events.Radio, Says: "one option, below each other", Asks: Choice, Takes: NeedsOptions, Shape: Radios, Widget: true},
	{Name: events.Buttons, Says: "one option, by a button", Asks: Choice, Takes: NeedsOptions, Shape: Buttons, Widget: true},
	{
		Name: events.Confirm, Says: "yes or no, or words of your own", Asks: Choice, Takes: MayHave, Given: []events.Option{{Value: "Yes"}, {Value: "No"}},
		Shape: Buttons, Widget: true,
	},
	{Name: events.Date, Says: "a day", Asks: Date, Takes: NoOptions, Format: "date", Input: "date", wrong: wrongDate},
	{Name: events.URL, Says: "a web address", Asks: Line, Takes: NoOptions, Format: "uri", Narrow: true, Input: "url", Hint: true, wrong: wrongURL},
	{Name: events.Secret, Says: "kept sealed", Asks: Secret, Takes: NoOptions, Input: "password", Hint: true},
	{Name: events.Capability, Says: "something they hold", Asks: Reference, Takes: NoOptions, Input: "text", Hint: true},
	{Name: events.Document, Says: "a file", Asks: File, Takes: NoOptions, Input: "file"},
	{Name: "", Says: "whatever the pattern allows", Asks: Any, Takes: NoOptions, Input: "text", Hint: true},
}

// Names returns the names of the types, without that of a field that names none.
func Names() []string {
	var all []string
	for _, t := range Types {
		if t.Name != "" {
			all = append(all, string(t.Name))
		}
	}
	return all
}

// TypeOf returns the row of a type, or nil if there is none.
func TypeOf(name events.FieldType) *Type {
	for i := range Types {
		if Types[i].Name == name {
			return &Types[i]
		}
	}
	return nil
}

// ControlOf returns the kind of control that asks for a field, or "" for one of an unknown type.
func ControlOf(f *events.Field) Control {
	t := TypeOf(f.Type)
	switch {
	case t == nil:
		return ""
	case t.Ticks != "" && len(f.Options) > 0:
		return t.Ticks
	}
	return t.Asks
}

// JSON returns the type of an answer in JSON Schema; "" where a schema can tell none.
func (c Control) JSON() string {
	switch c {
	case Line, Lines, Choice, Date, Secret:
		return "string"
	case Number:
		return "number"
	case YesNo:
		return "boolean"
	case Choices:
		return "array"
	}
	return ""
}

// TypeFor returns the usual type for values of a type and format of JSON Schema. It reports whether there is one. A
// string may be one of some options.
func TypeFor(jsonType, format string, options bool) (events.FieldType, bool) {
	find := func(format string) int {
		return slices.IndexFunc(Types, func(t Type) bool {
			return t.Asks.JSON() == jsonType && (t.Asks == Choice) == (options && jsonType == "string") && t.Format == format && !t.Narrow
		})
	}
	i := find(format)
	if i < 0 {
		i = find("")
	}
	if i < 0 || jsonType == "" {
		return "", false
	}
	return Types[i].Name, true
}

func wrongDate(s string) string {
	if len(s) != len(time.DateOnly) || strings.Trim(s, "0123456789-") != "" {
		return "want a date such as 2026-01-31"
	}
	if _, err := time.Parse(time.DateOnly, s); err != nil {
		return "there is no such date"
	}
	return ""
}

// maxURL bounds a URL, in bytes: a longer one does not get through all browsers and proxies.
const maxURL = 2048

// wrongURL accepts absolute URLs of the web. What does not show in one could make it look like another.
func wrongURL(s string) string {
	const want = "want an absolute http or https URL such as https://example.com, without spaces and of at most 2048 bytes"
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || len(s) > maxURL {
		return want
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r == ' ' || parley.IsInvisible(r) }) {
		return want
	}
	if port := u.Port(); port != "" {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return want
		}
	}
	return ""
}
