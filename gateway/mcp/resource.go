package mcp

import (
	"context"
	"strings"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/sanitize"
)

// useCapability uses a resource that the agent holds, and waits a while for the end of the use. One that failed, was denied or is unknown
// is an error.
func useCapability(ctx context.Context, c *call) (any, error) {
	var arguments struct {
		Name  string                        `json:"name"`
		Verb  string                        `json:"verb"`
		Input map[string]capabilities.Value `json:"input"`
		Key   string                        `json:"key"`
		Use   string                        `json:"use"`
		Wait  *int64                        `json:"wait"`
	}
	if err := c.read(&arguments); err != nil {
		return nil, err
	}
	r := api.InvokeRequest{Name: arguments.Name, Verb: arguments.Verb, Input: arguments.Input, Key: arguments.Key, Use: arguments.Use}
	if arguments.Wait != nil {
		ms := min(*arguments.Wait, 50) * 1000
		r.WaitMs = &ms
	}
	got, err := api.Invoke.Do(ctx, c.agent, r)
	if parley.CodeOf(err) == parley.UnknownName {
		return nil, parley.AsError(err).WithHint("%s", heldHint(ctx, c))
	}
	if err != nil {
		return nil, err
	}
	for i := range got.Held {
		h := &got.Held[i]
		h.Name, h.Words, h.Gone = sanitize.Line(h.Name), sanitize.Line(h.Words), sanitize.Line(h.Gone)
	}
	if arguments.Name == "" {
		return heldList{append([]view.Held{}, got.Held...), got.MoreHeld}, nil // a list without members is one
	}
	got.Words = sanitize.Line(got.Words)
	if got.Error != nil {
		return nil, got.Error
	}
	if h := got.Holds; h != nil {
		h.Words = sanitize.Line(h.Words)
		for i := range h.Uses {
			h.Uses[i].Words, h.Uses[i].ByName = sanitize.Line(h.Uses[i].Words), sanitize.Line(h.Uses[i].ByName)
		}
	}
	got.Result = shownValue(got.Result)
	return got, nil
}

// heldList is what the agent holds.
type heldList struct {
	Held []view.Held `json:"held"`
	More bool        `json:"moreHeld,omitempty"`
}

// maxHinted bounds how much of what is held a hint names.
const maxHinted = 20

// heldHint returns what the agent holds in words, for one that has named something else.
func heldHint(ctx context.Context, c *call) string {
	got, err := api.Invoke.Do(ctx, c.agent, api.InvokeRequest{})
	if err != nil {
		return "without a name this tool lists what you hold"
	}
	var names []string
	for _, h := range got.Held {
		if h.Gone == "" {
			names = append(names, parley.Shown(h.Name, 150)+" ("+string(h.Kind)+")")
		}
	}
	switch {
	case len(names) == 0:
		return "you hold nothing that can be used: ask_user can ask for it, by a field of the type capability, and list_inbox lists what messages gave you"
	case len(names) > maxHinted:
		names = append(names[:maxHinted], "…")
	}
	return "you hold " + strings.Join(names, ", ")
}

// shownValue returns a value with what does not show in its texts written out.
func shownValue(v capabilities.Value) capabilities.Value {
	shown, err := v.Map(func(leaf capabilities.Value) (capabilities.Value, error) {
		if s, ok := leaf.AsString(); ok {
			return capabilities.String(sanitize.Lines(s)), nil
		}
		return leaf, nil
	})
	if err != nil {
		return capabilities.Null()
	}
	return shown
}
