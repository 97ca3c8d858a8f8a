package form

import (
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// MaxAnswer bounds the values of an answer with their names, in approximate bytes.
const MaxAnswer = capabilities.MaxValueSize

// maxWhy bounds the message of a pattern about one value, in characters.
const maxWhy = 200

// checkBudget is the work that may still be spent on checking one answer by its patterns.
type checkBudget struct {
	checks  int // comparisons of a part of a value with a part of a pattern; an error for each fits in memory
	matches int // bytes of a value times the states that may read each
}

func newCheckBudget() *checkBudget { return &checkBudget{checks: 250_000, matches: 32_000_000} }

// spend spends the work for a value of an extent. It reports whether enough was left.
func (b *checkBudget) spend(e capabilities.Extent, l schemaCost) bool {
	checks, matches := e.Parts*l.checks, e.Bytes*l.steps
	if checks > b.checks || matches > b.matches {
		return false
	}
	b.checks -= checks
	b.matches -= matches
	return true
}

// Check returns the values of an answer as they are stored. Defaults replace missing values. Empty optional values ("",
// null, []) are left out, except for a capability field that takes every value. It refuses with INVALID_ANSWER, naming
// every wrong field, and with TOO_LARGE more than 256 KiB. It does not change the given map.
func (c *Schema) Check(values map[string]capabilities.Value) (map[string]capabilities.Value, error) {
	var w parley.FieldErrors
	return c.check(values, &w)
}

// check is Check for values of which some fields could not be read. It reports nothing more about those.
func (c *Schema) check(values map[string]capabilities.Value, w *parley.FieldErrors) (map[string]capabilities.Value, error) {
	if err := CheckSize(values); err != nil {
		return nil, err
	}
	values = normalNames(values, w)
	out := make(map[string]capabilities.Value, len(c.fields))
	left := newCheckBudget()
	for i := range c.fields {
		q := c.question(i)
		if w.Has(q.Name) {
			continue
		}
		v, given := values[q.Name]
		if !given {
			v = q.Default
		}
		if isEmpty(v) && !(given && q.takesEmpty()) {
			if q.Required {
				w.Add(q.Name, "required")
			}
			continue
		}
		if given {
			if takesChoices(q.Field) {
				v = normalChoice(v)
			}
			if why := q.wrong(v, left); why != "" {
				w.Add(q.Name, why)
				continue
			}
		}
		out[q.Name] = v
	}
	for i := range c.fields {
		if !TakesOther(c.fields, i) || !isOther(out[c.fields[i].Name]) {
			continue
		}
		in := c.fields[i+1].Name
		if words, _ := out[in].AsString(); strings.TrimSpace(words) == "" && !w.Has(in) {
			w.Add(in, "say it in words: "+OtherOption+" alone is no answer")
		}
	}
	for name := range values {
		if _, known := c.find(name); !known && !w.Has(parley.Shown(name, maxFieldName)) {
			w.Add(parley.Shown(name, maxFieldName), "no such field")
		}
	}
	w.Sort(c.find)
	if err := w.Err(parley.InvalidAnswer); err != nil {
		return nil, err
	}
	return out, CheckSize(out) // defaults take room too
}

// CheckSize refuses with TOO_LARGE the values of an answer that take more than MaxAnswer bytes.
func CheckSize(values map[string]capabilities.Value) error {
	n := 5
	for name, v := range values {
		n += 5 + len(name) + v.Extent().Bytes
	}
	if n > MaxAnswer {
		return parley.Refuse(parley.TooLarge, "an answer of %d bytes is over the limit of %d", n, MaxAnswer)
	}
	return nil
}

// takesEmpty reports whether an empty value is an answer too: a value that is held under a name may be empty.
func (q question) takesEmpty() bool { return q.anyValue && ControlOf(q.Field) == Reference }

// isEmpty reports whether a value means that nothing was given.
func isEmpty(v capabilities.Value) bool {
	s, isText := v.AsString()
	l, isList := v.AsList()
	return v.IsNull() || isText && s == "" || isList && len(l) == 0
}

// wrong returns why v does not answer the question, or "".
func (q question) wrong(v capabilities.Value, left *checkBudget) string {
	if v.IsSealed() {
		if ControlOf(q.Field) != Secret {
			return "only a secret field takes a sealed value"
		}
		return ""
	}
	if why := wrongValue(v); why != "" {
		return why
	}
	if why := q.wrongType(v); why != "" {
		return why
	}
	if q.pattern != nil {
		return q.pattern.wrong(v, left)
	}
	return ""
}

// wrongValue returns why a value cannot be stored, or "". The answer is stored as one record, one level above v.
func wrongValue(v capabilities.Value) string {
	if err := capabilities.List(v).Check(); err != nil {
		if parley.CodeOf(err) == parley.TooLarge {
			return fmt.Sprintf("it is too large, or nested more than %d deep", capabilities.MaxValueDepth-1)
		}
		return parley.AsError(err).Message
	}
	return ""
}

func (q question) wrongType(v capabilities.Value) string {
	switch ControlOf(q.Field) {
	case Number:
		_, isInt := v.AsInt()
		_, isFloat := v.AsFloat()
		return unless(isInt || isFloat, "want a number")
	case YesNo:
		_, ok := v.AsBool()
		return unless(ok, "want true or false")
	case Choice:
		s, ok := v.AsString()
		return unless(ok && q.hasOption(s), q.options())
	case Choices:
		return q.wrongChoices(v)
	case Reference:
		_, ok := v.AsRef()
		return unless(ok || q.anyValue, "want a capability")
	case File:
		return wrongFile(v)
	case Any:
		if q.pattern != nil {
			return wrongLeaf(v)
		}
	}
	s, ok := v.AsString()
	if t := TypeOf(q.Type); t.wrong != nil {
		return t.wrong(s) // which takes no empty text
	}
	return unless(ok, "want text")
}

func unless(ok bool, why string) string {
	if ok {
		return ""
	}
	return why
}

func (q question) hasOption(s string) bool {
	return slices.ContainsFunc(q.Options, func(o events.Option) bool { return o.Value == s })
}

// options returns the error that lists the options, as far as they fit in a line.
func (q question) options() string {
	const most = 10
	var values []string
	for _, o := range q.Options[:min(most, len(q.Options))] {
		values = append(values, parley.Shown(o.Value, 40))
	}
	if n := len(q.Options) - most; n > 0 {
		values = append(values, fmt.Sprintf("and %d more", n))
	}
	return "not one of the options: " + strings.Join(values, ", ")
}

func (q question) wrongChoices(v capabilities.Value) string {
	l, ok := v.AsList()
	if !ok {
		return "want a list of options"
	}
	seen := make(map[string]bool, min(len(l), len(q.Options)))
	for _, e := range l {
		s, ok := e.AsString()
		if !ok || !q.hasOption(s) {
			return q.options()
		}
		if seen[s] {
			return parley.Shown(s, 40) + " is chosen twice"
		}
		seen[s] = true
	}
	return ""
}

// wrongLeaf refuses references and sealed values in plain data. Only capability fields take references.
func wrongLeaf(v capabilities.Value) (why string) {
	_, _ = v.Map(func(leaf capabilities.Value) (capabilities.Value, error) { // fn returns no error, so Map does not
		if _, isRef := leaf.AsRef(); isRef {
			why = "it holds a capability, which only a field of type capability takes"
		}
		if leaf.IsSealed() {
			why = "only a secret field takes a sealed value"
		}
		return leaf, nil
	})
	return why
}

// wrong returns why the pattern does not accept v, or "".
func (p *pattern) wrong(v capabilities.Value, left *checkBudget) string {
	if !left.spend(v.Extent(), p.schemaCost) {
		return "the answer is too large for its patterns"
	}
	b, err := v.MarshalJSON()
	if err != nil {
		return notJSON
	}
	return p.check(b)
}

const notJSON = "it cannot be written as JSON"
