package mailbox

import (
	"bytes"
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// Invitation is an invitation by a node's host. Ended means that it was used or revoked. By is the node that used it.
type Invitation struct {
	events.InvitationMade
	Ended bool
	By    capabilities.NodeID
}

func (r *PeerDirectory) addInvitation(e *events.InvitationMade) {
	r.invitations = append(r.invitations, Invitation{InvitationMade: *e})
}

func (r *PeerDirectory) endInvitation(e *events.InvitationEnded) {
	if i := r.invitation(e.Invitation); i >= 0 {
		r.invitations[i].Ended, r.invitations[i].By = true, e.Node
	}
}

func (r *PeerDirectory) invitation(id capabilities.ID) int {
	return slices.IndexFunc(r.invitations, func(i Invitation) bool { return i.Invitation == id })
}

// invited returns the index of the open invitation under a name; -1 if there is none.
func (r *PeerDirectory) invited(name string) int {
	return slices.IndexFunc(r.invitations, func(i Invitation) bool { return !i.Ended && i.Name == name })
}

// Invitations returns the invitations that are open at a time. The slice is the caller's.
func (r *PeerDirectory) Invitations(now capabilities.Time) []Invitation {
	return slices.DeleteFunc(slices.Clone(r.invitations), func(i Invitation) bool { return i.Ended || i.Until <= now })
}

// MakeInvitation makes an invitation, and ends an open one under the same name. If it is made by a Token of the host,
// it ends at Within at the latest.
type MakeInvitation struct {
	Name   string
	Digest []byte // SHA-256 of its secret
	Until  capabilities.Time
	Token  capabilities.ID
	Within capabilities.Time
}

func (c MakeInvitation) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	if err := s.Profile.checkNodeHost(); err != nil {
		return nil, err
	}
	if c.Until <= now {
		return nil, parley.Refuse(parley.InvalidArgument, "the invitation would have ended at %s", c.Until)
	}
	if c.Within != 0 && c.Until > c.Within {
		c.Until = c.Within
	}
	var evs []events.Event
	if i := s.Peers.invited(c.Name); i >= 0 {
		evs = append(evs, &events.InvitationEnded{Invitation: s.Peers.invitations[i].Invitation})
	} else if err := s.checkFree(c.Name); err != nil {
		return nil, err
	}
	if len(s.Peers.Invitations(now)) >= maxInvitations {
		return nil, parley.Refuse(parley.QuotaExceeded, "%d invitations are open already", maxInvitations).
			WithHint("parley invite --revoke NAME ends one")
	}
	return append(evs, &events.InvitationMade{Invitation: ids(), Name: c.Name, Digest: c.Digest, Until: c.Until, Grant: ids(), Token: c.Token}), nil
}

// EndInvitation revokes the open invitation under a name.
type EndInvitation struct{ Name string }

func (c EndInvitation) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	i := s.Peers.invited(c.Name)
	if i < 0 {
		return nil, parley.Refuse(parley.UnknownName, "no invitation is open under %.200q", c.Name).
			WithHint("parley invite --list shows those that are")
	}
	return []events.Event{&events.InvitationEnded{Invitation: s.Peers.invitations[i].Invitation}}, nil
}

// CheckInvitation returns an invitation if a node may use it with a secret of the given digest: it is open, or that
// node has used it. It refuses with NOT_PERMITTED or INVITATION_USED.
func (s *State) CheckInvitation(invitation capabilities.ID, digest []byte, node capabilities.NodeID, now capabilities.Time) (Invitation, error) {
	i := s.Peers.invitation(invitation)
	if i < 0 || !bytes.Equal(s.Peers.invitations[i].Digest, digest) { // digests need no comparison in constant time
		return Invitation{}, parley.Refuse(parley.NotPermitted, "there is no such invitation")
	}
	inv := s.Peers.invitations[i]
	switch {
	case inv.Ended && inv.By != node:
		return inv, parley.Refuse(parley.InvitationUsed, "the invitation was used or revoked").WithHint("ask for another")
	case !inv.Ended && inv.Until <= now:
		return inv, parley.Refuse(parley.InvitationUsed, "the invitation was good until %s", inv.Until).WithHint("ask for another")
	case !inv.Ended && !s.Tokens.isStanding(inv.Token, now):
		return inv, parley.Refuse(parley.InvitationUsed, "the invitation has ended with the token that made it").WithHint("ask for another")
	}
	return inv, nil
}

// RedeemInvitation adds the node that uses an invitation. Grant is the grant of its host.
type RedeemInvitation struct {
	Invitation capabilities.ID
	Digest     []byte
	Host       capabilities.ID
	Grant      capabilities.ID
	Hints      []string
	Stamp      capabilities.Time
	Network    events.Network // in which it was met
}

func (c RedeemInvitation) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	inv, err := s.CheckInvitation(c.Invitation, c.Digest, c.Host.Node, now)
	if err != nil {
		return nil, err
	}
	if inv.Ended { // its reply was lost
		return nil, nil
	}
	if c.Host.Node == s.ID.Node || c.Grant.Node != c.Host.Node {
		return nil, parley.Refuse(parley.InvalidArgument, "a node does not accept its own invitation")
	}
	added, err := AddPeer{
		Host: c.Host, Name: inv.Name, Theirs: c.Grant, Ours: inv.Grant, Hints: c.Hints, Stamp: c.Stamp, Network: c.Network,
	}.events(s, now)
	if err != nil {
		return nil, err
	}
	return append([]events.Event{&events.InvitationEnded{Invitation: c.Invitation, Node: c.Host.Node}}, added...), nil
}
