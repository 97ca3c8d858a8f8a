package persistence

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/events"
)

func TestReleaseFollowsTheOrderOfAppends(t *testing.T) {
	o := testOptions(t)
	release := make(chan struct{})
	o.Failpoint = func(step string) error {
		if step == "before "+StepPublish {
			<-release
		}
		return nil
	}
	j := open(t, o)
	var mu sync.Mutex
	var got []Position
	var last Position
	const n = 2000
	var wg sync.WaitGroup
	wg.Add(n)
	w := make(writer)
	var batch []Position
	for i := range n {
		pos := j.Append(w.section(t, i%7, 1))
		batch = append(batch, pos)
		if len(batch) == 5 {
			slices.Reverse(batch)
			for _, pos := range batch {
				j.Release(pos, func(err error) {
					defer wg.Done()
					mu.Lock()
					defer mu.Unlock()
					if err != nil || !j.Durable(pos) || j.Lost(pos) {
						t.Errorf("position %d: %v", pos, err)
					}
					got = append(got, pos)
				})
			}
			batch = nil
		}
		last = pos
	}
	if j.Durable(1) || j.Lost(1) || j.Stats().Backlog == 0 {
		t.Error("durable before it was stored")
	}
	close(release)
	wg.Wait()
	if !slices.IsSorted(got) {
		t.Error("released out of order")
	}
	if last != n || len(got) != n {
		t.Fatalf("%d released of %d", len(got), last)
	}
	w.check(t, j)
}

func TestReopenedJournalHasAllAppends(t *testing.T) {
	o := testOptions(t)
	j := open(t, o)
	w := make(writer)
	w.write(t, j, 1, 20)
	if err := await(t, j, j.Append(w.section(t, 2, 3), w.section(t, 1, 2), w.section(t, 2, 1))); err != nil {
		t.Fatal(err)
	}
	w.check(t, j)
	before := j.Stats()
	closeJournal(t, j)
	j = open(t, o)
	w.check(t, j)
	if after := j.Stats(); after != before {
		t.Fatalf("got %+v, want %+v", after, before)
	}
	w.write(t, j, 3, 5)
	w.check(t, j)
}

// TestAfterReleaseFollowsWhatIsReleasedTogether releases some waiters at once, each of which registers a function.
func TestAfterReleaseFollowsWhatIsReleasedTogether(t *testing.T) {
	var o order
	o.init(&Options{Log: slog.New(slog.DiscardHandler), Busy: func() bool { return false }})
	const n = 5
	var got []string
	done := make(chan struct{})
	for i := range n {
		o.Release(o.Append(events.Section{}), func(error) {
			got = append(got, "released")
			o.AfterRelease(func() {
				if got = append(got, "after"); i == n-1 {
					close(done)
				}
			})
		})
	}
	o.stored(o.take(1 << 20))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go o.releaser(ctx)
	<-done
	if want := slices.Concat(slices.Repeat([]string{"released"}, n), slices.Repeat([]string{"after"}, n)); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	now := make(chan struct{})
	o.AfterRelease(func() { close(now) })
	<-now
}

// TestAppendsWaitForMore has a busy owner append. Its Push starts the commit, and the end of Linger does.
func TestAppendsWaitForMore(t *testing.T) {
	var busy atomic.Bool
	o := Options{Log: slog.New(slog.DiscardHandler), Busy: busy.Load, Linger: time.Hour}
	var waits order
	waits.init(&o)
	busy.Store(true)
	waits.Push()
	waits.Append(events.Section{})
	if len(waits.wake) != 0 {
		t.Error("a busy owner's append started a commit, or an empty Push did")
	}
	waits.Push()
	if len(waits.wake) != 1 {
		t.Error("Push started no commit")
	}
	<-waits.wake
	busy.Store(false)
	waits.Append(events.Section{})
	if len(waits.wake) != 1 {
		t.Error("an idle owner's append started no commit")
	}
	busy.Store(true)
	o.Linger = time.Millisecond
	var late order
	late.init(&o)
	for range 2 { // the timer starts again
		late.Append(events.Section{})
		<-late.wake
		late.stored(late.take(1 << 20))
	}
}
