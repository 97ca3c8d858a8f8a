package peers

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/actors/peers/window"
)

func TestPacketsAreProcessedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l receiveWindow
		var mu sync.Mutex
		var admitted []uint64
		var all sync.WaitGroup
		for _, number := range []uint64{3, 1, 4, 2} {
			all.Go(func() {
				if !l.wait(t.Context(), 7, number, 0) {
					t.Errorf("packet %d was not let in", number)
					return
				}
				mu.Lock()
				admitted = append(admitted, number)
				mu.Unlock()
				l.admit(7, number)
			})
			synctest.Wait() // it is being processed, or waits for those before it
		}
		all.Wait()
		if want := []uint64{1, 2, 3, 4}; !slices.Equal(admitted, want) {
			t.Fatalf("they admitted as %v, want %v", admitted, want)
		}
	})
}

func TestEveryPacketIsProcessed(t *testing.T) {
	admit := func(l *receiveWindow, epoch, number uint64) bool {
		in := l.wait(context.Background(), epoch, number, 0)
		if in {
			l.admit(epoch, number)
		}
		return in
	}
	for name, c := range map[string]struct {
		before func(l *receiveWindow)
		epoch  uint64
		number uint64
		want   bool
	}{
		"the first":                          {epoch: 1, number: 1, want: true},
		"without an epoch":                   {number: 9, want: true},
		"whose predecessor is lost":          {epoch: 1, number: 2},
		"in the middle of an unknown window": {epoch: 5, number: 3},
		"that has admitted before": {
			before: func(l *receiveWindow) { admit(l, 1, 1) }, epoch: 1, number: 1,
		},
		"of a window that is over": {
			before: func(l *receiveWindow) { admit(l, 2, 1) }, epoch: 1, number: 1,
		},
		"of a new window": {
			before: func(l *receiveWindow) { admit(l, 1, 1) }, epoch: 2, number: 1, want: true,
		},
		"after one that could not be stored": {
			before: func(l *receiveWindow) { admit(l, 1, 1); l.fail(1) }, epoch: 1, number: 2,
		},
		"of the window after that": {
			before: func(l *receiveWindow) { admit(l, 1, 1); l.fail(1) }, epoch: 2, number: 1, want: true,
		},
		"when an older window broke late": {
			before: func(l *receiveWindow) { admit(l, 2, 1); l.fail(1) }, epoch: 2, number: 2, want: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var l receiveWindow
				if c.before != nil {
					c.before(&l)
				}
				begin := time.Now()
				if got := admit(&l, c.epoch, c.number); got != c.want {
					t.Fatalf("let in: %v, want %v", got, c.want)
				}
				if took := time.Since(begin); took > windowPatience {
					t.Fatalf("it took %v", took)
				}
			})
		})
	}
}

func TestRepeatedPacketIsProcessedOnce(t *testing.T) {
	var l receiveWindow
	for range 2 {
		if !l.wait(t.Context(), 7, 1, 0) {
			t.Fatal("one finds that it is not its turn")
		}
	}
	l.admit(7, 1)
	l.admit(7, 1)
	if turn, _ := l.look(7, 3, 0); turn == window.Now {
		t.Error("it is packet 3's turn before packet 2's")
	}
	if turn, _ := l.look(7, 2, 0); turn != window.Now {
		t.Error("it is not packet 2's turn")
	}
}
