package mcp

import (
	"context"

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
	if err != nil {
		return nil, err
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
