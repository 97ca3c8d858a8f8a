package actors

import (
	"fmt"
	"net"
	"testing"
	"time"

	"parley/actors/peers"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
)

// TestFormWithForgedForwarderIsRefused sends copies whose chain names agents that did not forward the form.
func TestFormWithForgedForwarderIsRefused(t *testing.T) {
	t.Parallel()
	v := newHostileHarness(t)
	remote, missing := v.newID(), capabilities.ID{ULID: v.newID().ULID, Node: v.victim.ID()}
	for what, chain := range map[string][]capabilities.ID{
		"by worker":                        {v.worker.id},
		"by the host":                      {v.victim.host},
		"by worker, after another node":    {remote, v.worker.id},
		"by another node, after worker":    {v.worker.id, remote},
		"by an agent that does not exist":  {missing},
		"by an agent of an unknown node":   {v.worker.id, {ULID: remote.ULID, Node: randomNodeID()}},
		"by fae, after worker and askOnly": {v.worker.id, v.askOnly.id, v.fae.id},
	} {
		v.runCase(t, what, func() {
			e := v.form(v.fae.id, v.faeGrant)
			e.To, e.Chain, e.Forwarder = chain[0], chain, chain[len(chain)-1]
			v.checkNoEvents(func() { v.wantRefused(v.deliver(events.OutboxCopy, v.fae.id, e), "NOT_PERMITTED") })
			v.checkWorkerUnreachable()
		})
	}
	v.runCase(t, "by its real forwarder", func() {
		h := v.victim.Host()
		if _, err := h.Send(t.Context(), "fae", "this is @worker"); err != nil {
			t.Fatal(err)
		}
		if err := v.fae.Adopt(t.Context(), capabilities.FormNumber(v.lastNumber()), "worker", "worker"); err != nil {
			t.Fatal(err)
		}
		e := v.form(v.fae.id, v.faeGrant)
		v.wantAccepted(v.deliver(events.OutboxCopy, v.fae.id, e))
		go func() { _ = v.fae.Forward(t.Context(), capabilities.FormID(e.ID), "worker") }() // it waits for the home, which does not respond
		forwarded := awaitEvent[*events.FormForwarded](v.hostileNode)
		for forwarded.Form != e.ID {
			forwarded = awaitEvent[*events.FormForwarded](v.hostileNode)
		}
		copied := *e
		copied.Via, copied.Chain, copied.Forwarder = forwarded.Via, []capabilities.ID{v.fae.id}, v.fae.id
		v.wantAccepted(v.deliver(events.OutboxCopy, v.worker.id, &copied))
	})
	v.checkResponsive()
}

// TestPeerSpeaksForItsOwnAuthors sends messages that groups of a peer pass on. Who wrote them is believed of the peer's agents alone, and
// none of them is passed on again.
func TestPeerSpeaksForItsOwnAuthors(t *testing.T) {
	t.Parallel()
	v := newHostileHarness(t)
	own := v.newID()
	for author, want := range map[capabilities.ID]capabilities.ID{v.victim.host: {}, v.worker.id: {}, {ULID: own.ULID, Node: randomNodeID()}: {}, own: own} {
		m := v.message(v.fae.id, v.faeGrant)
		m.Author = author
		v.wantAccepted(v.deliver(events.OutboxCopy, v.fae.id, m))
		got, err := v.fae.Message(t.Context(), capabilities.FormID(m.Message))
		if err != nil || got.Author != want {
			t.Errorf("by %s: %s, %v", author, got.Author, err)
		}
		posted := eventsOf[*events.MessagePosted](t, v.fae)
		if last := posted[len(posted)-1]; last.Author.IsZero() {
			t.Error("a group would pass it on again")
		}
	}
}

// TestFutureDatesOfPeersAreClamped sends a form, a message and an outcome with dates in the future. Each is accepted and
// shows a date that is not after the present.
func TestFutureDatesOfPeersAreClamped(t *testing.T) {
	v := newHostileHarness(t)
	const future capabilities.Time = 1<<63 - 1
	v.askHostile(textField("a"))
	e, m := v.form(v.fae.id, v.faeGrant), v.message(v.fae.id, v.faeGrant)
	e.Date, m.Date = future, capabilities.At(time.Now().Add(time.Hour))
	v.wantAccepted(v.deliver(events.OutboxCopy, v.fae.id, e))
	v.wantAccepted(v.deliver(events.OutboxCopy, v.fae.id, m))
	v.wantAccepted(v.deliver(events.OutboxOutcome, v.fae.id, &events.FormCancelled{Form: e.ID, Reason: events.Cancelled, By: v.host, Date: future}))
	now := capabilities.At(time.Now())
	in, err := v.fae.Mail().Inbox(t.Context(), view.MessageFilter{All: true})
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, got := range in.Messages {
		if got.Date > now || got.Outcome != nil && got.Outcome.At > now {
			t.Errorf("message %d has date %s and outcome %+v", got.Number, got.Date, got.Outcome)
		}
		if got.MessageID == e.ID && got.Outcome != nil || got.MessageID == m.Message {
			seen++
		}
	}
	if seen != 2 {
		t.Errorf("%d of 2 messages are complete", seen)
	}
}

// TestAddressChangesOfPeerAreRateLimited announces many addresses. The victim records no more than its limit.
func TestAddressChangesOfPeerAreRateLimited(t *testing.T) {
	n := openVictim(t)
	m := newHostilePeer(t, n, "hostile")
	m.waitIdle()
	before := n.State().Journal.Events
	for i := range 5 * peers.MovesBurst {
		exchange[peers.AddressPacket](m, peers.KindAnnounce, peers.AddressPacket{Hints: []string{fmt.Sprintf("nats://127.0.0.1:%d", i+1)}, Stamp: capabilities.At(time.Now()) + capabilities.Time(i+1)})
	}
	m.waitIdle()
	if recorded := n.State().Journal.Events - before; recorded == 0 || recorded > peers.MovesBurst+1 {
		t.Errorf("%d addresses are recorded", recorded)
	}
	m.checkResponsive()
}

// TestLocalHintsOfRemotePeerAreNotDialed introduces a node from a public network with a hint to this machine.
func TestLocalHintsOfRemotePeerAreNotDialed(t *testing.T) {
	n := openVictim(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	dialed := make(chan struct{}, 64)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
			select {
			case dialed <- struct{}{}:
			default:
			}
		}
	}()
	hints := []string{"nats://" + listener.Addr().String()}
	public, local := n.peers.Peer(randomNodeID()), n.peers.Peer(randomNodeID())
	n.peers.Note([]events.Event{&events.NodeMet{Node: public.ID(), Hints: hints, Stamp: 1, Network: events.PublicNetwork}})
	if err := public.Dial(t.Context()); err == nil {
		t.Error("dialing succeeded without a node")
	}
	select {
	case <-dialed:
		t.Error("the listener was dialed")
	default:
	}
	n.peers.Note([]events.Event{&events.NodeMet{Node: local.ID(), Hints: hints, Stamp: 1, Network: events.ThisMachine}})
	if err := local.Dial(t.Context()); err == nil {
		t.Error("dialing succeeded without a node")
	}
	select {
	case <-dialed:
	case <-time.After(time.Minute):
		t.Error("a peer that was met on this machine is not dialed there")
	}
	m := newHostilePeer(t, n, "hostile")
	exchange[peers.AckPacket](m, peers.KindMail, peers.MailPacket{Introduced: []peers.Introduction{{Node: randomNodeID(), Hints: hints, Stamp: 1}}})
	if got := n.transport.NetworkOf(m.id); got != events.ThisMachine {
		t.Errorf("the hostile node is on %q", got)
	}
}
