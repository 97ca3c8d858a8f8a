package transport

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"parley"
	"parley/capabilities"
	"parley/internal/eventually"
)

func TestInvalidPacketsAreCounted(t *testing.T) {
	hub := openHub(t)
	var got atomic.Int64
	a := openTransport(t, Options{Hub: hub, Receive: func(ctx context.Context, l Packet) (Kind, []byte, bool) {
		got.Add(1)
		return echo(ctx, l)
	}})
	b, c := newIdentity(t), newIdentity(t)
	me := a.o.Identity
	genuine := sealed(t, b, me, "genuine")
	altered := slices.Clone(genuine)
	altered[len(altered)-1] ^= 1
	answer, err := b.sealAnswer(a.me, someID, 1, nil)
	must(t, err)
	bad := [][]byte{
		nil, []byte("hello"), altered, genuine[:len(genuine)-1], make([]byte, maxEnvelope+1),
		sealed(t, b, c, "for another"), resigned(c, genuine), answer,
	}
	conn := connectClient(t, hub)
	inbox, err := conn.SubscribeSync(replySubject(b.Node(), someID))
	must(t, err)
	for _, e := range bad {
		must(t, conn.PublishRequest(mailSubject(a.me), replySubject(b.Node(), someID), e))
	}
	must(t, conn.PublishRequest(mailSubject(a.me), replySubject(b.Node(), someID), genuine))
	m, err := inbox.NextMsgWithContext(testContext(t))
	must(t, err)
	if l, err := b.Open(m.Data); err != nil || !l.Answer || string(l.Body) != "genuine" {
		t.Errorf("the first response is %+v, %v", l, err)
	}
	eventually.Holds(t, "all are counted", func() bool { return a.Refused() == uint64(len(bad)) })
	if n := got.Load(); n != 1 {
		t.Errorf("%d packets were received, want the genuine one", n)
	}
	if m, err := inbox.NextMsg(time.Millisecond); err == nil {
		t.Errorf("another response: %q", m.Data)
	}
}

func TestResponseGoesOnlyToSender(t *testing.T) {
	hub := openHub(t)
	a, b := openTransport(t, Options{Hub: hub}), newIdentity(t)
	conn := connectClient(t, hub)
	all, err := conn.SubscribeSync(">")
	must(t, err)
	must(t, conn.PublishRequest(mailSubject(a.me), "$JS.API.STREAM.DELETE.ORDERS", sealed(t, b, a.o.Identity, "1")))
	must(t, conn.PublishRequest(mailSubject(a.me), replySubject(b.Node(), someID), sealed(t, b, a.o.Identity, "2")))
	for {
		m, err := all.NextMsgWithContext(testContext(t))
		must(t, err)
		switch m.Subject {
		case mailSubject(a.me):
		case replySubject(b.Node(), someID):
			return
		default:
			t.Fatalf("it responded to %s", m.Subject)
		}
	}
}

func TestInvalidResponsesDoNotEndCall(t *testing.T) {
	hub := openHub(t)
	a, b, c := openTransport(t, Options{Hub: hub}), newIdentity(t), newIdentity(t)
	conn := connectClient(t, hub)
	_, err := conn.Subscribe(mailSubject(b.Node()), func(m *nats.Msg) {
		l, err := b.Open(m.Data)
		must(t, err)
		forged, err := c.sealAnswer(a.me, l.ID, 1, []byte("forged"))
		must(t, err)
		notOfThis, err := b.sealAnswer(a.me, someID, 1, []byte("to another packet"))
		must(t, err)
		noAnswer, err := b.Seal(a.me, l.ID, 1, []byte("no response"))
		must(t, err)
		answer, err := b.sealAnswer(a.me, l.ID, 1, []byte("genuine"))
		must(t, err)
		for _, e := range [][]byte{nil, []byte("junk"), make([]byte, maxEnvelope+1), forged, notOfThis, noAnswer, answer} {
			must(t, m.Respond(e))
		}
	})
	must(t, err)
	must(t, conn.FlushWithContext(testContext(t)))
	l, err := a.Call(testContext(t), b.Node(), 1, nil)
	if err != nil || string(l.Body) != "genuine" {
		t.Errorf("the response is %+v, %v", l, err)
	}
	if n := a.Refused(); n != 6 {
		t.Errorf("%d refused, want 6", n)
	}
}

func TestPacketsOverLimitAreDropped(t *testing.T) {
	hub := openHub(t)
	release := make(chan struct{})
	a := openTransport(t, Options{Hub: hub, MaxPackets: packetsOfNode + 1, Receive: func(ctx context.Context, l Packet) (Kind, []byte, bool) {
		<-release
		return echo(ctx, l)
	}})
	defer close(release)
	busy, other, late := openTransport(t, Options{Hub: hub}), openTransport(t, Options{Hub: hub}), openTransport(t, Options{Hub: hub})
	ctx, cancel := context.WithCancel(testContext(t))
	failed := make(chan error, 32)
	send := func(from *Transport) { go func() { _, err := from.Call(ctx, a.me, 1, nil); failed <- err }() }
	for range packetsOfNode + 1 {
		send(busy)
	}
	eventually.Holds(t, "one node's packets fill its places", func() bool { return a.Dropped() == 1 })
	send(other)
	eventually.Holds(t, "another's packet has a place", func() bool { return a.Traffic(other.me).PacketsIn == 1 })
	send(late)
	eventually.Holds(t, "all places are taken", func() bool { return a.Dropped() == 2 })
	cancel()
	for range packetsOfNode + 3 {
		if err := <-failed; !errors.Is(err, context.Canceled) || parley.CodeOf(err) != parley.NodeUnreachable {
			t.Errorf("a packet without a response: %v", err)
		}
	}
}

func TestFloodDoesNotEndOtherConnections(t *testing.T) {
	a, guest, other := openListening(t, Options{Log: slog.New(slog.DiscardHandler)}), newIdentity(t), openTransport(t, Options{})
	must(t, other.Dial(testContext(t), a.me, a.Hints(), ""))
	conn, err := raw(t, a, answering(guest, a.me))
	must(t, err)
	packet := sealed(t, guest, a.o.Identity, strings.Repeat("x", 256<<10))
	for range 150 {
		must(t, conn.Publish(mailSubject(a.me), packet))
	}
	must(t, conn.FlushWithContext(testContext(t)))
	eventually.Holds(t, "another's packet comes through", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, err := other.Call(ctx, a.me, 1, nil)
		return err == nil
	})
	if n := a.own.conn.Stats().Reconnects + other.dialed[a.me].conn.Stats().Reconnects; n != 0 {
		t.Errorf("connections were made again %d times", n)
	}
}

func TestRefusalLogIsRateLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		w := &Transport{counts: newCounts(), o: Options{Log: slog.New(slog.NewTextHandler(&text, nil))}}
		for range 100 {
			w.refuse(ErrForged)
		}
		time.Sleep(refusalPause) // of the test's own clock
		w.refuse(ErrForeign)
		lines := strings.Split(strings.TrimSpace(text.String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[1], "more=99") || w.Refused() != 101 {
			t.Errorf("%d refusals, logged as %q", w.Refused(), lines)
		}
	})
}

func TestUnknownSendersAreBounded(t *testing.T) {
	c := newCounts()
	for n := range maxCounted + 10 {
		c.received(capabilities.NodeOf([32]byte{byte(n), byte(n >> 8)}), 1)
	}
	if len(c.of) != maxCounted || c.all.PacketsIn != maxCounted+10 {
		t.Errorf("%d nodes, %d packets", len(c.of), c.all.PacketsIn)
	}
}
