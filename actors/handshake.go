package actors

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/nats-io/nkeys"

	"parley"
	"parley/actors/transport"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

const (
	maxSecret      = 255
	acceptTime     = 15 * time.Second
	strangersRate  = 10 // packets a second, of all who are not known
	strangersBurst = 20
	movesEvery     = time.Minute // a node's new place is written down: so often, and at first
	movesBurst     = 20          // so many times
)

// reachOut opens the way to other nodes, and takes up what the host's log knows of them.
func (n *Node) reachOut(key nkeys.KeyPair) error {
	identity, err := transport.NewIdentity(key)
	if err != nil {
		return err
	}
	if _, err := n.Host().Names().List(n.life, ""); err != nil { // made from the log, the host's mailbox tells the peers
		return err
	}
	n.transport, err = transport.Open(n.life, transport.Options{
		Identity: identity, Listen: n.o.Peers, Unproved: n.o.Unproved, Hub: n.o.URL, Log: n.log, Admit: n.peers.admits, Receive: n.receive,
	})
	if err != nil {
		return err
	}
	n.peers.begin()
	return nil
}

// placeNow says where this node is to be found.
func (n *Node) placeNow() placePacket {
	return placePacket{Hints: n.hints(), Stamp: n.now()}
}

// hints are the addresses that other nodes are told.
func (n *Node) hints() []string {
	if n.o.Public != "" && n.transport.Address() != "" {
		return []string{"nats://" + n.o.Public}
	}
	return n.transport.Hints()
}

// hearFrom takes in where a known node says it is.
func (n *Node) hearFrom(ctx context.Context, node capabilities.NodeID, at placePacket) {
	p := n.peers.of(node)
	if now := p.place(); at.Stamp <= now.Stamp || sameHints(at.Hints, now.Hints) || !p.moves.Allow() {
		return // it says so again, until it is noted
	}
	if err := n.Host().do(ctx, mailbox.UpdatePeer{Node: node, Hints: at.Hints, Stamp: at.Stamp}); err != nil {
		n.log.Warn("a node's new place is not noted", "node", node.String(), "error", err)
	}
}

func sameHints(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// introduced takes in what a node says of another. Who is known already speaks for itself.
func (n *Node) introduced(ctx context.Context, by capabilities.NodeID, i introduction) {
	if i.Node == n.id || n.peers.knows(i.Node) {
		return
	}
	err := n.Host().do(ctx, mailbox.UpdatePeer{Node: i.Node, By: by, Hints: i.Hints, Stamp: i.Stamp})
	if err == nil {
		return
	}
	n.peers.of(by).sayIntroduced.Do(func() { // who introduces too many does so often
		n.log.Warn("introductions are not noted", "by", by.String(), "node", i.Node.String(), "error", err)
	})
}

// respondAccept welcomes a node that shows an invitation, or says why not.
func (n *Node) respondAccept(ctx context.Context, l transport.Packet) any {
	a, err := readPacket[acceptPacket](l.Body)
	if err != nil || len(a.Secret) > maxSecret {
		return nil
	}
	if !n.strangers.Allow() {
		return nil
	}
	c := mailbox.RedeemInvitation{
		Invitation: capabilities.ID{ULID: a.Invitation, Node: n.id}, Digest: digest(a.Secret),
		Host: capabilities.ID{ULID: a.Host, Node: l.From}, Grant: capabilities.ID{ULID: a.Invitation, Node: l.From},
		Hints: a.Hints, Stamp: a.Stamp, Network: n.transport.NetworkOf(l.From),
	}
	grant, err := call(ctx, n.Host(), redeemInvitation{c, l.From})
	if err != nil {
		code, text := refusal(err)
		return welcomePacket{Code: code, Text: text}
	}
	n.peers.of(l.From).hear()
	at := n.placeNow()
	return welcomePacket{Host: n.host.ULID, Grant: grant.ULID, Hints: at.Hints, Stamp: at.Stamp}
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

// accept shows an invitation to the node that made it, and takes in its host under a name.
func (n *Node) accept(ctx context.Context, name string, l capabilities.Locator) (view.Accepted, error) {
	other := l.ID.Node
	if err := n.checkInvitation(ctx, name, l); err != nil {
		return view.Accepted{}, err
	}
	met := n.peers.await(other)
	if met == nil {
		return view.Accepted{}, parley.Refuse(parley.RateLimited, "an invitation of that node is being accepted already")
	}
	defer met()
	if len(l.Hints) > 0 {
		if err := n.transport.Dial(ctx, other, l.Hints, token(l.ID.ULID, l.Secret)); err != nil && n.o.URL == "" && !n.peers.knows(other) {
			return view.Accepted{}, notAccepted(err)
		}
	}
	at := n.placeNow()
	body, err := writePacket(acceptPacket{Invitation: l.ID.ULID, Secret: l.Secret, Host: n.host.ULID, Hints: at.Hints, Stamp: at.Stamp})
	if err != nil {
		return view.Accepted{}, err
	}
	answer, err := n.transport.Call(ctx, other, packetAccept, body)
	if err != nil {
		return view.Accepted{}, notAccepted(err)
	}
	w, err := readPacket[welcomePacket](answer.Body)
	if err != nil || answer.Kind != packetWelcome {
		return view.Accepted{}, parley.Refuse(parley.NodeUnreachable, "the other node's answer is none")
	}
	if w.Code != "" {
		return view.Accepted{}, refused(w.Code, w.Text)
	}
	host := capabilities.ID{ULID: w.Host, Node: other}
	err = n.Host().do(ctx, mailbox.AddPeer{
		Host: host, Name: name, Hints: w.Hints, Stamp: w.Stamp, Network: n.transport.NetworkOf(other),
		Theirs: capabilities.ID{ULID: w.Grant, Node: other}, Ours: capabilities.ID{ULID: l.ID.ULID, Node: n.id},
	})
	if err != nil {
		return view.Accepted{}, err
	}
	return view.Accepted{Name: name, Node: other, Host: host}, nil
}

// notAccepted tells an invitation that its maker's listener does not take from a node that is not there.
func notAccepted(err error) error {
	if parley.CodeOf(err) == parley.NotPermitted {
		return parley.Refuse(parley.InvitationUsed, "the other node takes this invitation no more: it was used, was revoked, or has ended").
			WithHint("ask for another")
	}
	if e := parley.AsError(err); e.Code == parley.NodeUnreachable {
		return e.WithHint("the invitation stays good: try again, or ask for another if the node has moved")
	}
	return err
}

func (n *Node) checkInvitation(ctx context.Context, name string, l capabilities.Locator) error {
	switch {
	case l.Kind != capabilities.KindInvitation || l.Secret == "" || len(l.Secret) > maxSecret:
		return parley.Refuse(parley.InvalidArgument, "this locator is not an invitation")
	case l.ID.Node == n.id:
		return parley.Refuse(parley.InvalidArgument, "this invitation is this node's own")
	}
	_, err := query(ctx, n.Host(), func(s *mailbox.State, _ capabilities.Time) (none, error) {
		return none{}, s.CheckAddPeer(name, capabilities.ID{ULID: l.ID.ULID, Node: n.id})
	})
	return err
}

// NewInvitation says whom to invite. The host of the node that accepts it will be held under Name.
type NewInvitation struct {
	Name  string            `json:"name"`
	Until capabilities.Time `json:"until,omitzero"` // default: a day from now
}

// invitationTime is how long an invitation is good where nothing else is said.
const invitationTime = 24 * time.Hour

// Invite makes an invitation. Only the node's host may. NAME_TAKEN says that the name is not free.
func (ps Peers) Invite(ctx context.Context, n NewInvitation) (view.Invitation, error) {
	hints := ps.agent.node.hints()
	if len(hints) == 0 && ps.agent.node.o.URL == "" {
		return view.Invitation{}, parley.Refuse(parley.NodeUnreachable, "other nodes cannot reach this one").
			WithHint("parley serve --peer-listen ADDR, or --nats URL, lets them")
	}
	if n.Until == 0 {
		n.Until = ps.agent.node.now().Add(invitationTime)
	}
	secret := rand.Text()
	invite := mailbox.MakeInvitation{Name: n.Name, Digest: digest(secret), Until: n.Until}
	if ps.agent.by != nil {
		if _, _, err := ps.agent.node.standing(ctx, ps.agent.by.ref); err != nil {
			return view.Invitation{}, err
		}
		invite.Token, invite.Within = ps.agent.by.ID, ps.agent.by.end
	}
	evs, err := call(ctx, ps.agent, decide{invite})
	if err != nil {
		return view.Invitation{}, err
	}
	made := evs[len(evs)-1].(*events.InvitationMade)
	l := capabilities.Locator{ID: made.Invitation, Kind: capabilities.KindInvitation, Hints: hints, Secret: secret}
	return view.Invitation{ID: made.Invitation, Name: made.Name, Until: made.Until, Locator: l.String()}, nil
}

// Uninvite revokes the invitation under a name. UNKNOWN_NAME says that none is open.
func (ps Peers) Uninvite(ctx context.Context, name string) error {
	return ps.agent.do(ctx, mailbox.EndInvitation{Name: name})
}

// Invitations lists those that are open, oldest first, without their secrets.
func (ps Peers) Invitations(ctx context.Context) ([]view.Invitation, error) {
	return query(ctx, ps.agent, func(s *mailbox.State, now capabilities.Time) ([]view.Invitation, error) {
		all := []view.Invitation{}
		for _, i := range s.Peers.Invitations(now) {
			all = append(all, view.Invitation{ID: i.Invitation, Name: i.Name, Until: i.Until})
		}
		return all, nil
	})
}

// Accept takes an invitation up. Afterwards each node's host holds the other's, this one under name.
// INVITATION_USED says that another was faster, or that it has ended; NODE_UNREACHABLE, that it should be
// tried again.
func (ps Peers) Accept(ctx context.Context, name, locator string) (view.Accepted, error) {
	if ps.agent.id != ps.agent.node.host {
		return view.Accepted{}, parley.Refuse(parley.NotPermitted, "only the node's own host deals with other nodes")
	}
	l, err := capabilities.ParseLocator(locator)
	if err != nil {
		return view.Accepted{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, acceptTime)
	defer cancel()
	return ps.agent.node.accept(ctx, name, l)
}

// Nodes lists the nodes that this one knows, in the order in which it came to.
func (n *Node) Nodes(ctx context.Context) ([]view.Peer, error) {
	known, hosts := n.peers.list()
	names, err := query(ctx, n.Host(), func(s *mailbox.State, _ capabilities.Time) ([]string, error) {
		names := make([]string, len(hosts))
		for i, h := range hosts {
			names[i] = s.Names.Of(h)
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
		PacketsIn: t.PacketsIn, PacketsOut: t.PacketsOut, BytesIn: t.BytesIn, BytesOut: t.BytesOut,
		MailIn: p.mailIn.Load(), MailOut: p.mailOut.Load(),
	}
}

// Traffic counts what went between this node and all others.
func (n *Node) Traffic() view.Traffic {
	t := n.transport.Total()
	all := view.Traffic{
		PacketsIn: t.PacketsIn, PacketsOut: t.PacketsOut, BytesIn: t.BytesIn, BytesOut: t.BytesOut,
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

// Peers are the other nodes as an agent deals with them. Only the node's host may.
type Peers struct{ agent *Agent }

// Peers returns the other nodes as the agent deals with them.
func (a *Agent) Peers() Peers { return Peers{a} }
