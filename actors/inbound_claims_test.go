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

// What the hostile node may claim of others: who had a form before, when something was, and where somebody is.

// TestAFormSaysOfNobodyHereThatTheyForwardedIt unless they did, whatever way it claims to have come.
func TestFormWithForgedForwarderIsRefused(t *testing.T) {
	v := newHostileHarness(t)
	elsewhere, nobody := v.newID(), capabilities.ID{ULID: v.newID().ULID, Node: v.victim.ID()}
	for what, chain := range map[string][]capabilities.ID{
		"by worker":                           {v.worker.id},
		"by the host":                         {v.victim.host},
		"by worker, after another node":       {elsewhere, v.worker.id},
		"by another node, after worker":       {v.worker.id, elsewhere},
		"by one that is not there":            {nobody},
		"by one of a node that nobody knows":  {v.worker.id, {ULID: elsewhere.ULID, Node: randomNodeID()}},
		"by fae itself, after worker and all": {v.worker.id, v.askOnly.id, v.fae.id},
	} {
		v.runCase(t, what, func() {
			e := v.form(v.fae.id, v.faeGrant)
			e.To, e.Chain, e.Forwarder = chain[0], chain, chain[len(chain)-1]
			v.checkNoEvents(func() { v.wantRefused(v.deliver(events.OutboxCopy, v.fae.id, e), "NOT_PERMITTED") })
			v.checkWorkerUnreachable()
		})
	}
	v.runCase(t, "by those who did", func() {
		h := v.victim.Host()
		if _, err := h.Send(t.Context(), "fae", "meet @worker"); err != nil {
			t.Fatal(err)
		}
		if err := v.fae.Adopt(t.Context(), capabilities.FormNumber(0), "worker", "worker"); err != nil {
			t.Fatal(err)
		}
		e := v.form(v.fae.id, v.faeGrant)
		v.wantAccepted(v.deliver(events.OutboxCopy, v.fae.id, e))
		go func() { _ = v.fae.Forward(t.Context(), capabilities.FormID(e.ID), "worker") }() // it waits for the home, which says nothing
		handed := awaitEvent[*events.FormForwarded](v.hostileNode)
		for handed.Form != e.ID {
			handed = awaitEvent[*events.FormForwarded](v.hostileNode)
		}
		handedOn := *e
		handedOn.Via, handedOn.Chain, handedOn.Forwarder = handed.Via, []capabilities.ID{v.fae.id}, v.fae.id
		v.wantAccepted(v.deliver(events.OutboxCopy, v.worker.id, &handedOn))
	})
	v.checkResponsive()
}

// TestNoTimeIsAheadOfTheClock: what another node dates far ahead is of now, and nothing is lost by that.
func TestFutureDatesOfPeersAreClamped(t *testing.T) {
	v := newHostileHarness(t)
	const ahead capabilities.Time = 1<<63 - 1
	asked, form := v.askHostile(textField("a"))
	_ = asked
	e, m := v.form(v.fae.id, v.faeGrant), v.message(v.fae.id, v.faeGrant)
	e.Date, m.Date = ahead, capabilities.At(time.Now().Add(time.Hour))
	v.wantAccepted(v.deliver(events.OutboxCopy, v.fae.id, e))
	v.wantAccepted(v.deliver(events.OutboxCopy, v.fae.id, m))
	v.wantAccepted(v.deliver(events.OutboxOutcome, v.fae.id, &events.FormCancelled{Form: e.ID, Reason: events.Cancelled, By: v.host, Date: ahead}))
	now := capabilities.At(time.Now())
	in, err := v.fae.Mail().Inbox(t.Context(), view.MessageFilter{All: true})
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, got := range in.Messages {
		if got.Date > now || got.Outcome != nil && got.Outcome.At > now {
			t.Errorf("message %d is of %s, and ended %+v", got.Number, got.Date, got.Outcome)
		}
		if got.MessageID == e.ID && got.Outcome != nil || got.MessageID == m.Message {
			seen++
		}
	}
	if seen != 2 {
		t.Errorf("%d of 2 are there as they should be", seen)
	}
	_ = form
}

// TestAPlaceIsNotedSoOften: a node that says every moment that it is somewhere else fills nobody's log.
func TestAddressChangesOfPeerAreRateLimited(t *testing.T) {
	n := openVictim(t)
	m := newHostilePeer(t, n, "hostile")
	m.waitIdle()
	before := n.State().Journal.Events
	for i := range 5 * peers.MovesBurst {
		exchange[peers.AddressPacket](m, peers.KindAnnounce, peers.AddressPacket{Hints: []string{fmt.Sprintf("nats://127.0.0.1:%d", i+1)}, Stamp: capabilities.At(time.Now()) + capabilities.Time(i+1)})
	}
	m.waitIdle()
	if noted := n.State().Journal.Events - before; noted == 0 || noted > peers.MovesBurst+1 {
		t.Errorf("%d places are noted", noted)
	}
	m.checkResponsive()
}

// TestWhereSomebodyIsSaidToBeIsNotAlwaysTried: a node that was introduced from afar is not dialled on this machine.
func TestLocalHintsOfRemotePeerAreNotDialed(t *testing.T) {
	n := openVictim(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	tried := make(chan struct{}, 64)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
			select {
			case tried <- struct{}{}:
			default:
			}
		}
	}()
	hints := []string{"nats://" + listener.Addr().String()}
	far, near := n.peers.Peer(randomNodeID()), n.peers.Peer(randomNodeID())
	n.peers.Note([]events.Event{&events.NodeMet{Node: far.ID(), Hints: hints, Stamp: 1, Network: events.PublicNetwork}})
	if err := far.Dial(t.Context()); err == nil {
		t.Error("nobody is there")
	}
	select {
	case <-tried:
		t.Error("the listener was tried")
	default:
	}
	n.peers.Note([]events.Event{&events.NodeMet{Node: near.ID(), Hints: hints, Stamp: 1, Network: events.ThisMachine}})
	if err := near.Dial(t.Context()); err == nil {
		t.Error("nobody is there")
	}
	select {
	case <-tried:
	case <-time.After(10 * time.Second):
		t.Error("who was met on this machine is not dialled there")
	}
	m := newHostilePeer(t, n, "hostile")
	exchange[peers.AckPacket](m, peers.KindMail, peers.MailPacket{Introduced: []peers.Introduction{{Node: randomNodeID(), Hints: hints, Stamp: 1}}})
	if got := n.transport.NetworkOf(m.id); got != events.ThisMachine {
		t.Errorf("the hostile node is on %q", got)
	}
}
