package view

import (
	"cmp"
	"slices"
	"strings"

	"parley/capabilities"
	"parley/events"
)

// ShowValue returns a value in words. A secret is masked for every reader.
func ShowValue(v capabilities.Value, options []events.Option, name func(capabilities.Ref) string) string {
	if b, ok := v.AsBool(); ok {
		if b {
			return "Yes"
		}
		return "No"
	}
	if s, ok := v.AsString(); ok {
		return optionLabel(options, s)
	}
	if r, ok := v.AsRef(); ok {
		return name(r)
	}
	l, ok := v.AsList()
	if !ok || slices.ContainsFunc(l, func(e capabilities.Value) bool { _, isText := e.AsString(); return !isText }) {
		return v.Text()
	}
	words := make([]string, len(l))
	for i, e := range l {
		words[i] = optionLabel(options, e.Text())
	}
	return strings.Join(words, ", ")
}

func optionLabel(options []events.Option, value string) string {
	i := slices.IndexFunc(options, func(o events.Option) bool { return o.Value == value })
	if i < 0 {
		return value
	}
	return cmp.Or(options[i].Label, value)
}

// ShortID returns the part of an ID that differs most between IDs of about one time.
func ShortID(id capabilities.ID) string {
	text, _, _ := strings.Cut(id.String(), "@")
	return "…" + text[max(0, len(text)-8):]
}
