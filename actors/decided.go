package actors

import (
	"context"
	"time"

	"parley/actors/view"
	"parley/capabilities"
	"parley/persistence/projection"
)

const (
	decidedTime = 100 * time.Millisecond // for which decisions are counted at most
	decidedLack = 100                    // events of a mailbox that are added for it: more of them are left to the index, which follows by itself
)

// CountDecided counts how many calls of agents of this node were decided since a time, with a question and without. The caller may look into
// the agents. It returns at once; the function that it returns has the numbers. That never waits for what the index lacks, for an index
// that others write, or for a disk that hangs: the agents of which it does not know the number in time are left out, and the index follows
// them at once.
func (rs Rules) CountDecided(ctx context.Context, since capabilities.Time, agents []capabilities.ID) func() map[capabilities.ID]view.Decided {
	s := rs.agent.node.searches
	versions := make(map[capabilities.ID]uint64, len(agents)) // what is logged from now on is not waited for
	for _, id := range agents {
		versions[id] = s.lacks(id, 0)
	}
	counts := make(chan map[capabilities.ID]projection.Decided, 2)
	select {
	case s.places <- struct{}{}:
	default:
		return func() map[capabilities.ID]view.Decided { return nil }
	}
	ctx, cancel := context.WithTimeout(ctx, decidedTime)
	go func() { // a call to open a file or to read it cannot be cancelled
		defer func() { <-s.places }()
		defer close(counts)
		_ = rs.agent.Mail().InTurn(ctx, func() error { return s.countDecided(ctx, since, agents, versions, counts) }) // what is not counted is not known
	}()
	return func() map[capabilities.ID]view.Decided {
		defer cancel()
		known := map[capabilities.ID]view.Decided{}
		for more := true; more; {
			var got map[capabilities.ID]projection.Decided
			select {
			case got, more = <-counts:
			case <-ctx.Done():
				more = false
			}
			for id, d := range got {
				if d.Version >= versions[id] {
					known[id] = view.Decided{Allowed: d.Allowed, Denied: d.Denied}
				}
			}
		}
		if len(known) < len(versions) {
			s.want()
		}
		return known
	}
}

// countDecided passes on what the index has and, where it lacks a little, what it has with that.
func (s *searches) countDecided(ctx context.Context, since capabilities.Time, agents []capabilities.ID, versions map[capabilities.ID]uint64, counts chan<- map[capabilities.ID]projection.Decided) error {
	x, err := s.opened(ctx)
	if err != nil {
		return err
	}
	got, err := x.Decided(ctx, since, agents)
	if err != nil {
		return err
	}
	counts <- got
	added := false
	for _, id := range agents {
		if at := got[id].Version; at >= versions[id] || versions[id]-at > decidedLack {
			continue
		}
		if _, err := s.add(ctx, id); err != nil {
			return err
		}
		added = true
	}
	if !added {
		return nil
	}
	if got, err = x.Decided(ctx, since, agents); err == nil {
		counts <- got
	}
	return err
}
