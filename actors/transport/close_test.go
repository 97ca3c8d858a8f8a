package transport

import (
	"context"
	"testing"
	"time"

	"parley"
	"parley/internal/eventually"
)

func TestCloseEndsReceive(t *testing.T) {
	entered, left := make(chan struct{}), make(chan struct{})
	a := openListening(t, Options{Receive: func(ctx context.Context, _ Packet) (Kind, []byte, bool) {
		close(entered)
		<-ctx.Done()
		close(left)
		return 0, nil, false
	}})
	b := openTransport(t, Options{})
	must(t, b.Dial(testContext(t), a.me, a.Hints(), ""))
	ctx, called := testContext(t), make(chan error, 1)
	go func() { _, err := b.Call(ctx, a.me, 1, nil); called <- err }()
	<-entered
	must(t, a.Close())
	select {
	case <-left:
	default:
		t.Error("Close did not wait for the packet that was being received")
	}
	if err := <-called; parley.CodeOf(err) != parley.NodeUnreachable {
		t.Errorf("the call: %v", err)
	}
}

func TestCloseEndsCallsAndDials(t *testing.T) {
	quiet := func(context.Context, Packet) (Kind, []byte, bool) { return 0, nil, false }
	a, b := openListening(t, Options{Receive: quiet}), openTransport(t, Options{})
	must(t, b.Dial(testContext(t), a.me, a.Hints(), ""))
	ctx, called := testContext(t), make(chan error, 1)
	go func() { _, err := b.Call(ctx, a.me, 1, nil); called <- err }()
	eventually.Holds(t, "the packet is on its way", func() bool { return b.Total().PacketsOut == 1 })
	must(t, b.Close())
	must(t, b.Close())
	if err := <-called; parley.CodeOf(err) != parley.NodeUnreachable {
		t.Errorf("the call: %v", err)
	}
	start := time.Now()
	for name, err := range map[string]error{
		"dial": b.Dial(ctx, a.me, a.Hints(), ""),
		"call": func() error { _, err := b.Call(ctx, a.me, 1, nil); return err }(),
	} {
		if parley.CodeOf(err) != parley.NodeUnreachable {
			t.Errorf("%s after Close: %v", name, err)
		}
	}
	if b.Connected(a.me) || time.Since(start) > atOnce {
		t.Error("the transport is not fully closed")
	}
}

func TestOpenErrors(t *testing.T) {
	taken := openListening(t, Options{})
	for name, o := range map[string]Options{
		"nobody":          {Receive: echo},
		"nobody receives": {Identity: newIdentity(t)},
		"no address":      {Identity: newIdentity(t), Receive: echo, Listen: "here"},
		"a taken address": {Identity: newIdentity(t), Receive: echo, Listen: taken.Address()},
		"no hub":          {Identity: newIdentity(t), Receive: echo, Hub: "http://secret@host"},
	} {
		start := time.Now()
		w, err := Open(testContext(t), o)
		if parley.CodeOf(err) != parley.InvalidArgument || time.Since(start) > atOnce {
			t.Errorf("%s: %v", name, err)
		}
		if w != nil {
			must(t, w.Close())
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ended, Options{Identity: newIdentity(t), Receive: echo, Listen: "127.0.0.1:0"}); err == nil {
		t.Error("the transport opened after its context ended")
	}
}
