package gateway

import (
	"cmp"
	"slices"
	"strings"

	"parley/capabilities"
	"parley/events"
)

// choiceSeparator stands between the choices of a checkbox.
const choiceSeparator = ", "

// widgetFor gives the field that takes an answer: the first that would, or else the first.
func widgetFor(fields []events.Field, answer capabilities.Value) events.Field {
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
			return f
		}
	}
	return fields[0]
}

// choiceOf gives an answer as its field has it: of a checkbox the list of choices. What is no choice stays as it
// is, to be refused.
func choiceOf(f events.Field, answer capabilities.Value) capabilities.Value {
	text, ok := answer.AsString()
	if f.Type != events.Checkbox || !ok {
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

// answerText gives an answer as this dialect has it: one text.
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
