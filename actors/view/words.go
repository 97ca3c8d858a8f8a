package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

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

// Words returns the step in words, as in "escalated from ops after 4h". Name returns an agent's name as it is shown, and when
// a time.
func (s ForwardStep) Words(name func(capabilities.ID, string) string, when func(capabilities.Time) string) string {
	by := name(s.By, s.ByName)
	switch s.Cause {
	case events.Escalated:
		return "escalated from " + by + " after " + ShortDelay(s.After)
	case events.Absent:
		return "forwarded by " + by + " (away until " + when(s.Until) + ")"
	case events.Member:
		to := "you"
		if !s.To.IsZero() {
			to = name(s.To, s.ToName)
		}
		return "forwarded to " + to + " as a member of " + by
	}
	return "forwarded by " + by
}

// Words returns whom the form was forwarded to in words, as in "bob (you are away until 18:00)".
func (f Forwarded) Words(name func(capabilities.ID, string) string, when func(capabilities.Time) string) string {
	to := name(f.ID, f.Name)
	switch {
	case f.Cause == events.Absent && f.By.IsZero():
		return to + " (you are away until " + when(f.Until) + ")"
	case f.Cause == events.Absent:
		return to + " (" + name(f.By, f.ByName) + " is away until " + when(f.Until) + ")"
	case f.Cause == events.Member && f.By.IsZero():
		return to + " as a member"
	case f.Cause == events.Member:
		return to + " as a member of " + name(f.By, f.ByName)
	}
	return to
}

// ShortDelay returns a delay as a person writes it, as in "4h" or "1h30m".
func ShortDelay(d events.Delay) string { return capabilities.Span(time.Duration(d) * time.Millisecond) }
