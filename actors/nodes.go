package actors

import (
	"context"
	"crypto/rand"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// NewInvitation says whom to invite. The host of the node that accepts it will be held under Name.
type NewInvitation struct {
	Name  string            `json:"name"`
	Until capabilities.Time `json:"until,omitzero"` // default: a day from now
}

// invitationTime is how long an invitation is good where nothing else is said.
const invitationTime = 24 * time.Hour

// Invite makes an invitation. Only the node's host may. NAME_TAKEN says that the name is not free.
func (a *Agent) Invite(ctx context.Context, n NewInvitation) (view.Invitation, error) {
	hints := a.node.hints()
	if len(hints) == 0 && a.node.o.URL == "" {
		return view.Invitation{}, parley.Refuse(parley.NodeUnreachable, "other nodes cannot reach this one").
			WithHint("parley serve --peer-listen ADDR, or --nats URL, lets them")
	}
	if n.Until == 0 {
		n.Until = a.node.now().Add(invitationTime)
	}
	secret := rand.Text()
	invite := mailbox.MakeInvitation{Name: n.Name, Digest: digest(secret), Until: n.Until}
	if a.by != nil {
		if _, _, err := a.node.standing(ctx, a.by.ref); err != nil {
			return view.Invitation{}, err
		}
		invite.Token, invite.Within = a.by.ID, a.by.end
	}
	evs, err := call(ctx, a, decide{invite})
	if err != nil {
		return view.Invitation{}, err
	}
	made := evs[len(evs)-1].(*events.InvitationMade)
	l := capabilities.Locator{ID: made.Invitation, Kind: capabilities.KindInvitation, Hints: hints, Secret: secret}
	return view.Invitation{ID: made.Invitation, Name: made.Name, Until: made.Until, Locator: l.String()}, nil
}

// Uninvite revokes the invitation under a name. UNKNOWN_NAME says that none is open.
func (a *Agent) Uninvite(ctx context.Context, name string) error {
	return a.do(ctx, mailbox.EndInvitation{Name: name})
}

// Invitations lists those that are open, oldest first, without their secrets.
func (a *Agent) Invitations(ctx context.Context) ([]view.Invitation, error) {
	return query(ctx, a, func(s *mailbox.State, now capabilities.Time) ([]view.Invitation, error) {
		all := []view.Invitation{}
		for _, i := range s.Invitations(now) {
			all = append(all, view.Invitation{ID: i.Invitation, Name: i.Name, Until: i.Until})
		}
		return all, nil
	})
}

// Accept takes an invitation up. Afterwards each node's host holds the other's, this one under name.
// INVITATION_USED says that another was faster, or that it has ended; NODE_UNREACHABLE, that it should be
// tried again.
func (a *Agent) Accept(ctx context.Context, name, locator string) (view.Accepted, error) {
	if a.id != a.node.host {
		return view.Accepted{}, parley.Refuse(parley.NotPermitted, "only the node's own host deals with other nodes")
	}
	l, err := capabilities.ParseLocator(locator)
	if err != nil {
		return view.Accepted{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, acceptTime)
	defer cancel()
	return a.node.accept(ctx, name, l)
}

// Nodes lists the nodes that this one knows, in the order in which it came to.
func (n *Node) Nodes(ctx context.Context) ([]view.Peer, error) {
	known, hosts := n.peers.list()
	names, err := query(ctx, n.Host(), func(s *mailbox.State, _ capabilities.Time) ([]string, error) {
		names := make([]string, len(hosts))
		for i, h := range hosts {
			names[i] = s.NameOf(h)
		}
		return names, nil
	})
	if err != nil {
		return nil, err
	}
	all := make([]view.Peer, len(known))
	for i, p := range known {
		all[i] = view.Peer{
			Node: p.id, Name: names[i], Host: hosts[i], Hints: p.place().Hints, Reachable: p.reachable.Load(),
			Heard: capabilities.Time(p.heard.Load()), Waiting: p.waiting(), Traffic: n.trafficWith(p),
			Use: n.accounts.ofPeer(p.id),
		}
	}
	return all, nil
}

func (n *Node) trafficWith(p *peer) view.Traffic {
	t := n.transport.Traffic(p.id)
	return view.Traffic{
		LettersIn: t.PacketsIn, LettersOut: t.PacketsOut, BytesIn: t.BytesIn, BytesOut: t.BytesOut,
		MailIn: p.mailIn.Load(), MailOut: p.mailOut.Load(),
	}
}

// Traffic counts what went between this node and all others.
func (n *Node) Traffic() view.Traffic {
	t := n.transport.Total()
	all := view.Traffic{
		LettersIn: t.PacketsIn, LettersOut: t.PacketsOut, BytesIn: t.BytesIn, BytesOut: t.BytesOut,
		Refused: n.transport.Refused() + n.refusedPackets.Load(),
	}
	known, _ := n.peers.list()
	for _, p := range known {
		all.MailIn += p.mailIn.Load()
		all.MailOut += p.mailOut.Load()
	}
	return all
}

// PeerAddress is where other nodes reach this one, "" if nowhere.
func (n *Node) PeerAddress() string { return n.transport.Address() }

// Unproved returns how many connections to PeerAddress have not proved a node's key, how many may for one address and
// altogether, and how many were refused or cut off.
func (n *Node) Unproved() (now, each, all int, refused uint64) { return n.transport.Unproved() }

// PublicAddress is what other nodes are told instead, "" if nothing.
func (n *Node) PublicAddress() string { return n.o.Public }
