package fair

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// served records what flows got.
type served struct {
	mu    sync.Mutex
	order strings.Builder
	time  map[string]time.Duration
}

// had returns the time for which a flow has had a place.
func (s *served) had(flow string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.time[flow]
}

// work has callers of a flow do pieces of work of a cost until a time has passed.
func (s *served) work(all *sync.WaitGroup, q *Queue[string], flow string, callers int, cost, until time.Duration) {
	for range callers {
		all.Go(func() {
			for end := time.Now().Add(until); time.Now().Before(end); {
				p, err := q.Enter(context.Background(), flow)
				if err != nil {
					panic(err)
				}
				s.mu.Lock()
				s.order.WriteString(flow)
				s.time[flow] += cost
				s.mu.Unlock()
				time.Sleep(cost)
				p.Leave()
			}
		})
		synctest.Wait() // in this order
	}
}

func TestEachFlowGetsAPlaceByWhatItsWorkCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, q := &served{time: map[string]time.Duration{}}, New[string](1, 1)
		var all sync.WaitGroup
		s.work(&all, q, "A", 16, 3*time.Millisecond, 600*time.Millisecond)
		s.work(&all, q, "B", 3, time.Millisecond, 600*time.Millisecond)
		all.Wait()
		if order := s.order.String(); !strings.HasPrefix(order, "ABBBABBBABBBA") {
			t.Errorf("%s…", order[:20])
		}
		if a, b := s.time["A"], s.time["B"]; a > b*11/10+50*time.Millisecond || b > a*11/10 {
			t.Errorf("A had %v, B %v", a, b)
		}
	})
}

// A flow that comes late has no claim for the time before, and waits for one piece of each other at most.
func TestLateFlowTakesItsShareAndNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, q := &served{time: map[string]time.Duration{}}, New[string](1, 1)
		var all sync.WaitGroup
		s.work(&all, q, "A", 16, 2*time.Millisecond, time.Second)
		time.Sleep(500*time.Millisecond + time.Microsecond)
		before, began := s.had("A"), time.Now()
		p, err := q.Enter(t.Context(), "B")
		if waited := time.Since(began); err != nil || waited > 2*time.Millisecond {
			t.Errorf("B waited %v: %v", waited, err)
		}
		p.Leave()
		s.work(&all, q, "B", 16, 2*time.Millisecond, 400*time.Millisecond)
		time.Sleep(400 * time.Millisecond)
		if a, b := s.had("A")-before, s.had("B"); a < b*9/10 || b < a*9/10 {
			t.Errorf("meanwhile A had %v, B %v", a, b)
		}
		all.Wait()
		if q.free != 1 || len(q.flows) != 0 || len(q.waiting) != 0 || q.virtual != 0 {
			t.Errorf("at rest: %d free, %d flows, virtual time %v", q.free, len(q.flows), q.virtual)
		}
	})
}

func TestEndedCallerLeavesNoPlaceTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New[string](1, 1)
		held, err := q.Enter(t.Context(), "A")
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := q.Try("B"); ok {
			t.Error("two have the only place")
		}
		why := errors.New("gone")
		ctx, end := context.WithCancelCause(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := q.Enter(ctx, "B")
			ended <- err
		}()
		synctest.Wait()
		end(why)
		if err := <-ended; !errors.Is(err, why) {
			t.Error(err)
		}
		held.Leave()
		if p, ok := q.Try("B"); !ok {
			t.Error("the place is still taken")
		} else {
			p.Leave()
		}
	})
}

// However flows come and go, there are never more at work than places, and never a place is free while one may take it.
func TestPlacesAreNeverExceededNorLeftEmpty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		places := rapid.IntRange(1, 4).Draw(t, "places")
		each := rapid.IntRange(1, places).Draw(t, "each")
		flows := rapid.IntRange(1, 6).Draw(t, "flows")
		q := New[int](places, each)
		var held []Place[int]
		waiting := map[*waiter]int{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if k := rapid.IntRange(0, flows-1).Draw(t, "flow"); rapid.Bool().Draw(t, "come") {
				q.mu.Lock()
				f := q.flow(k)
				if q.free > 0 && f.taken < q.each {
					held = append(held, Place[int]{q.admit(f), q})
				} else {
					w := q.wait(f)
					waiting[w] = k
				}
				q.mu.Unlock()
			} else if len(held) > 0 {
				held[k%len(held)].Leave()
				held = append(held[:k%len(held)], held[k%len(held)+1:]...)
			}
			for w := range waiting {
				select {
				case <-w.admitted:
					held = append(held, Place[int]{w.place, q})
					delete(waiting, w)
				default:
				}
			}
			taken := map[*flow]int{}
			for _, p := range held {
				if taken[p.flow]++; taken[p.flow] > each {
					t.Fatalf("a flow has %d of %d places", taken[p.flow], each)
				}
			}
			if q.free != places-len(held) || q.free < 0 {
				t.Fatalf("%d of %d free, %d held", q.free, places, len(held))
			}
			if q.free > 0 && q.next() != nil {
				t.Fatal("a flow waits for a place that is free")
			}
		}
	})
}
