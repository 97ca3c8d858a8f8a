package mailbox

import (
	"cmp"
	"maps"
	"slices"

	"parley/capabilities"
)

// Mail to another node is leave to write back: that node has got the agent's address, and may use it. The leave is a
// grant as any other. It goes by the ID of the mail that began it, it is listed, and it can be revoked; then mail that
// the agent sends there is the beginning of another.

// grantReply notes that mail went to an agent, who may write back from its node.
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

// replyGrantList returns the leave that other nodes have to write back, oldest first.
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

// Grants returns what the agent gave, oldest first: what its mail carried, and the leave to write back.
func (s *State) Grants() []capabilities.Grant {
	all := s.given.All()
	if len(s.replyGrants) == 0 {
		return all
	}
	all = append(all, s.replyGrantList()...)
	slices.SortStableFunc(all, func(a, b capabilities.Grant) int { return cmp.Compare(a.At, b.At) })
	return all
}

// grant returns a grant of the agent's.
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
