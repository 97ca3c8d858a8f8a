package persistence

import (
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"parley"
)

// stuckAfter is the duration of one write from which on readers do not wait for it. A slow disk takes tenths of a second.
const stuckAfter = time.Second

// slowness watches the one write that is under way. A disk that hangs returns no error: all that can be seen of it is the
// time. It costs a commit nothing but the setting of a timer.
type slowness struct {
	log   *slog.Logger
	timer *time.Timer  // calls late
	began atomic.Int64 // start of the write, in Unix nanoseconds; 0 if there is none
	stuck atomic.Pointer[chan struct{}]

	mu      sync.Mutex
	late    bool              // the channel is closed
	besides map[*besides]bool // under way
}

// besides is a task that writes beside the commits: an archive, a file that a message carries. It may take long by itself, so
// it says after each of its steps that it goes on. What hangs is the one step. No reader waits for it.
type besides struct{ stepped atomic.Int64 }

// beside begins the watch of a task, for which the caller calls end.
func (s *slowness) beside() (w *besides, end func()) {
	w = &besides{}
	w.step()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.besides[w] = true
	return w, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.besides, w)
	}
}

// Beside calls a function that makes one write of the caller's to the disk of the state folder. Stats show it where it takes long, and so
// whoever waits for it can be told of the disk.
func (j *Journal) Beside(write func() error) error {
	_, end := j.o.slow.beside()
	defer end()
	return write()
}

// step says that the disk has done what it was asked for, and is asked for more. A nil task
// is one that nobody watches.
func (w *besides) step() {
	if w != nil {
		w.stepped.Store(time.Now().UnixNano())
	}
}

// rest says that the task does without the disk until its next step.
func (w *besides) rest() { w.stepped.Store(math.MaxInt64) }

// hanging returns for how long the disk has been at a commit, or at a step of a task beside it that takes longer than steps do. It is 0 if
// it is at neither.
func (s *slowness) hanging() time.Duration {
	longest := s.since()
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.besides {
		if d := time.Since(time.Unix(0, w.stepped.Load())); d >= stuckAfter {
			longest = max(longest, d)
		}
	}
	return longest
}

func newSlowness(log *slog.Logger) *slowness {
	s := &slowness{log: log, besides: map[*besides]bool{}}
	s.timer = time.AfterFunc(time.Hour, s.isLate)
	s.timer.Stop()
	s.reset()
	return s
}

func (s *slowness) reset() {
	stuck := make(chan struct{})
	s.stuck.Store(&stuck)
	s.late = false
}

// begin begins the watch of a write.
func (s *slowness) begin() {
	s.began.Store(time.Now().UnixNano())
	s.timer.Reset(stuckAfter)
}

// end ends the watch.
func (s *slowness) end() {
	began := s.began.Swap(0)
	if s.timer.Stop() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.late {
		s.reset()
		s.log.Info("the disk goes on: what waited for it is written", "after", time.Since(time.Unix(0, began)).Round(time.Millisecond))
	}
}

// isLate tells those who wait that the write takes long. The timer may be that of an earlier write.
func (s *slowness) isLate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.late || s.since() < stuckAfter {
		return
	}
	s.late = true
	close(*s.stuck.Load())
	s.log.Warn("the disk has not finished a flush yet: what is written waits for it", "after", stuckAfter)
}

// since returns the duration of the write under way, 0 if there is none.
func (s *slowness) since() time.Duration {
	if began := s.began.Load(); began != 0 {
		return time.Since(time.Unix(0, began))
	}
	return 0
}

// Stuck returns a channel that is closed when a write takes so long that no reader waits for it. Callers get it before
// they begin to wait. It is cheap.
func (j *Journal) Stuck() <-chan struct{} { return *j.o.slow.stuck.Load() }

// Flushing returns the duration of the write and flush of a commit that is under way. It is 0 if there is none, or if the
// server is external. It is cheap.
func (j *Journal) Flushing() time.Duration { return j.o.slow.since() }

// StuckError returns the error of a caller that gives up on a disk that hangs. It is nil if the disk does not hang.
func (j *Journal) StuckError() error { return j.o.slow.err() }

func (s *slowness) err() error {
	hanging := s.hanging()
	if hanging < stuckAfter {
		return nil
	}
	return parley.Refuse(parley.Timeout, "%s", SlowDisk(hanging)).
		WithHint("nothing that was stored is lost; what is written waits for the disk, and parley status says how long it has")
}

// named returns the error of a step that failed, which is that of the disk where that hangs.
func (s *slowness) named(err error) error {
	if stuck := s.err(); err != nil && stuck != nil && !isUnusable(err) {
		return stuck
	}
	return err
}

// SlowDisk returns the words for a disk that has been at one flush for so long.
func SlowDisk(since time.Duration) string {
	return fmt.Sprintf("the disk has not finished a flush for %d s", int(since.Seconds()))
}
