package mailbox

import (
	"unicode/utf8"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// Between nodes authority is held by node, and looked after at the home of its target: who may reach an agent
// from elsewhere stands in that agent's own log. Within a node it is by agent, which the node sees to itself;
// as it signs for all its agents, nobody else could.

// maxMinted bounds the grants by which one agent can be reached from other nodes.
const maxMinted = 100_000

// MintCapability asks the target of a grant to let it be reached by that. Via is the grant by which the giver's node is
// known here; zero if it goes by the mail that the target has sent there.
type MintCapability struct {
	Grant capabilities.Grant
	Via   capabilities.ID

	Quotas *Amounts // the giver's; nil for none
}

func (c MintCapability) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	g := c.Grant
	if _, before := s.minted.Get(g.ID); before {
		return nil, nil
	}
	if g.Target != s.ID || g.Kind != capabilities.KindAgent || g.By == s.ID || g.ID.IsZero() || g.ID.Node != g.By.Node || g.To.IsZero() {
		return nil, parley.Refuse(parley.NotPermitted, "this is no grant that could be made of this agent")
	}
	if len(g.Name) > maxGrantName || !utf8.ValidString(g.Name) {
		return nil, parley.Refuse(parley.InvalidArgument, "the grant's name is no name")
	}
	if err := g.Facet.Check(); err != nil {
		return nil, err
	}
	if s.minted.Len() >= maxMinted {
		return nil, parley.Refuse(parley.TooLarge, "the agent can be reached by %d grants already", maxMinted)
	}
	if s.isOutside(g.By) || s.isOutside(c.Via) {
		held, err := s.admit(g.By, c.Via, capabilities.UseGive, now)
		if err != nil {
			return nil, err
		}
		if held.Facet.Uses != 0 || held.Facet.Narrow(g.Facet) != g.Facet {
			return nil, parley.Refuse(parley.NotPermitted, "the grant gives more than its giver holds")
		}
		c.Via = held.ID // it falls with what its giver holds the agent by
	}
	g.Parent, g.Revoked = c.Via, 0
	g.At = notAhead(g.At, now)
	e := &events.CapabilityMinted{Grant: g}
	if err := s.checkRoom(c.Quotas, e, now); err != nil {
		return nil, err
	}
	return []events.Event{e}, nil
}

// isOutside reports whether something was made on another node. Nothing was not.
func (s *State) isOutside(id capabilities.ID) bool { return !id.IsZero() && id.Node != s.ID.Node }

// admit returns the grant by which a node holds this agent: the one that it shows, or its having got mail from the
// agent. It refuses with NOT_PERMITTED one that does not hold it, and a use that it does not hold it for.
func (s *State) admit(from, via capabilities.ID, use capabilities.Use, now capabilities.Time) (capabilities.Grant, error) {
	g, minted := s.minted.Get(via)
	switch {
	case minted && g.Revoked != 0:
		return g, parley.Refuse(parley.NotPermitted, "the reference was revoked at %s", g.Revoked)
	case minted && g.To.Node == from.Node:
		return g, g.Facet.Permits(use, now, s.used[via])
	}
	g, dealt := s.replyGrants[from.Node]
	if at, gone := s.revoked[g.ID]; dealt && gone {
		return g, parley.Refuse(parley.NotPermitted, "the leave to write back was revoked at %s", at)
	} else if dealt {
		return g, nil
	}
	return g, parley.Refuse(parley.NotPermitted, "the sender does not hold the agent that this is for")
}

// presented is the grant to show where a reference is used: none to agents next door that were always so.
func (s *State) presented(via, to capabilities.ID) capabilities.ID {
	if root, derived := s.roots[via]; derived {
		via = root
	}
	if s.isOutside(to) || s.isOutside(via) {
		return via
	}
	return capabilities.ID{}
}

// rooted keeps the roots of the references in a value that mail has brought.
func (s *State) rooted(v capabilities.Value) {
	if !v.Has(capabilities.Value.IsRef) {
		return
	}
	eachRef(v, func(r capabilities.Ref) bool {
		if !r.Root.IsZero() {
			if s.roots == nil {
				s.roots = map[capabilities.ID]capabilities.ID{}
			}
			s.roots[r.Grant] = r.Root
		}
		return true
	})
}

// mints reports whether the target of a grant, which is another agent, has to be told of it. One that is given
// itself has no use for that, and would wait for it for ever.
func (s *State) mints(g capabilities.Grant) bool {
	return s.isOutside(g.To) && g.Kind == capabilities.KindAgent && g.Target != s.ID && g.To != g.Target
}

// entered does what follows from a new grant of the agent's own: it can be used once its target knows of it.
func (s *State) entered(g capabilities.Grant) {
	switch {
	case s.mints(g):
		s.enqueue(events.OutboxMint, g.ID, g.Target)
		s.minting++
	case s.isOutside(g.To) && g.Target == s.ID:
		s.minted.Add(g)
	}
}

func (s *State) applyMinted(e *events.CapabilityMinted) {
	s.minted.Add(e.Grant)
	for _, id := range []capabilities.ID{e.Grant.ID, e.Grant.Parent} {
		if at, gone := s.revoked[id]; gone {
			s.minted.Mark(e.Grant.ID, at)
		}
	}
}
