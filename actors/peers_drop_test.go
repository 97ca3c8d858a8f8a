package actors

import (
	"testing"

	"parley"
	"parley/actors/peers"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
)

func TestDroppedPeerLosesAccess(t *testing.T) {
	v := newHostileHarness(t)
	h := v.victim.Host()
	introduced := v.newUnknownNode()
	v.wantAccepted(v.deliver(events.OutboxCopy, v.fae.id, v.form(v.fae.id, v.faeGrant)))
	third := v.newID()
	third.Node = introduced.id
	exchange[peers.AckPacket](v.hostileNode, peers.KindMail, peers.MailPacket{
		Introduced: []peers.Introduction{{Node: introduced.id, Hints: []string{"nats://127.0.0.1:9"}}},
		Items:      []peers.Item{v.item(events.OutboxCopy, v.host, v.fae.id, v.message(v.fae.id, v.faeGrant))},
	})
	if _, known := v.peer(introduced.id); !known {
		t.Fatal("the third node is not known")
	}
	v.waitIdle()
	if err := v.transport.Close(); err != nil { // later items stay queued
		t.Fatal(err)
	}
	asked, err := h.Ask(t.Context(), parley.Form{To: "hostile", Description: "d", Fields: textField("f")})
	if err != nil {
		t.Fatal(err)
	}

	done, err := h.Peers().Drop(t.Context(), v.id)
	if err != nil {
		t.Fatal(err)
	}
	if done.Names != 1 || done.Introduced != 1 || done.Revoked < 4 || done.Given < 1 {
		t.Errorf("dropped: %+v", done)
	}
	for _, id := range []capabilities.NodeID{v.id, introduced.id} {
		if p, known := v.peer(id); known {
			t.Errorf("still known: %+v", p)
		}
	}
	eventually.Holds(t, "a form that awaited the node is declined", func() bool {
		o, err := h.Await(t.Context(), capabilities.FormID(asked.Form))
		return err == nil && o.Status == view.StatusDeclined
	})
	grants, err := h.Names().Grants(t.Context(), view.GrantFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range grants {
		if g.To.Node == v.id && g.Revoked == 0 {
			t.Errorf("a grant to the peer is valid: %+v", g)
		}
	}
	if v.victim.peers.Admits(v.id, "") {
		t.Error("the peer may connect")
	}
	if _, err := h.Send(t.Context(), v.host.String(), "are you there?"); err == nil {
		t.Error("a message to the peer is accepted")
	}
	if _, err := h.Peers().Drop(t.Context(), v.id); parley.CodeOf(err) != parley.NodeUnknown {
		t.Errorf("dropped twice: %v", err)
	}
	if _, err := v.fae.Peers().Drop(t.Context(), v.id); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("dropped by a guest: %v", err)
	}
}

func TestDroppedPeerReturnsByInvitation(t *testing.T) {
	a, b, _ := openThreeNodes(t)
	host, other := a.Host(), b.Host()
	given := guest(t, a.Node, "given")
	sent := send(t, host, "b", "take @it:given")
	adoptReference(t, other, sent.Message, "it", "given")
	send(t, other, "given", "before")
	eventually.Holds(t, "the first message", func() bool { return countMail(t, given) == 1 })
	if _, err := host.Peers().Drop(t.Context(), b.ID()); err != nil {
		t.Fatal(err)
	}
	closeNode(t, a.Node)
	a.open(t)
	host, given = a.Host(), &Agent{node: a.Node, id: given.id}
	if !a.peers.IsDropped(b.ID()) || a.peers.Knows(b.ID()) {
		t.Fatal("the peer is known after a restart")
	}
	i, err := b.Host().Peers().Invite(t.Context(), NewInvitation{Name: "a-again"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Host().Peers().Accept(t.Context(), "b", i.Locator); err != nil {
		t.Fatal(err)
	}
	if a.peers.IsDropped(b.ID()) {
		t.Error("the peer is dropped after an invitation")
	}
	again := send(t, host, "b", "hello again")
	awaitMessage(t, other, again.Message)
	late, err := other.Send(t.Context(), "given", "by an earlier grant")
	if err == nil {
		eventually.Holds(t, "an earlier grant is refused", func() bool {
			e, err := other.Message(t.Context(), capabilities.FormID(late.Message))
			return err == nil && e.Refused != ""
		})
	}
	if n := countMail(t, given); n != 1 {
		t.Errorf("%d messages have arrived", n)
	}
}
