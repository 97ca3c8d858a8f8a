package mux

import (
	"bytes"
	"testing"

	"parley/gateway/api"
	"parley/internal/pack"
)

// freeAccount is an account without limits.
type freeAccount struct{ api.Account }

func (freeAccount) Take(api.Kind, int64) error { return nil }
func (freeAccount) Give(api.Kind, int64)       {}

// TestAnAgentsFramesWaitForAPieceOfAnothers adds a frame of one agent behind 10,000 of another.
func TestAnAgentsFramesWaitForAPieceOfAnothers(t *testing.T) {
	o := outbox{wake: make(chan struct{}, 1), later: func(fn func()) { fn() }}
	busy, idle := queue{account: freeAccount{}}, queue{account: freeAccount{}}
	body := AppendJSON(nil, bytes.Repeat([]byte("x"), 200))
	const many = 10_000
	for i := range many {
		if err := o.add(&busy, Frame{Kind: Result, ID: uint64(i), Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.add(&idle, Frame{Kind: Result, ID: many, Body: body}); err != nil {
		t.Fatal(err)
	}
	first, n, at := 0, 0, -1
	for message := []byte(nil); n <= many; {
		var ok bool
		if message, ok = o.next(t.Context(), message[:0]); !ok {
			t.Fatal("there is no message")
		}
		if len(message) > writeSize+pieceSize {
			t.Errorf("a message has %d bytes", len(message))
		}
		if err := ReadNode(message, func(f Frame) error {
			if f.ID == many {
				at = first
			}
			first += len(f.Body)
			n++
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if at < 0 || at > pieceSize {
		t.Errorf("the frame of the idle agent came behind %d bytes of the other's", at)
	}
}

// TestAWriterIsWokenOnce adds frames while results of a commit are released.
func TestAWriterIsWokenOnce(t *testing.T) {
	var after []func()
	o := outbox{wake: make(chan struct{}, 1), later: func(fn func()) { after = append(after, fn) }}
	queues := [2]queue{{account: freeAccount{}}, {account: freeAccount{}}}
	for i := range 10 {
		if err := o.add(&queues[i%2], Frame{Kind: Result, ID: uint64(i), Body: pack.AppendNil(nil)}); err != nil {
			t.Fatal(err)
		}
	}
	if len(o.wake) != 0 || len(after) != 1 {
		t.Fatalf("the writer was woken %d times, and is to be %d times", len(o.wake), len(after))
	}
	after[0]()
	message, ok := o.next(t.Context(), nil)
	n := 0
	if err := ReadNode(message, func(Frame) error { n++; return nil }); !ok || err != nil || n != 10 {
		t.Errorf("a message of %d frames, %v", n, err)
	}
}
