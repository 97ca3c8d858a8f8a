package gateway

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
)

// answer is a field of a settled form.
type answer struct {
	Label  string
	Value  string
	Given  bool
	Secret bool
}

// answers gives what a settled form was answered with, in the order of its fields.
func answers(e view.Message, name func(capabilities.Ref) string) []answer {
	values, ok := e.Outcome.Values.AsRecord()
	if !ok {
		return nil // it is between others
	}
	shown := make([]answer, 0, len(e.Fields))
	for _, f := range e.Fields {
		v, given := values[f.Name]
		shown = append(shown, answer{
			Label: cmp.Or(f.Label, f.Name), Value: showValue(v, f.Options, name), Given: given, Secret: f.Type == events.Secret || v.IsSealed(),
		})
	}
	return shown
}

// showValue says a value in words. A secret is masked, whoever looks.
func showValue(v capabilities.Value, options []events.Option, name func(capabilities.Ref) string) string {
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

// maxNamed bounds the names that are looked through for what a reference is called.
const maxNamed = 500

// namer says what an agent calls a reference's target. It asks for the names once there is a reference.
func (s *Server) namer(ctx context.Context, a *actors.Agent) func(capabilities.Ref) string {
	var known map[capabilities.ID]string
	return func(r capabilities.Ref) string {
		if known == nil {
			known = heldNames(ctx, a)
		}
		if name, ok := known[r.Target]; ok {
			return name
		}
		return string(r.Kind) + " " + shortID(r.Target)
	}
}

func heldNames(ctx context.Context, a *actors.Agent) map[capabilities.ID]string {
	known := map[capabilities.ID]string{}
	names, err := a.Names(ctx, "")
	if err != nil {
		return known // then it is shown by its ID
	}
	for _, name := range names[:min(len(names), maxNamed)] {
		v, err := a.Show(ctx, name, false)
		if err != nil {
			continue
		}
		if r, ok := v.AsRef(); ok && known[r.Target] == "" {
			known[r.Target] = name
		}
	}
	return known
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
