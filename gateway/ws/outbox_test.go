package ws

import (
	"bytes"
	"testing"

	"parley/gateway/api"
	"parley/gateway/mux"
	"parley/internal/pack"
)

// freeAccount is an account without limits.
type freeAccount struct{ api.Account }

func (freeAccount) Take(api.Kind, int64) error { return nil }
func (freeAccount) Give(api.Kind, int64)       {}

// result returns what appends the frame of a result.
func result(id uint64, body []byte) func([]byte) []byte {
	return func(b []byte) []byte { return mux.AppendNode(b, mux.Frame{Kind: mux.Result, ID: id, Body: body}) }
}

// TestAnAgentsFramesWaitForAPieceOfAnothers adds a frame of one agent behind 10,000 of another.
func TestAnAgentsFramesWaitForAPieceOfAnothers(t *testing.T) {
	o := outbox{start: func() {}, later: func(fn func()) { fn() }}
	busy, idle := queue{account: freeAccount{}}, queue{account: freeAccount{}}
	body := mux.AppendJSON(nil, bytes.Repeat([]byte("x"), 200))
	const many = 10_000
	for i := range many {
		if err := o.add(&busy, result(uint64(i), body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.add(&idle, result(many, body)); err != nil {
		t.Fatal(err)
	}
	first, n, at := 0, 0, -1
	for message := []byte(nil); n <= many; {
		var ok bool
		if message, _, ok = o.next(message[:0]); !ok {
			t.Fatal("there is no message")
		}
		if len(message) > writeSize+pieceSize {
			t.Errorf("a message has %d bytes", len(message))
		}
		if err := mux.ReadNode(message, func(f mux.Frame) error {
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
	started := 0
	o := outbox{start: func() { started++ }, later: func(fn func()) { after = append(after, fn) }}
	queues := [2]queue{{account: freeAccount{}}, {account: freeAccount{}}}
	for i := range 10 {
		if err := o.add(&queues[i%2], result(uint64(i), pack.AppendNil(nil))); err != nil {
			t.Fatal(err)
		}
	}
	if started != 0 || len(after) != 1 {
		t.Fatalf("the writer was started %d times, and is to be %d times", started, len(after))
	}
	after[0]()
	message, ends, ok := o.next(nil)
	n := 0
	if err := mux.ReadNode(message, func(mux.Frame) error { n++; return nil }); !ok || err != nil || n != 10 || len(ends) != 10 || started != 1 {
		t.Errorf("a message of %d frames, %v", n, err)
	}
}
