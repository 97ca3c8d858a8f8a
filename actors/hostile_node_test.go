package actors

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/nats-io/nkeys"
	"github.com/oklog/ulid/v2"

	"parley/actors/peers"
	"parley/actors/transport"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
	"parley/mailbox"
)

// hostileNode is a peer that ignores the protocol's rules. It has a key and a transport, and its packets are written by
// the test.
type hostileNode struct {
	testing.TB
	victim    *Node
	id        capabilities.NodeID
	host      capabilities.ID // the agent that it names as its host
	key       nkeys.KeyPair
	identity  *transport.Identity
	transport *transport.Transport

	serve func(peers.FilePacket) *peers.PiecePacket // nil answers nothing

	mu       sync.Mutex
	received []events.Event // in items from the victim, until awaitEvent takes them
}

// openVictim opens a node that listens for peers.
func openVictim(tb testing.TB) *Node {
	tb.Helper()
	n, err := Open(tb.Context(), Options{Folder: tb.TempDir(), Name: "victim", Peers: "127.0.0.1:0"})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { closeNode(tb, n) })
	return n
}

func newKey(tb testing.TB) (nkeys.KeyPair, *transport.Identity) {
	tb.Helper()
	key, err := nkeys.CreateServer()
	if err != nil {
		tb.Fatal(err)
	}
	identity, err := transport.NewIdentity(key)
	if err != nil {
		tb.Fatal(err)
	}
	return key, identity
}

// newHostileNode returns a hostile node that is connected to the victim's listener and holds an invitation that it has
// not accepted.
func newHostileNode(tb testing.TB, victim *Node, invitation view.Invitation) (*hostileNode, capabilities.Locator) {
	tb.Helper()
	key, identity := newKey(tb)
	m := &hostileNode{TB: tb, victim: victim, id: identity.Node(), key: key, identity: identity}
	m.host = m.newID()
	var err error
	if m.transport, err = transport.Open(tb.Context(), transport.Options{Identity: identity, Receive: m.receive}); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := m.transport.Close(); err != nil {
			tb.Error(err)
		}
	})
	l, err := capabilities.ParseLocator(invitation.Locator)
	if err != nil {
		tb.Fatal(err)
	}
	if err := m.transport.Dial(tb.Context(), victim.ID(), l.Hints, peers.Token(l.ID.ULID, l.Secret)); err != nil {
		tb.Fatal(err)
	}
	return m, l
}

func invite(tb testing.TB, n *Node, name string) view.Invitation {
	tb.Helper()
	i, err := n.Host().Peers().Invite(tb.Context(), NewInvitation{Name: name})
	if err != nil {
		tb.Fatal(err)
	}
	return i
}

// newHostilePeer returns a hostile node whose invitation by the victim's host is accepted.
func newHostilePeer(tb testing.TB, victim *Node, name string) *hostileNode {
	tb.Helper()
	m, l := newHostileNode(tb, victim, invite(tb, victim, name))
	if w := m.accept(l.ID.ULID, l.Secret); w.Code != "" {
		tb.Fatal(w.Code, w.Text)
	}
	return m
}

func (m *hostileNode) accept(invitation ulid.ULID, secret string) peers.WelcomePacket {
	m.Helper()
	return exchange[peers.WelcomePacket](m, peers.KindAccept, peers.AcceptPacket{Invitation: invitation, Secret: secret, Host: m.host.ULID, Stamp: 1})
}

func (m *hostileNode) newID() capabilities.ID { return capabilities.ID{ULID: ulid.Make(), Node: m.id} }

// receive accepts every item and keeps its events.
func (m *hostileNode) receive(_ context.Context, l transport.Packet) (transport.Kind, []byte, bool) {
	if l.Kind == peers.KindAnnounce {
		body, err := peers.WritePacket(peers.AddressPacket{Stamp: 1})
		return peers.KindNoted, body, err == nil
	}
	if l.Kind == peers.KindFile {
		want, err := peers.ReadPacket[peers.FilePacket](l.Body)
		if err != nil || m.serve == nil {
			return 0, nil, false
		}
		body, err := peers.WritePacket(m.serve(want))
		return peers.KindPiece, body, err == nil
	}
	mail, err := peers.ReadPacket[peers.MailPacket](l.Body)
	if err != nil {
		return 0, nil, false
	}
	var r peers.AckPacket
	for _, p := range mail.Items {
		r.Acks = append(r.Acks, peers.Ack{Status: peers.AckAccepted})
		if recorded, err := events.Decode(p.Body, p.Count); err == nil {
			m.mu.Lock()
			for _, e := range recorded {
				m.received = append(m.received, e.Event)
			}
			m.mu.Unlock()
		}
	}
	body, err := peers.WritePacket(r)
	return peers.KindAcks, body, err == nil
}

// awaitEvent blocks until the victim has sent an event of type E, and takes it.
func awaitEvent[E events.Event](m *hostileNode) (e E) {
	m.Helper()
	eventually.Holds(m, "an event arrives from the victim", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		for i, c := range m.received {
			if is, ok := c.(E); ok {
				e, m.received = is, slices.Delete(m.received, i, i+1)
				return true
			}
		}
		return false
	})
	return e
}

// exchange sends a packet and reads the response.
func exchange[T any](m *hostileNode, kind transport.Kind, x any) T {
	m.Helper()
	body, err := peers.WritePacket(x)
	if err != nil {
		m.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(m.Context(), eventually.Patience)
	defer cancel()
	answer, err := m.transport.Call(ctx, m.victim.ID(), kind, body)
	if err != nil {
		m.Fatal(err)
	}
	read, err := peers.ReadPacket[T](answer.Body)
	if err != nil {
		m.Fatal(err)
	}
	return read
}

// item returns an encoded outbox item.
func (m *hostileNode) item(kind events.OutboxKind, from, to capabilities.ID, evs ...events.Event) peers.Item {
	m.Helper()
	p, err := peers.PackItem(mailbox.OutboxItem{Kind: kind, To: to}, from, evs)
	if err != nil {
		m.Fatal(err)
	}
	return p
}

// deliverAll sends items in one packet and returns the ack of each.
func (m *hostileNode) deliverAll(items ...peers.Item) []peers.Ack {
	m.Helper()
	r := exchange[peers.AckPacket](m, peers.KindMail, peers.MailPacket{Items: items}).Acks
	if len(r) != len(items) {
		m.Fatalf("%d acks for %d items", len(r), len(items))
	}
	return r
}

// deliver sends one item from the hostile node's host and returns its ack.
func (m *hostileNode) deliver(kind events.OutboxKind, to capabilities.ID, evs ...events.Event) peers.Ack {
	m.Helper()
	return m.deliverAll(m.item(kind, m.host, to, evs...))[0]
}

// form returns a valid form.
func (m *hostileNode) form(to, via capabilities.ID) *events.FormRequested {
	return &events.FormRequested{
		ID: m.newID(), Promise: m.newID(), Resolver: m.newID(), From: m.host, To: to, Via: via,
		Description: "tell me", Fields: textField("a"), Date: 1,
	}
}

// message returns a valid message.
func (m *hostileNode) message(to, via capabilities.ID, spans ...events.Span) *events.MessagePosted {
	return &events.MessagePosted{
		Message: m.newID(), From: m.host, To: to, Via: via, Date: 1, Text: append([]events.Span{{Words: "hello "}}, spans...),
	}
}

func referenceSpan(edge string, r capabilities.Ref) events.Span {
	return events.Span{Edge: edge, Value: capabilities.Reference(r)}
}

func agentRef(id, grant capabilities.ID) capabilities.Ref {
	return capabilities.Ref{Target: id, Kind: capabilities.KindAgent, Grant: grant}
}

// receiveGrant has the victim's host send a reference to path to the hostile node's host. It returns the grant.
func (m *hostileNode) receiveGrant(path string) capabilities.ID {
	m.Helper()
	sent, err := m.victim.Host().Send(m.Context(), "hostile", "take @it:"+path)
	if err != nil {
		m.Fatal(err)
	}
	came := awaitEvent[*events.MessagePosted](m)
	for came.Message != sent.Message { // an earlier message may be sent again
		came = awaitEvent[*events.MessagePosted](m)
	}
	for _, sp := range came.Text {
		if ref, ok := sp.Value.AsRef(); ok {
			return ref.Grant
		}
	}
	m.Fatal("the message carries no grant")
	return capabilities.ID{}
}

// waitIdle blocks until the victim has nothing left to append.
func (m *hostileNode) waitIdle() {
	m.Helper()
	idle := 0
	eventually.Holds(m, "the victim is idle", func() bool {
		if m.victim.registry.recordAllAcks() || m.victim.registry.queued.Load() > 0 || m.victim.journal.Backlog() > 0 {
			idle = 0
		}
		idle++
		return idle > 5
	})
}

// checkNoEvents runs attack and checks that the victim appended no event.
func (m *hostileNode) checkNoEvents(attack func()) {
	m.Helper()
	m.waitIdle()
	before := m.victim.State().Journal
	attack()
	m.waitIdle()
	if after := m.victim.State().Journal; after.Events != before.Events || after.Commits != before.Commits {
		m.Errorf("the victim appended %d events in %d commits", after.Events-before.Events, after.Commits-before.Commits)
	}
}

// wantRefused checks that an item was refused with a code.
func (m *hostileNode) wantRefused(r peers.Ack, code string) {
	m.Helper()
	if r.Status != peers.AckRefused || code != "" && r.Code != code {
		m.Errorf("status %d, %s: %s; want %s", r.Status, r.Code, r.Text, code)
	}
}

func (m *hostileNode) wantAccepted(r peers.Ack) {
	m.Helper()
	if r.Status != peers.AckAccepted {
		m.Errorf("status %d, %s: %s", r.Status, r.Code, r.Text)
	}
}

// checkResponsive checks that the victim's host still sends and receives messages.
func (m *hostileNode) checkResponsive() {
	m.Helper()
	ctx, cancel := context.WithTimeout(m.Context(), eventually.Patience)
	defer cancel()
	host := m.victim.Host()
	sent, err := host.Send(ctx, "SELF", "still there?")
	if err != nil {
		m.Fatal(err)
	}
	if _, err := host.Message(ctx, capabilities.FormID(sent.Message)); err != nil {
		m.Fatal(err)
	}
}
