package form

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// Bounds of a form.
const (
	MaxFormSize = 192 << 10 // bytes, about, of the encoded fields
	MaxPattern  = 16 << 10  // bytes of one field's JSON Schema

	maxFieldName   = parley.MaxFieldName // characters, as the next three are
	maxLabel       = 1000
	maxHelp        = 4000
	maxOptionValue = 1000
)

// Schema is the compiled fields of a form. It is immutable and safe for concurrent use.
type Schema struct {
	fields   []events.Field
	patterns []*pattern     // by field; nil if no field has one
	index    map[string]int // nil if there are few fields
	anyValue bool           // see AnyValue
}

// fewFields is the largest number of fields that are searched without an index.
const fewFields = 8

// question is one field with its pattern.
type question struct {
	*events.Field
	pattern  *pattern // nil if there is none
	anyValue bool     // of a capability field: it takes plain values too
}

// question returns the field at an index.
func (c *Schema) question(i int) question {
	q := question{Field: &c.fields[i], anyValue: c.anyValue}
	if c.patterns != nil {
		q.pattern = c.patterns[i]
	}
	return q
}

// find returns the index of the field with a name.
func (c *Schema) find(name string) (int, bool) {
	if c.index != nil {
		i, ok := c.index[name]
		return i, ok
	}
	i := slices.IndexFunc(c.fields, func(f events.Field) bool { return f.Name == name })
	return i, i >= 0
}

// Compile checks a form's fields and compiles their patterns. It refuses with INVALID_FORM, naming every wrong field,
// and with TOO_LARGE more than 256 fields or 192 KiB of them. The patterns of all fields together are bounded too. It
// does not change the given fields.
func Compile(fields []events.Field) (*Schema, error) {
	if err := checkFormSize(fields); err != nil {
		return nil, err
	}
	return compileFields(fields, newPatternBudget())
}

// CompileAccepted compiles the fields of a form in the log. Each pattern is bounded only by itself, since the form was
// accepted by the bounds of its time. The schema holds the given fields themselves, unless their defaults have to be
// made explicit.
func CompileAccepted(fields []events.Field) (*Schema, error) {
	c, err := compileFields(fields, unlimitedPatterns())
	if err == nil && slices.EqualFunc(fields, c.fields, sameField) {
		c.fields = fields
	}
	return c, err
}

// AnyValue returns a schema with the same fields, whose capability fields take every value that can be named. The
// references in such a value count as capabilities.
func (c *Schema) AnyValue() *Schema {
	open := *c
	open.anyValue = true
	return &open
}

// compileFields compiles fields. Their patterns together have to fit in a budget.
func compileFields(fields []events.Field, left *patternBudget) (*Schema, error) {
	c := &Schema{fields: make([]events.Field, 0, len(fields))}
	if len(fields) > fewFields {
		c.index = make(map[string]int, len(fields))
	}
	var w parley.FieldErrors
	for i := range fields {
		field := fields[i]
		makePlain(&field)
		_, twice := c.find(field.Name)
		c.fields = append(c.fields, field)
		p, problems := compileField(&c.fields[i], left)
		if twice && field.Name != "" {
			problems = append(problems, "this name stands twice")
		}
		for _, why := range problems {
			w.Add(parley.FieldKey(field.Name, i), why)
		}
		if c.index != nil {
			c.index[field.Name] = i
		}
		if p != nil {
			if c.patterns == nil {
				c.patterns = make([]*pattern, len(fields))
			}
			c.patterns[i] = p
		}
	}
	if err := w.Err(parley.InvalidForm); err != nil {
		return nil, err
	}
	return c, nil
}

// Fields returns the fields with their defaults made explicit: a confirm without options has Yes and No, and an empty
// default or pattern is none. The caller must not change them.
func (c *Schema) Fields() []events.Field { return c.fields }

func checkFormSize(fields []events.Field) error {
	if len(fields) == 0 {
		return parley.Refuse(parley.InvalidForm, "a form has at least one field")
	}
	if n := len(fields); n > parley.MaxFields {
		return parley.Refuse(parley.TooLarge, "%d fields are over the limit of %d", n, parley.MaxFields)
	}
	size := 0
	for i := range fields {
		size += FieldSize(&fields[i])
	}
	if size > MaxFormSize {
		return parley.Refuse(parley.TooLarge, "%d bytes of fields are over the limit of %d", size, MaxFormSize)
	}
	return nil
}

// FieldSize returns the approximate bytes of an encoded field.
func FieldSize(f *events.Field) int {
	size := 32 + len(f.Name) + len(f.Label) + len(f.Type) + len(f.Placeholder) + len(f.Help) + len(f.Pattern)
	for i := range f.Options {
		o := &f.Options[i]
		size += 10 + len(o.Value) + len(o.Label) + len(o.Description)
	}
	return size + f.Default.Extent().Bytes + f.Example.Extent().Bytes
}

// compileField returns the pattern of a field, and all its faults.
func compileField(f *events.Field, left *patternBudget) (p *pattern, problems []string) {
	say := func(why string) {
		if why != "" {
			problems = append(problems, why)
		}
	}
	say(wrongName(f.Name))
	say(wrongText("label", f.Label, maxLabel))
	say(wrongText("help", f.Help, maxHelp))
	say(wrongText("placeholder", f.Placeholder, maxLabel))
	say(wrongOptions(f))
	if len(f.Pattern) > 0 && !left.isUp() { // one field reports that the budget is used up
		var why string
		p, why = compilePattern(f.Pattern, left)
		say(why)
	}
	if why := cmp.Or(wrongValue(f.Example), wrongLeaf(f.Example)); why != "" { // shown to all, so plain data
		say("example: " + why)
	}
	if len(problems) == 0 { // a default can be checked only by a valid field
		say(question{Field: f, pattern: p}.wrongDefault())
	}
	return p, problems
}

// makePlain sets the implied parts of a field, and removes an empty default or pattern. What answers are compared with is
// in normal form.
func makePlain(f *events.Field) {
	f.Name, f.Label, f.Options = capabilities.Normal(f.Name), capabilities.Normal(f.Label), normalOptions(f.Options)
	if takesChoices(f) {
		f.Default = normalChoice(f.Default)
	}
	if t := TypeOf(f.Type); t != nil && len(f.Options) == 0 && len(t.Given) > 0 {
		f.Options = slices.Clone(t.Given)
	}
	if string(f.Pattern) == "null" {
		f.Pattern = nil
	}
	if isEmpty(f.Default) {
		f.Default = capabilities.Null()
	}
}

// normalOptions returns options with values and labels in normal form.
func normalOptions(options []events.Option) []events.Option {
	for i, o := range options {
		value, label := capabilities.Normal(o.Value), capabilities.Normal(o.Label)
		if value == o.Value && label == o.Label {
			continue
		}
		options = slices.Clone(options)
		for j := i; j < len(options); j++ {
			options[j].Value, options[j].Label = capabilities.Normal(options[j].Value), capabilities.Normal(options[j].Label)
		}
		break
	}
	return options
}

// takesChoices reports whether a field is answered by its options.
func takesChoices(f *events.Field) bool {
	if len(f.Options) == 0 {
		return false
	}
	asks := ControlOf(f)
	return asks == Choice || asks == Choices
}

// normalChoice returns a choice, or several, in normal form. Any other value stays as it is.
func normalChoice(v capabilities.Value) capabilities.Value {
	if s, ok := v.AsString(); ok {
		if n := capabilities.Normal(s); n != s {
			return capabilities.String(n)
		}
		return v
	}
	list, _ := v.AsList()
	for i, e := range list {
		if s, ok := e.AsString(); ok && capabilities.Normal(s) != s {
			list = slices.Clone(list)
			for j := i; j < len(list); j++ {
				list[j] = normalChoice(list[j])
			}
			return capabilities.List(list...)
		}
	}
	return v
}

func (q question) wrongDefault() string {
	if q.Default.IsNull() {
		return ""
	}
	if asks := ControlOf(q.Field); asks == Reference || asks == Secret {
		return fmt.Sprintf("a %s field has no default", q.Type)
	}
	if why := q.wrong(q.Default, newCheckBudget()); why != "" {
		return "default: " + why
	}
	return ""
}

// wrongName returns why a field's name is invalid, or "". A name has to be usable in scripts and on command lines,
// which split at the first colon.
func wrongName(s string) string {
	switch {
	case s == "":
		return "a name is required"
	case utf8.RuneCountInString(s) > maxFieldName:
		return fmt.Sprintf("the name has more than %d characters", maxFieldName)
	case capabilities.CheckName(s) != nil:
		_, why, _ := strings.Cut(parley.AsError(capabilities.CheckName(s)).Message, " cannot be a name: ")
		return "the name cannot be used: " + why
	case strings.Contains(s, ":"):
		return "the name holds a colon"
	case strings.HasPrefix(s, " ") || strings.HasSuffix(s, " "):
		return "the name begins or ends with a space"
	case strings.ContainsFunc(s, parley.IsInvisible):
		return "the name holds control, bidi or invisible characters"
	case s == "__proto__" || s == "prototype" || s == "constructor":
		return "the name has a meaning of its own in scripts"
	}
	return ""
}

func wrongText(what, s string, limit int) string {
	if !utf8.ValidString(s) {
		return what + " is not valid UTF-8"
	}
	if utf8.RuneCountInString(s) > limit {
		return fmt.Sprintf("%s has more than %d characters", what, limit)
	}
	return ""
}

// wrongOptions returns why a field's options do not fit its type, or "".
func wrongOptions(f *events.Field) string {
	switch t := TypeOf(f.Type); {
	case t == nil:
		return "unknown type " + parley.Quoted(string(f.Type), 40)
	case t.Takes == NeedsOptions && len(f.Options) == 0:
		return fmt.Sprintf("a %s field needs options", f.Type)
	case t.Takes == NoOptions && len(f.Options) > 0:
		return fmt.Sprintf("a %s field takes no options", cmp.Or(string(f.Type), "text"))
	}
	if n := len(f.Options); n > parley.MaxOptions {
		return fmt.Sprintf("%d options are over the limit of %d", n, parley.MaxOptions)
	}
	if len(f.Options) == 0 {
		return ""
	}
	seen := make(map[string]bool, len(f.Options))
	for i, o := range f.Options {
		what := fmt.Sprintf("option %d", i+1)
		switch {
		case o.Value == "":
			return what + " has no value"
		case seen[o.Value]:
			return what + " has the same value as another"
		}
		seen[o.Value] = true
		for _, why := range []string{
			wrongText(what, o.Value, maxOptionValue),
			wrongText(what+"'s label", o.Label, maxLabel),
			wrongText(what+"'s description", o.Description, maxHelp),
		} {
			if why != "" {
				return why
			}
		}
	}
	return ""
}
