package actors

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/actors/peers"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
)

func randomNodeID() capabilities.NodeID {
	var key [capabilities.NodeKeySize]byte
	_, _ = rand.Read(key[:]) // it does not fail
	return capabilities.NodeOf(key)
}

func (m *hostileNode) peer(id capabilities.NodeID) (view.Peer, bool) {
	m.Helper()
	all, err := m.victim.Nodes(m.Context())
	if err != nil {
		m.Fatal(err)
	}
	i := slices.IndexFunc(all, func(p view.Peer) bool { return p.Node == id })
	if i < 0 {
		return view.Peer{}, false
	}
	return all[i], true
}

func TestIntroductionDoesNotReplaceKnownAddress(t *testing.T) {
	n := openVictim(t)
	m := newHostilePeer(t, n, "hostile")
	third := m.newUnknownNode()
	forged := []string{"nats://127.0.0.1:1"}
	introduce := func(all ...peers.Introduction) {
		m.Helper()
		exchange[peers.AckPacket](m, peers.KindMail, peers.MailPacket{Introduced: all})
	}
	t.Run("a node's own address outranks others", func(t *testing.T) {
		introduce(peers.Introduction{Node: third.id, Hints: forged, Stamp: 1<<63 - 1})
		if p, ok := m.peer(third.id); !ok || !slices.Equal(p.Hints, forged) {
			t.Fatalf("%+v", p)
		}
		own := []string{"nats://127.0.0.1:2"}
		if err := third.connect(n).Publish(mailSubject(n), third.seal(n, peers.KindAnnounce, third.encode(peers.AddressPacket{Hints: own, Stamp: 5}))); err != nil {
			t.Fatal(err)
		}
		eventually.Holds(t, "the node's own address is recorded", func() bool {
			p, _ := m.peer(third.id)
			return slices.Equal(p.Hints, own)
		})
		m.checkNoEvents(func() { introduce(peers.Introduction{Node: third.id, Hints: forged, Stamp: 1<<63 - 1}) })
	})
	t.Run("known peers", func(t *testing.T) {
		known := newHostilePeer(t, n, "known")
		m.checkNoEvents(func() {
			introduce(peers.Introduction{Node: known.id, Hints: forged, Stamp: 9}, peers.Introduction{Node: n.ID(), Hints: forged, Stamp: 9}, peers.Introduction{Node: m.id, Hints: forged, Stamp: 9})
		})
	})
	t.Run("malformed hints", func(t *testing.T) {
		m.checkNoEvents(func() {
			for _, hints := range [][]string{
				make([]string, 9), {strings.Repeat("x", 256)}, {"nats://a b:1"}, {"nats://a\x00:1"}, {"a\r\nb"},
			} {
				introduce(peers.Introduction{Node: randomNodeID(), Hints: hints, Stamp: 1})
				exchange[peers.AddressPacket](m, peers.KindAnnounce, peers.AddressPacket{Hints: hints, Stamp: capabilities.At(time.Now())})
			}
		})
	})
	t.Run("an old address", func(t *testing.T) {
		exchange[peers.AddressPacket](m, peers.KindAnnounce, peers.AddressPacket{Hints: forged, Stamp: 100})
		m.checkNoEvents(func() {
			exchange[peers.AddressPacket](m, peers.KindAnnounce, peers.AddressPacket{Hints: []string{"nats://127.0.0.1:3"}, Stamp: 99})
		})
	})
	t.Run("many", func(t *testing.T) {
		for range 4 {
			var all []peers.Introduction
			for range peers.MaxIntroduced {
				all = append(all, peers.Introduction{Node: randomNodeID(), Hints: forged, Stamp: 1})
			}
			introduce(all...)
		}
		newHostilePeer(t, n, "another")
		m.checkResponsive()
	})
}

func TestInvitationAdmitsOneHolderOfItsSecret(t *testing.T) {
	n := openVictim(t)
	m := newHostilePeer(t, n, "hostile")
	open := invite(t, n, "friend")
	l, err := capabilities.ParseLocator(open.Locator)
	if err != nil {
		t.Fatal(err)
	}
	short, err := n.Host().Peers().Invite(t.Context(), NewInvitation{Name: "late", Until: capabilities.At(time.Now()).Add(30 * time.Millisecond)})
	if err != nil {
		t.Fatal(err)
	}
	late, err := capabilities.ParseLocator(short.Locator)
	if err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the invitation's end", func() bool {
		open, err := n.Host().Peers().Invitations(t.Context())
		return err == nil && len(open) == 1
	})
	refuses := func(what string, a peers.AcceptPacket, code string) {
		t.Helper()
		m.runCase(t, what, func() {
			m.checkNoEvents(func() {
				if w := exchange[peers.WelcomePacket](m, peers.KindAccept, a); w.Code != code || !w.Host.IsZero() || !w.Grant.IsZero() {
					m.Errorf("%+v", w)
				}
			})
		})
	}
	refuses("a wrong secret", peers.AcceptPacket{Invitation: l.ID.ULID, Secret: l.Secret + "x", Host: m.host.ULID}, "NOT_PERMITTED")
	refuses("no secret", peers.AcceptPacket{Invitation: l.ID.ULID, Host: m.host.ULID}, "NOT_PERMITTED")
	refuses("an unknown invitation", peers.AcceptPacket{Invitation: m.newID().ULID, Secret: l.Secret, Host: m.host.ULID}, "NOT_PERMITTED")
	refuses("an expired invitation", peers.AcceptPacket{Invitation: late.ID.ULID, Secret: late.Secret, Host: m.host.ULID}, "INVITATION_USED")
	refuses("malformed hints", peers.AcceptPacket{Invitation: l.ID.ULID, Secret: l.Secret, Host: m.host.ULID, Hints: make([]string, 9)}, "TOO_LARGE")

	friend, _ := newHostileNode(t, n, open)
	t.Run("mail before it was accepted", func(t *testing.T) {
		conn := friend.connect(n, peers.Token(l.ID.ULID, l.Secret))
		friend.checkNoEvents(func() {
			friend.publish(conn, n, 2, friend.seal(n, peers.KindMail, friend.encode(peers.MailPacket{})), friend.seal(n, peers.KindAnnounce, friend.encode(peers.AddressPacket{Stamp: 1})))
		})
	})
	first := friend.accept(l.ID.ULID, l.Secret)
	if first.Code != "" {
		t.Fatal(first.Code, first.Text)
	}
	t.Run("again", func(t *testing.T) {
		friend.checkNoEvents(func() {
			if again := friend.accept(l.ID.ULID, l.Secret); again.Host != first.Host || again.Grant != first.Grant || again.Code != "" {
				t.Errorf("%+v", again)
			}
		})
	})
	refuses("a used invitation", peers.AcceptPacket{Invitation: l.ID.ULID, Secret: l.Secret, Host: m.host.ULID}, "INVITATION_USED")
	t.Run("a reserved name", func(t *testing.T) {
		invite(t, n, "promised")
		if err := n.Host().Names().Store(t.Context(), "promised", "1"); parley.CodeOf(err) != parley.NameTaken {
			t.Error(err)
		}
	})
	t.Run("revoked", func(t *testing.T) {
		i := invite(t, n, "never")
		at, err := capabilities.ParseLocator(i.Locator)
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Host().Peers().Uninvite(t.Context(), "never"); err != nil {
			t.Fatal(err)
		}
		refuses("and used", peers.AcceptPacket{Invitation: at.ID.ULID, Secret: at.Secret, Host: m.host.ULID}, "INVITATION_USED")
	})
	t.Run("guesses are limited", func(t *testing.T) {
		conn := m.connect(n)
		m.checkNoEvents(func() {
			before := n.Traffic().Refused
			for i := range 100 {
				body := m.encode(peers.AcceptPacket{Invitation: l.ID.ULID, Secret: fmt.Sprint(i)})
				if err := conn.Publish(mailSubject(n), m.seal(n, peers.KindAccept, body)); err != nil {
					t.Fatal(err)
				}
			}
			eventually.Holds(t, "refusals", func() bool { return n.Traffic().Refused > before })
		})
	})
	t.Run("another peer's grant", func(t *testing.T) {
		by := capabilities.ID{ULID: first.Grant, Node: n.ID()}
		m.checkNoEvents(func() { m.wantRefused(m.deliver(events.OutboxCopy, n.host, m.message(n.host, by)), "NOT_PERMITTED") })
		friend.wantAccepted(friend.deliver(events.OutboxCopy, n.host, friend.message(n.host, by)))
	})
	m.checkResponsive()
}
