package mailbox

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// Mail to another node is leave to write back: that node has got the agent's address, and may use it. The leave is a
// grant as any other. It goes by the ID of the mail that began it, it is listed, and it can be revoked; then mail that
// the agent sends there is the beginning of another.

// grantReply lets an agent write back from its node, because mail went to it.
func (s *State) grantReply(with, mail capabilities.ID, at capabilities.Time) {
	if !s.isOutside(with) {
		return
	}
	if g, dealt := s.replyGrants[with.Node]; dealt {
		if _, gone := s.revoked[g.ID]; !gone {
			return
		}
	}
	s.addReplyGrant(capabilities.Grant{
		ID: mail, Target: s.ID, Kind: capabilities.KindAgent, Name: capabilities.NameSelf, To: with, By: s.ID, Message: mail, At: at,
	})
}

func (s *State) addReplyGrant(g capabilities.Grant) {
	if s.replyGrants == nil {
		s.replyGrants = map[capabilities.NodeID]capabilities.Grant{}
	}
	s.replyGrants[g.To.Node] = g
}

// replyGrantList returns the leave of other nodes to write back, oldest first.
func (s *State) replyGrantList() []capabilities.Grant {
	all := slices.Collect(maps.Values(s.replyGrants))
	for i := range all {
		all[i].Revoked = s.revoked[all[i].ID]
	}
	slices.SortFunc(all, func(a, b capabilities.Grant) int {
		return cmp.Or(cmp.Compare(a.At, b.At), a.ID.Compare(b.ID), a.To.Compare(b.To))
	})
	return all
}

// Grants returns the grants that the agent gave, oldest first: those that its mail carried, and the leave to write
// back.
func (s *State) Grants() []capabilities.Grant {
	all := s.given.All()
	if len(s.replyGrants) == 0 {
		return all
	}
	all = append(all, s.replyGrantList()...)
	slices.SortStableFunc(all, func(a, b capabilities.Grant) int { return cmp.Compare(a.At, b.At) })
	return all
}

// grant returns a grant that the agent gave.
func (s *State) grant(id capabilities.ID) (capabilities.Grant, bool) {
	if g, ok := s.given.Get(id); ok {
		return g, true
	}
	for _, g := range s.replyGrants {
		if g.ID == id {
			g.Revoked = s.revoked[id]
			return g, true
		}
	}
	return capabilities.Grant{}, false
}

// reach returns the agent at a path, or with an ID or locator that the agent holds, checked for a use. It refuses with
// UNKNOWN_RECIPIENT a path that leads to no agent, and with NOT_PERMITTED an agent that may not be used.
func (s *State) reach(to string, use capabilities.Use, now capabilities.Time) (capabilities.Ref, error) {
	ref, err := s.recipient(to, use, now)
	if err != nil {
		return ref, err
	}
	return ref, s.permit(ref, use, now)
}

func (s *State) recipient(to string, use capabilities.Use, now capabilities.Time) (capabilities.Ref, error) {
	if id, err := capabilities.ParseTarget(to); err == nil {
		return s.claim(agentRef(id), use, now)
	}
	ref, err := s.agentAt(to)
	if err != nil || !isBare(ref) || !inMail(to) {
		return ref, err
	}
	return s.claim(ref, use, now)
}

// at returns the value that the agent holds at a path. A bare reference in mail counts as much as its target's ID
// does.
func (s *State) at(path string, use capabilities.Use, now capabilities.Time) (capabilities.Value, error) {
	v, err := s.Lookup(path)
	if err != nil || !inMail(path) {
		return v, err
	}
	return s.claimKnown(v, use, now)
}

// inMail reports whether a path leads into mail.
func inMail(path string) bool {
	p, err := capabilities.ParsePath(path)
	return err == nil && p[0] == capabilities.NameMail
}

// isBare reports whether a reference has neither a grant nor a facet.
func isBare(r capabilities.Ref) bool { return r.Grant.IsZero() && r.Facet.IsFull() }

// claimKnown replaces each bare reference in a value by the one that the agent holds.
func (s *State) claimKnown(v capabilities.Value, use capabilities.Use, now capabilities.Time) (capabilities.Value, error) {
	return v.Map(func(leaf capabilities.Value) (capabilities.Value, error) {
		ref, ok := leaf.AsRef()
		if !ok || !isBare(ref) {
			return leaf, nil
		}
		held, err := s.claim(ref, use, now)
		return capabilities.Reference(held), err
	})
}

// addressed returns the agent that a path, ID or locator means, whether it may be used or not.
func (s *State) addressed(to string) (capabilities.ID, error) {
	if id, err := capabilities.ParseTarget(to); err == nil {
		return id, nil
	}
	ref, err := s.agentAt(to)
	return ref.Target, err
}

// agentAt returns the reference to an agent at a path.
func (s *State) agentAt(to string) (capabilities.Ref, error) {
	v, err := s.Lookup(to)
	switch parley.CodeOf(err) {
	case "":
	case parley.UnknownName:
		return capabilities.Ref{}, parley.Refuse(parley.UnknownRecipient, "unknown recipient %.200q", to).
			WithHint("parley names lists whom this agent can reach")
	default:
		return capabilities.Ref{}, err
	}
	ref, ok := v.AsRef()
	if !ok || ref.Kind != capabilities.KindAgent {
		return ref, parley.Refuse(parley.UnknownRecipient, "%.200q is not an agent", to)
	}
	return ref, nil
}

// permit refuses with NOT_PERMITTED a use of a reference that was revoked or does not permit it.
func (s *State) permit(ref capabilities.Ref, use capabilities.Use, now capabilities.Time) error {
	if err := s.checkLive(ref); err != nil {
		return err
	}
	return ref.Facet.Permits(use, now, s.used[ref.Grant])
}

// checkLive refuses with NOT_PERMITTED a reference that was revoked.
func (s *State) checkLive(ref capabilities.Ref) error {
	if at, gone := s.revoked[ref.Grant]; gone && !ref.Grant.IsZero() {
		return parley.Refuse(parley.NotPermitted, "the reference to %s was revoked at %s", s.describe(ref.Target), at)
	}
	return nil
}

// claim returns the reference by which the agent holds a target, under its names or from its mail. Of several it
// prefers one that permits the use now, then the widest, then the first. It refuses with NOT_PERMITTED a target that
// is not held. Whether the reference permits the use, permit reports.
func (s *State) claim(want capabilities.Ref, use capabilities.Use, now capabilities.Time) (capabilities.Ref, error) {
	var best, revoked *capabilities.Ref
	carries := false
	for r := range s.heldRefs(want.Target) {
		if r.Target != want.Target || r.Kind != want.Kind || !want.Grant.IsZero() && r.Grant != want.Grant {
			continue
		}
		if _, gone := s.revoked[r.Grant]; gone {
			revoked = &r
			continue
		}
		fit := s.permit(r, use, now) == nil
		if best == nil || fit && !carries || fit == carries && r.Facet.Wider(best.Facet) {
			best, carries = &r, fit
		}
		if carries && best.Facet.IsFull() {
			break // there is no better one
		}
	}
	switch {
	case best != nil:
		return *best, nil
	case revoked != nil:
		return *revoked, s.permit(*revoked, use, now)
	}
	return capabilities.Ref{}, parley.Refuse(parley.NotPermitted, "this agent does not hold %s", want.Target).
		WithHint("knowing an ID gives no authority: ask whoever holds it to give it")
}

// heldRefs yields every reference that the agent holds, always in the same order: those that it was made with, those under
// its names, and those from its mail. The target's own names come first.
func (s *State) heldRefs(target capabilities.ID) iter.Seq[capabilities.Ref] {
	return func(yield func(capabilities.Ref) bool) {
		if !yield(agentRef(s.ID)) || !yield(agentRef(s.Profile.Host)) {
			return
		}
		for _, n := range slices.Sorted(slices.Values(s.namesOf[target])) {
			if !visitRefs(s.names[n], yield) {
				return
			}
		}
		for _, n := range slices.Sorted(maps.Keys(s.names)) {
			if !visitRefs(s.names[n], yield) {
				return
			}
		}
		for _, m := range s.messages {
			for _, e := range s.refEdges(m) {
				if e.name == "@to" && m.From() != s.ID {
					continue // whom else it was sent to is known, not held
				}
				if !visitRefs(e.value, yield) {
					return
				}
			}
		}
	}
}

// visitRefs calls yield for the references within a value until it returns false.
func visitRefs(v capabilities.Value, yield func(capabilities.Ref) bool) bool {
	if r, ok := v.AsRef(); ok {
		return yield(r)
	}
	for _, r := range v.Refs() {
		if !yield(r) {
			return false
		}
	}
	return true
}

// claimAll replaces each reference in a value from outside by the one that the agent holds.
func (s *State) claimAll(v capabilities.Value, use capabilities.Use, now capabilities.Time) (capabilities.Value, error) {
	if !v.Has(capabilities.Value.IsRef) {
		return v, nil
	}
	return v.Map(func(leaf capabilities.Value) (capabilities.Value, error) {
		ref, ok := leaf.AsRef()
		if !ok {
			return leaf, nil
		}
		held, err := s.claim(ref, use, now)
		return capabilities.Reference(held), err
	})
}

// delegation is a value being given: each reference in it becomes one by a new grant to the receiver.
type delegation struct {
	to      capabilities.ID
	message capabilities.ID
	now     capabilities.Time
	ids     IDs
	grants  []capabilities.Grant
}

// delegate returns the value as its receiver will hold it. It refuses with NOT_PERMITTED references that the giver may not
// pass on.
func (s *State) delegate(g *delegation, name string, v capabilities.Value) (capabilities.Value, error) {
	if !v.Has(capabilities.Value.IsRef) {
		return v, nil
	}
	return v.Map(func(leaf capabilities.Value) (capabilities.Value, error) {
		ref, ok := leaf.AsRef()
		if !ok {
			return leaf, nil
		}
		if err := s.permit(ref, capabilities.UseGive, g.now); err != nil {
			return leaf, err
		}
		if ref.Facet.Uses != 0 && !ref.Grant.IsZero() {
			return leaf, parley.Refuse(parley.NotPermitted, "a reference for %d uses cannot be given on", ref.Facet.Uses)
		}
		grant := capabilities.Grant{
			ID: g.ids(), Parent: ref.Grant, Target: ref.Target, Kind: ref.Kind, Facet: ref.Facet,
			Name: s.grantName(ref, name), To: g.to, By: s.ID, Message: g.message, At: g.now,
		}
		g.grants = append(g.grants, grant)
		given := grant.Ref()
		if !s.isOutside(g.to) { // by what its target's home knows, if that is another or has it from another
			given.Root = s.presentedGrant(ref.Known(), ref.Target)
		}
		return capabilities.Reference(given), nil
	})
}

// grantName returns the giver's name for a reference; without one, the field or edge that it is given in.
func (s *State) grantName(ref capabilities.Ref, name string) string {
	if n := s.NameOf(ref.Target); n != "" {
		return n
	}
	return name
}

func grantEvents(grants []capabilities.Grant) []events.Event {
	evs := make([]events.Event, len(grants))
	for i, g := range grants {
		evs[i] = &events.CapabilityGranted{Grant: g}
	}
	return evs
}

// applyGranted adds a grant that the agent gave. An answerer hears of its answer after the home has it. Its own grant
// may be revoked meanwhile, and then the new one falls at once.
func (s *State) applyGranted(e *events.CapabilityGranted) {
	g := e.Grant
	if _, before := s.given.Get(g.ID); before {
		return
	}
	s.given.Add(g)
	s.grantAdded(g)
	if at, gone := s.revoked[g.Parent]; gone {
		s.revokeGiven(g, at)
	}
}

// revokeGiven revokes a grant of the agent's own, and enqueues the news for its holder.
func (s *State) revokeGiven(g capabilities.Grant, at capabilities.Time) {
	s.given.Mark(g.ID, at)
	s.revoked[g.ID] = at
	for _, own := range s.minted.Cut(g.ID) { // it gave itself
		s.minted.Mark(own.ID, at)
	}
	s.enqueue(events.OutboxRevocation, g.ID, g.To)
	if s.needsMint(g) {
		s.enqueue(events.OutboxRevocation, g.ID, g.Target)
	}
}

// applyRevoked revokes what the agent derived from a grant.
func (s *State) applyRevoked(e *events.CapabilityRevoked) {
	if _, before := s.revoked[e.Grant]; before {
		return
	}
	s.revoked[e.Grant] = e.Date
	for _, g := range s.minted.Cut(e.Grant) {
		s.minted.Mark(g.ID, e.Date)
	}
	for _, g := range s.given.Cut(e.Grant) {
		s.revokeGiven(g, e.Date)
	}
}

func (s *State) use(grant capabilities.ID) {
	if !grant.IsZero() {
		s.used[grant]++
	}
}

// RevokeCapability revokes a grant that the agent gave, with everything derived from it.
type RevokeCapability struct{ Grant capabilities.ID }

func (c RevokeCapability) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	g, ok := s.grant(c.Grant)
	if !ok {
		return nil, parley.Refuse(parley.NotPermitted, "this agent gave no grant %s", c.Grant).
			WithHint("parley grants lists what it gave")
	}
	if g.Revoked != 0 {
		return nil, nil
	}
	return []events.Event{&events.CapabilityRevoked{Grant: c.Grant, By: s.ID, Date: now}}, nil
}
