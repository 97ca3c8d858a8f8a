package persistence

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"parley"
	"parley/events"
	"parley/internal/eventually"
)

// TestConcurrentWritersSurviveFailures writes to many mailboxes at once while commits fail at random. A goroutine reopens the
// journal after each failure, as a node does.
func TestConcurrentWritersSurviveFailures(t *testing.T) {
	o := testOptions(t)
	o.Log = nil
	var mu sync.Mutex
	random, done := rand.New(rand.NewPCG(1, 2)), false
	o.Failpoint = func(step string) error {
		mu.Lock()
		defer mu.Unlock()
		if done {
			return nil
		}
		if random.IntN(40) == 0 || step == "before "+StepSettle && random.IntN(2) == 0 {
			return errors.New("failpoint " + step)
		}
		return nil
	}
	j := open(t, o)
	stop, stopped := make(chan struct{}), make(chan struct{})
	failures := 0
	go func() {
		defer close(stopped)
		for ; ; failures++ {
			changed := j.Changed()
			for j.Err() != nil {
				_ = j.Reopen(t.Context()) // it may fail at random
			}
			select {
			case <-stop:
				return
			case <-changed:
			}
		}
	}()
	var wg sync.WaitGroup
	last := make([]uint64, 12)
	for nth := range last {
		wg.Go(func() { last[nth] = writeThrough(t, j, nth, 250) })
	}
	wg.Wait()
	close(stop)
	<-stopped
	mu.Lock()
	done = true
	mu.Unlock()
	t.Logf("%d failures, %d commits", failures, j.Stats().Commits)
	w := make(writer)
	for nth, acknowledged := range last {
		m, _ := j.Mailbox(mailboxID(nth))
		if m.Version < acknowledged {
			t.Errorf("mailbox %d has version %d, acknowledged %d", nth, m.Version, acknowledged)
		}
		w[nth] = m.Version
	}
	w.check(t, j)
}

// writeThrough appends until count appends are acknowledged. It returns the last acknowledged version.
func writeThrough(t *testing.T, j *Journal, nth, count int) (acknowledged uint64) {
	w := make(writer)
	done := make(chan error, 1)
	for count > 0 {
		pos := j.Append(w.section(t, nth, 1))
		j.Release(pos, func(err error) { done <- err })
		if err := <-done; err == nil {
			acknowledged = w[nth]
			count--
			continue
		} else if parley.CodeOf(err) != parley.ReadOnly || !j.Lost(pos) {
			t.Errorf("mailbox %d: %v", nth, err)
			return acknowledged
		}
		eventually.Holds(t, "the journal works", func() bool { return j.Err() == nil })
		m, _ := j.Mailbox(mailboxID(nth))
		w[nth] = m.Version
	}
	return acknowledged
}

func TestLargeBatchesAreSplitBetweenAppends(t *testing.T) {
	o := testOptions(t)
	o.MaxFrame = 10_000
	release := make(chan struct{})
	o.Failpoint = func(step string) error {
		if step == "before "+StepPublish {
			<-release
		}
		return nil
	}
	j := open(t, o)
	w := make(writer)
	var all []Position
	for range 6 {
		all = append(all, j.Append(w.section(t, 1, 60), w.section(t, 2, 60))) // some 4 KiB each
	}
	all = append(all, j.Append(w.section(t, 3, 1000))) // larger than a frame
	close(release)
	for _, pos := range all {
		if err := await(t, j, pos); err != nil {
			t.Fatal(err)
		}
	}
	if n := j.Stats().Commits; n < 3 || n > 5 {
		t.Errorf("%d commits", n)
	}
	w.check(t, j)
	huge := events.Section{Mailbox: mailboxID(4), First: 1, Count: 1, Body: make([]byte, j.MaxAppend()+frameOverhead)}
	wantCode(t, await(t, j, j.Append(huge)), parley.ReadOnly)
	reopen(t, j)
	w.write(t, j, 1, 1)
	w.check(t, j)
}

func TestCloseReleasesAppendsAndRefusesNewOnes(t *testing.T) {
	o := testOptions(t)
	j := open(t, o)
	w := make(writer)
	results := make(chan error, 200)
	for range 100 {
		j.Release(j.Append(w.section(t, 1, 1)), func(err error) { results <- err })
	}
	closeJournal(t, j)
	for range 100 {
		if err := <-results; err != nil {
			t.Fatal(err)
		}
	}
	wantCode(t, await(t, j, j.Append(writer{1: 100}.section(t, 1, 1))), parley.ReadOnly)
	wantCode(t, j.Reopen(t.Context()), parley.ReadOnly)
	if _, err := j.Load(t.Context(), mailboxID(1)); err != nil {
		wantCode(t, err, parley.ReadOnly)
	}
	w.check(t, open(t, o))
}
