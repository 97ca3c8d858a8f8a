package gateway

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
	"parley/gateway/web"
)

// fieldCandidates gives the fields of a form, or, once a field's name and a colon are typed, what it may be answered
// with. Where that is for the answerer to say in words, there are none.
func fieldCandidates(ctx context.Context, a *actors.Agent, r api.CompleteRequest) ([]api.Candidate, error) {
	e, err := chosen(ctx, a, r)
	if err != nil {
		return nil, err
	}
	name, typed, isNamed := strings.Cut(r.Prefix, ":")
	if !isNamed {
		found := make([]api.Candidate, len(e.Fields))
		for i, f := range e.Fields {
			found[i] = api.Candidate{Word: f.Name + ":", Description: describeField(f)}
		}
		return found, nil
	}
	i := slices.IndexFunc(e.Fields, func(f events.Field) bool { return f.Name == name })
	if i < 0 {
		return nil, nil
	}
	found, err := valueCandidates(ctx, a, e.Fields[i], typed)
	for i := range found {
		found[i].Word = name + ":" + found[i].Word
	}
	return found, err
}

func chosen(ctx context.Context, a *actors.Agent, r api.CompleteRequest) (view.Message, error) {
	ref, err := r.FormRef.Parse()
	if err != nil {
		return view.Message{}, err
	}
	return a.Message(ctx, ref)
}

// describeField says what a field asks for in a few words.
func describeField(f events.Field) string {
	parts := []string{cmp.Or(f.Label, f.Name), cmp.Or(string(f.Type), string(events.Text))}
	if f.Required {
		parts = append(parts, "required")
	}
	return strings.Join(parts, ", ")
}

// valueCandidates gives the values of a field that has a choice of them.
func valueCandidates(ctx context.Context, a *actors.Agent, f events.Field, typed string) ([]api.Candidate, error) {
	switch {
	case f.Type == events.Capability:
		return nameCandidates(ctx, a, typed)
	case f.Type == events.Checkbox && len(f.Options) == 0:
		return []api.Candidate{{Word: "true"}, {Word: "false"}}, nil
	}
	found := make([]api.Candidate, len(f.Options))
	for i, o := range f.Options {
		found[i] = api.Candidate{Word: o.Value, Description: strings.TrimSpace(o.Label + " " + o.Description)}
	}
	return found, nil
}

// edgeCandidates gives the edges of a message, and what stands under each.
func edgeCandidates(ctx context.Context, a *actors.Agent, r api.CompleteRequest) ([]api.Candidate, error) {
	e, err := chosen(ctx, a, r)
	if err != nil {
		return nil, err
	}
	var found []api.Candidate
	for _, edge := range sortedKeys(e.Edges) {
		found = append(found, api.Candidate{Word: edge, Description: web.ShowValue(e.Edges[edge], nil, kindOf)})
	}
	return found, nil
}

func kindOf(r capabilities.Ref) string { return string(r.Kind) + " " + web.ShortID(r.Target) }
