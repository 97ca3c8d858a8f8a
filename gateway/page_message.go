package gateway

import (
	"context"
	"maps"
	"slices"

	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/web"
)

// card draws a message. Names are those of the agent whose mail it is in.
func (s *Server) card(ctx context.Context, l local, e view.Message, t *web.Tried) web.Card {
	return web.NewCard(pagePrefix(ctx), l.name, e, t, s.namer(ctx, l.agent))
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
		return string(r.Kind) + " " + web.ShortID(r.Target)
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
