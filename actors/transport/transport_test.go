package transport

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"parley"
)

func TestPacketsGoBothWaysOverOneListener(t *testing.T) {
	a, b := openListening(t, Options{}), openTransport(t, Options{})
	must(t, b.Dial(testContext(t), a.me, a.Hints(), ""))
	must(t, b.Dial(testContext(t), a.me, a.Hints(), "")) // already connected
	mustCall(t, b, a, "from the one that dialed")
	mustCall(t, a, b, "from the one that listens")
	mustCall(t, a, b, "")
	mustCall(t, b, a, strings.Repeat("x", MaxBody))

	in, out := a.Traffic(b.me), b.Traffic(a.me)
	if in.PacketsIn != out.PacketsOut || in.BytesIn != out.BytesOut || in.PacketsIn != 4 || in.PacketsOut != 4 || in != a.Total() {
		t.Errorf("counted %+v at one end, %+v at the other", in, out)
	}
	if !a.Connected(b.me) || !b.Connected(a.me) || a.Connected(newIdentity(t).Node()) {
		t.Error("the connected nodes are wrong")
	}
}

func TestNodesConnectAtHub(t *testing.T) {
	hub := openHub(t)
	a, b := openTransport(t, Options{Hub: hub}), openTransport(t, Options{Hub: hub})
	mustCall(t, a, b, "across")
	mustCall(t, b, a, "back")
}

func TestTransportOpensWithoutHub(t *testing.T) {
	w := openTransport(t, Options{Hub: "nats://127.0.0.1:1"})
	start := time.Now()
	_, err := w.Call(testContext(t), newIdentity(t).Node(), 1, nil)
	if !errors.Is(err, errNoLink) || time.Since(start) > atOnce {
		t.Errorf("%v after %v", err, time.Since(start))
	}
}

func TestUnreachableIsReportedAtOnce(t *testing.T) {
	a := openListening(t, Options{Hub: openHub(t)})
	start := time.Now()
	_, err := a.Call(testContext(t), newIdentity(t).Node(), 1, nil)
	if parley.CodeOf(err) != parley.NodeUnreachable || !errors.Is(err, errAbsent) {
		t.Errorf("a call to nobody: %v", err)
	}
	err = a.Dial(testContext(t), newIdentity(t).Node(), []string{"nats://127.0.0.1:1"}, "")
	if parley.CodeOf(err) != parley.NodeUnreachable {
		t.Errorf("dialing where nobody listens: %v", err)
	}
	if took := time.Since(start); took > atOnce {
		t.Errorf("it took %v", took)
	}
}

func TestMissingResponseIsUnreachable(t *testing.T) {
	quiet := func(context.Context, Packet) (Kind, []byte, bool) { return 0, nil, false }
	a, b := openListening(t, Options{Receive: quiet}), openTransport(t, Options{})
	must(t, b.Dial(testContext(t), a.me, a.Hints(), ""))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := b.Call(ctx, a.me, 1, nil)
	if parley.CodeOf(err) != parley.NodeUnreachable || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call without an answer: %v", err)
	}
}

func BenchmarkCall(b *testing.B) {
	hub := openHub(b)
	quiet := slog.New(slog.DiscardHandler)
	listens, dials := openListening(b, Options{Log: quiet}), openTransport(b, Options{Log: quiet})
	must(b, dials.Dial(testContext(b), listens.me, listens.Hints(), ""))
	one, other := openTransport(b, Options{Hub: hub, Log: quiet}), openTransport(b, Options{Hub: hub, Log: quiet})
	body := make([]byte, 500)
	for _, c := range []struct {
		name     string
		from, to *Transport
	}{{"dialed", dials, listens}, {"listener", listens, dials}, {"hub", one, other}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				_, err := c.from.Call(b.Context(), c.to.me, 1, body)
				must(b, err)
			}
		})
	}
}
