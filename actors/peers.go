package actors

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/nats-io/nkeys"

	"parley"
	"parley/actors/peers"
	"parley/actors/transport"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// peerNode is the node as package peers needs it.
type peerNode struct{ *Node }

var _ peers.Node = peerNode{}

// newPeers returns the directory of other nodes, which Start has carry mail.
func newPeers(n *Node) *peers.Directory {
	return peers.New(peers.Options{Node: peerNode{n}, ID: n.id, Public: n.o.Public, Hub: n.o.URL != "", Log: n.log})
}

// connect opens the transport to other nodes. The directory holds the peers of the host's log.
func (n *Node) connect(key nkeys.KeyPair) error {
	identity, err := transport.NewIdentity(key)
	if err != nil {
		return err
	}
	if m, _ := n.journal.Mailbox(n.host); aloneByNote(m.Note) {
		n.registry.tell(n.host, 0, activate{}) // it may have many names; nothing waits for them
	} else if _, err := n.Host().Names().List(n.life, "", "", 1); err != nil { // the host's mailbox, made from the log, fills the directory
		return err
	}
	n.transport, err = transport.Open(n.life, transport.Options{
		Identity: identity, Listen: n.o.Peers, Unproved: n.o.Unproved, Hub: n.o.URL, Access: n.o.Access, Log: n.log,
		Admit: n.peers.Admits, Receive: n.peers.Receive,
	})
	if err != nil {
		return err
	}
	n.peers.Start(n.life, n.transport)
	return nil
}

// Host implements peers.Node.
func (n peerNode) Host() capabilities.ID { return n.host }

// Now implements peers.Node.
func (n peerNode) Now() capabilities.Time { return n.now() }

// Failures implements peers.Node.
func (n peerNode) Failures() uint64 { return n.journal.Failures() }

// Overloaded implements peers.Node.
func (n peerNode) Overloaded() bool { return n.registry.overloaded(shareOfPeers) }

// Record implements peers.Node.
func (n peerNode) Record(ctx context.Context, c mailbox.Command) error {
	return n.Node.Host().do(ctx, c)
}

// Redeem implements peers.Node.
func (n peerNode) Redeem(ctx context.Context, c mailbox.RedeemInvitation, node capabilities.NodeID) (capabilities.ID, error) {
	return call(ctx, n.Node.Host(), redeemInvitation{c, node})
}

// CheckAccept implements peers.Node.
func (n peerNode) CheckAccept(ctx context.Context, name string, invitation capabilities.ID) error {
	_, err := query(ctx, n.Node.Host(), func(s *mailbox.State, _ capabilities.Time) (none, error) {
		return none{}, s.CheckAddPeer(name, invitation)
	})
	return err
}

// Spawn implements peers.Node.
func (n peerNode) Spawn(node capabilities.NodeID, producer actor.Producer) (tell func(message any)) {
	r := n.registry
	strategy := &supervision{r.tree, n.stopChild}
	pid := r.tree.spawn(peerName(node), actor.PropsFromProducer(producer, actor.WithGuardian(strategy), actor.WithDispatcher(r.dispatcher)))
	return func(message any) {
		if n.life.Err() == nil { // the actors may have ended
			r.system.Root.Send(pid, message)
		}
	}
}

// redeemInvitation accepts a node that shows an invitation. It returns the grant by which that node reaches the host.
type redeemInvitation struct {
	command mailbox.RedeemInvitation
	node    capabilities.NodeID
}

func (m redeemInvitation) handle(b *mailboxActor) (capabilities.ID, error) {
	if _, err := b.decide(m.command); err != nil {
		return capabilities.ID{}, err
	}
	i, err := b.state.CheckInvitation(m.command.Invitation, m.command.Digest, m.node, b.node.now())
	return i.Grant, err
}

// Peers are the other nodes as an agent deals with them. Only the node's host may.
type Peers struct{ agent *Agent }

// Peers returns the other nodes as the agent deals with them.
func (a *Agent) Peers() Peers { return Peers{a} }

// NewInvitation describes an invitation. The host of the node that accepts it is bound to Name.
type NewInvitation struct {
	Name  string            `json:"name"`
	Until capabilities.Time `json:"until,omitzero"` // default: a day from now
}

const (
	invitationTime = 24 * time.Hour   // an invitation is open for so long by default
	acceptTime     = 15 * time.Second // for accepting one
)

// Invite makes an invitation. It refuses with NAME_TAKEN if the name is not free.
func (ps Peers) Invite(ctx context.Context, i NewInvitation) (view.Invitation, error) {
	n := ps.agent.node
	hints := n.peers.Hints()
	if len(hints) == 0 && n.o.URL == "" {
		return view.Invitation{}, parley.Refuse(parley.NodeUnreachable, "other nodes cannot reach this one").
			WithHint("parley serve --peer-listen ADDR, or --nats URL, lets them")
	}
	if i.Until == 0 {
		i.Until = n.now().Add(invitationTime)
	}
	secret := rand.Text()
	invite := mailbox.MakeInvitation{Name: i.Name, Digest: peers.Digest(secret), Until: i.Until}
	if by := ps.agent.by; by != nil {
		if _, _, err := n.Credentials().standing(ctx, by.ref); err != nil {
			return view.Invitation{}, err
		}
		invite.Token, invite.Within = by.ID, by.end
	}
	evs, err := call(ctx, ps.agent, decide{invite})
	if err != nil {
		return view.Invitation{}, err
	}
	made := evs[len(evs)-1].(*events.InvitationMade)
	l := capabilities.Locator{ID: made.Invitation, Kind: capabilities.KindInvitation, Hints: hints, Secret: secret}
	return view.Invitation{ID: made.Invitation, Name: made.Name, Until: made.Until, Locator: l.String()}, nil
}

// Uninvite revokes the invitation under a name. It refuses with UNKNOWN_NAME if none is open.
func (ps Peers) Uninvite(ctx context.Context, name string) error {
	return ps.agent.do(ctx, mailbox.EndInvitation{Name: name})
}

// Invitations lists the open invitations, oldest first, without their secrets.
func (ps Peers) Invitations(ctx context.Context) ([]view.Invitation, error) {
	return query(ctx, ps.agent, func(s *mailbox.State, now capabilities.Time) ([]view.Invitation, error) {
		all := []view.Invitation{}
		for _, i := range s.Peers.Invitations(now) {
			all = append(all, view.Invitation{ID: i.Invitation, Name: i.Name, Until: i.Until})
		}
		return all, nil
	})
}

// Accept accepts an invitation. Afterwards each node's host holds the other's, this one under name. It refuses with
// INVITATION_USED if the invitation is not open any more. It refuses with NODE_UNREACHABLE if it can be tried again.
func (ps Peers) Accept(ctx context.Context, name, locator string) (view.Accepted, error) {
	n := ps.agent.node
	if !ps.agent.IsHost() {
		return view.Accepted{}, parley.Refuse(parley.NotPermitted, "only the node's own host deals with other nodes")
	}
	l, err := capabilities.ParseLocator(locator)
	if err != nil {
		return view.Accepted{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, acceptTime)
	defer cancel()
	host, err := n.peers.Accept(ctx, name, l)
	if err != nil {
		return view.Accepted{}, err
	}
	return view.Accepted{Name: name, Node: host.Node, Host: host}, nil
}

// Limit gives another node quotas of its own, each for every mailbox that it sends to. With reset, quotas that were set
// before are dropped.
func (ps Peers) Limit(ctx context.Context, node capabilities.NodeID, quotas map[string]int64, reset bool) error {
	return ps.agent.do(ctx, mailbox.SetQuota{Node: node, Quotas: quotas, Reset: reset})
}

// Drop ends all relations with another node. Its connection is cut and its mail is refused. Items for it are given up,
// and its grants are revoked. A new invitation brings it back.
func (ps Peers) Drop(ctx context.Context, node capabilities.NodeID) (view.DroppedPeer, error) {
	done := view.DroppedPeer{Node: node}
	n := ps.agent.node
	evs, err := call(ctx, ps.agent, decide{mailbox.DropNode{Node: node}})
	if err != nil {
		return done, err
	}
	var dropped []mailbox.DroppedPeer
	for _, e := range evs {
		switch e := e.(type) {
		case *events.NodeDropped:
			dropped = append(dropped, mailbox.DroppedPeer{Node: e.Node, At: e.Date})
			n.peers.CutOff(e.Node)
		case *events.NameUnbound:
			done.Names++
		}
	}
	done.Introduced = len(dropped) - 1
	for id, m := range n.journal.Mailboxes() {
		if !n.registry.isAwake(id) && m.Summary.Outbox == 0 {
			continue // it forgets them when it is read
		}
		f, err := call(ctx, &Agent{node: n, id: id}, forgetNodes{dropped})
		done.Revoked += f.revoked
		done.Given += f.given
		if err != nil && parley.CodeOf(err) != parley.CorruptLog { // a quarantined mailbox sends nothing
			return done, err
		}
	}
	return done, nil
}

// forgotten counts what a mailbox has revoked and given up.
type forgotten struct{ revoked, given int }

// forgetNodes has a mailbox end its relations with nodes that were dropped.
type forgetNodes struct{ dropped []mailbox.DroppedPeer }

func (m forgetNodes) handle(b *mailboxActor) (f forgotten, err error) {
	for _, d := range m.dropped {
		if !b.state.InvolvesDropped(d) {
			continue
		}
		b.recordAcks()
		left := countItems(b, d.Node) // without the revocations that follow
		n, err := repeat(b, mailbox.RevokePeerGrants{DroppedPeer: d})
		f.revoked += n
		if err != nil {
			return f, err
		}
		if !b.node.peers.IsDropped(d.Node) {
			continue // it was met again, and the items are for it
		}
		if err := dropDeliveries(b, d.Node); err != nil {
			return f, err
		}
		f.given += left
		b.node.peers.Peer(d.Node).Set(b.reg.id, countItems(b, d.Node))
	}
	return f, nil
}

// dropDeliveries gives up the items for a node. Acks for some of them may arrive meanwhile.
func dropDeliveries(b *mailboxActor, node capabilities.NodeID) error {
	b.releasing = true
	defer func() { b.releasing = false }()
	_, err := repeat(b, mailbox.DropDeliveries{Node: node})
	return err
}

// repeat has the state decide on a command until no events follow, and counts the events.
func repeat(b *mailboxActor, c mailbox.Command) (total int, err error) {
	for {
		evs, err := b.decide(c)
		if total += len(evs); err != nil || len(evs) == 0 {
			return total, err
		}
	}
}

// forgetDropped forgets the nodes that were dropped while the mailbox was passive.
func forgetDropped(b *mailboxActor) {
	if _, err := (forgetNodes{b.node.peers.Dropped()}).handle(b); err != nil {
		b.node.log.Warn("a dropped node is not forgotten", "mailbox", b.reg.id.String(), "error", err)
	}
}

// Nodes lists the nodes that this one knows, in the order in which they were added.
func (n *Node) Nodes(ctx context.Context) ([]view.Peer, error) {
	known, hosts := n.peers.Known()
	names, err := query(ctx, n.Host(), func(s *mailbox.State, _ capabilities.Time) (_ []string, err error) {
		names := make([]string, len(hosts))
		for i, h := range hosts {
			if names[i], err = s.Names.Of(h); err != nil {
				return nil, err
			}
		}
		return names, nil
	})
	if err != nil {
		return nil, err
	}
	all := make([]view.Peer, len(known))
	for i, p := range known {
		t := n.transport.Traffic(p.ID())
		in, out := p.Mail()
		all[i] = view.Peer{
			Node: p.ID(), Name: names[i], Host: hosts[i], Hints: p.Address().Hints, Reachable: p.Reachable(),
			LastHeard: p.LastHeard(), Waiting: p.Waiting(), Use: n.accounts.ofPeer(p.ID()),
			Traffic: view.Traffic{
				PacketsIn: t.PacketsIn, PacketsOut: t.PacketsOut, BytesIn: t.BytesIn, BytesOut: t.BytesOut, MailIn: in, MailOut: out,
			},
		}
	}
	return all, nil
}

// Traffic counts the packets and items between this node and all others.
func (n *Node) Traffic() view.Traffic {
	t := n.transport.Total()
	all := view.Traffic{
		PacketsIn: t.PacketsIn, PacketsOut: t.PacketsOut, BytesIn: t.BytesIn, BytesOut: t.BytesOut,
		Refused: n.transport.Refused() + n.peers.RefusedPackets(),
	}
	known, _ := n.peers.Known()
	for _, p := range known {
		in, out := p.Mail()
		all.MailIn += in
		all.MailOut += out
	}
	return all
}

// PeerAddress returns the address at which other nodes reach this one, "" if there is none.
func (n *Node) PeerAddress() string { return n.transport.Address() }

// PublicAddress returns the address that is announced to other nodes instead, "" if there is none.
func (n *Node) PublicAddress() string { return n.o.Public }

// Unproved returns the number of connections to PeerAddress that have not proved a node's key. It also returns the
// bounds for one address and for all, and how many connections were refused or cut off.
func (n *Node) Unproved() (now, each, all int, refused uint64) { return n.transport.Unproved() }
