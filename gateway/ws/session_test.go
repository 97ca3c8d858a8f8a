package ws

import (
	"sync"
	"testing"

	"parley"
	"parley/gateway/api"
	"parley/gateway/mux"
	"parley/internal/pack"
)

// TestNobodySignsInOnAConnectionThatHasEnded ends a session while an agent signs in: it would be looked after for ever.
func TestNobodySignsInOnAConnectionThatHasEnded(t *testing.T) {
	s := &session{under: map[uint64]*task{}}
	s.endAll()
	if n, err := s.admit(nil); parley.CodeOf(err) != parley.NotRunning {
		t.Errorf("%d, %v", n, err)
	}
}

// TestACallIsAnsweredWhileTheNodeStops drains a session while a call and a wait end: the call "stop" does both.
func TestACallIsAnsweredWhileTheNodeStops(t *testing.T) {
	for range 5000 {
		s := &session{alive: t.Context(), under: map[uint64]*task{}}
		s.spelling = binary{s}
		woken := make(chan struct{}, 1)
		s.out = outbox{start: func() { woken <- struct{}{} }, later: func(fn func()) { fn() }}
		a := &agent{queue: queue{account: free{}}}
		s.under[1] = &task{agent: a}
		s.under[2] = &task{agent: a, cancel: func() {}}

		var ends sync.WaitGroup
		begin := make(chan struct{})
		ends.Go(func() { <-begin; _ = s.finish(1, a, pack.AppendMap(nil, 0), nil) })
		ends.Go(func() { <-begin; s.cancel(2, parley.Refuse(parley.Unauthenticated, "the agent has signed out")) })
		ends.Go(func() { <-begin; s.drain() })
		close(begin)
		answered := map[uint64]bool{}
		for !s.out.hasEnded() {
			<-woken
			for message, _, more := s.out.next(nil); more; message, _, more = s.out.next(nil) {
				if err := mux.ReadNode(message, func(f mux.Frame) error {
					answered[f.ID] = true
					return nil
				}); err != nil {
					t.Fatal(err)
				}
			}
		}
		ends.Wait()
		if !answered[1] || !answered[2] {
			t.Fatalf("the writer had ended before the answers were queued: %v", answered)
		}
	}
}

// TestACallThatComesTooLateIsRefused sends a call when the session goes already.
func TestACallThatComesTooLateIsRefused(t *testing.T) {
	s := &session{alive: t.Context(), under: map[uint64]*task{7: {}}}
	s.spelling = binary{s}
	s.out = outbox{start: func() {}, later: func(fn func()) { fn() }}
	a := &agent{queue: queue{account: free{}}}
	s.drain()
	if err := s.begin(a, 8, nil, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	s.out.close()
	message, _, _ := s.out.next(nil)
	refused := false
	if err := mux.ReadNode(message, func(f mux.Frame) error {
		refused = f.Kind == mux.Refusal && f.ID == 8
		return nil
	}); err != nil || !refused {
		t.Errorf("refused: %v, %v", refused, err)
	}
}

// free is an account without limits.
type free struct{ api.Account }

func (free) Take(api.Kind, int64) error { return nil }
func (free) Give(api.Kind, int64)       {}
func (free) Pace() error                { return nil }
