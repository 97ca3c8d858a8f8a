package actors

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// Bounds of a list of what an agent holds.
const (
	listedHeld = 100 // resources
	heldMail   = 200 // of the newest messages, in which those are that have no name yet
)

// heldAt is a reference to a resource, and the path by which the agent uses it.
type heldAt struct {
	path string
	ref  capabilities.Ref
}

// Held lists the resources that the agent holds: those under its names, by name, and then those that its newest messages and answers gave it
// and that have no name yet. Of a resource of another node it says what the reference permits: what is left of it, its home knows.
func (rs Resources) Held(ctx context.Context) (view.Use, error) {
	all, err := rs.heldByName(ctx)
	if err != nil {
		return view.Use{}, err
	}
	mail, err := rs.agent.Mail().Last(ctx, view.MessageFilter{All: true}, 0, heldMail)
	if err != nil {
		return view.Use{}, err
	}
	for _, m := range slices.Backward(mail.Messages) {
		all = append(all, heldIn(&m)...)
	}
	got := view.Use{Held: []view.Held{}}
	known := map[[2]capabilities.ID]bool{}
	for _, h := range all {
		key := [2]capabilities.ID{h.ref.Target, h.ref.Grant}
		if h.path[0] == '@' && known[key] { // it has a name, or a newer message gave it again
			continue
		}
		known[key] = true
		if len(got.Held) == listedHeld || len(known) > 10*listedHeld { // others choose what their messages have, also what no path leads to
			got.MoreHeld = true
			break
		}
		one, err := rs.heldNow(ctx, h)
		switch code := parley.CodeOf(err); {
		case err == nil:
			got.Held = append(got.Held, one)
		case code != parley.UnknownName && code != parley.InvalidName: // else no path leads there
			return view.Use{}, err
		}
	}
	return got, nil
}

func (rs Resources) heldByName(ctx context.Context) ([]heldAt, error) {
	return queryListing(ctx, rs.agent, func(s *mailbox.State, _ capabilities.Time) (all []heldAt, _ error) {
		for name, value := range s.Names.Other() { // which may be many, of few of which something is used
			all = append(all, heldBelow(name, value)...)
		}
		slices.SortFunc(all, func(a, b heldAt) int { return strings.Compare(a.path, b.path) })
		return all, nil
	})
}

// heldIn returns what a message gave to the agent that has it.
func heldIn(m *view.Message) (all []heldAt) {
	path := capabilities.NameMail + "/" + strconv.FormatUint(m.Number, 10) + "/"
	if m.Received {
		for _, name := range slices.Sorted(maps.Keys(m.Edges)) {
			all = append(all, heldBelow(path+name, m.Edges[name])...)
		}
	}
	if m.Sent && m.Outcome != nil {
		v := m.Outcome.Values
		if parts, _ := v.AsRecord(); m.Type == string(events.Request) && len(m.Fields) == 1 { // whose value is at the path itself
			v = parts[m.Fields[0].Name]
		}
		all = append(all, heldBelow(path+"@value", v)...)
	}
	return all
}

// heldBelow returns the references to resources at a path and below it.
func heldBelow(path string, v capabilities.Value) (all []heldAt) {
	if ref, ok := v.AsRef(); ok && ref.Kind.IsResource() {
		return []heldAt{{path, ref}}
	}
	parts, _ := v.AsRecord()
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		all = append(all, heldBelow(path+"/"+name, parts[name])...)
	}
	return all
}

// heldNow returns what there is at a path, as it may be used now.
func (rs Resources) heldNow(ctx context.Context, h heldAt) (view.Held, error) {
	ref, err := rs.held(ctx, h.path)
	if parley.CodeOf(err) == parley.NotPermitted { // it was revoked, has expired or is used up
		return view.Held{Name: h.path, Kind: h.ref.Kind, Gone: parley.AsError(err).Message}, nil
	}
	if err != nil {
		return view.Held{}, err
	}
	n, one := rs.agent.node, view.Held{Name: h.path, Kind: ref.Kind}
	limits := ref.Facet
	if ref.Target.Node == n.id {
		limits, err = query(ctx, &Agent{node: n, id: ref.Target}, func(s *mailbox.State, _ capabilities.Time) (capabilities.Facet, error) {
			all, _, ask, err := mailbox.BeginUse{By: rs.agent.id, Grant: ref.Grant, Facet: ref.Facet}.Limits(s)
			all.Ask = !ask.IsZero()
			if used := s.Resource.Used(ref.Grant); all.Uses > 0 {
				left := all.Uses - min(used, all.Uses)
				one.Left = &left
			}
			return all, err
		})
	}
	if err != nil {
		if code := parley.CodeOf(err); code != parley.NotPermitted {
			return view.Held{}, err
		}
		one.Gone = parley.AsError(err).Message
		return one, nil
	}
	one.Words, one.Until = limits.Words(ref.Kind, capabilities.Time.String), limits.Until
	return one, nil
}
