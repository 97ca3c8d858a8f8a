package main

import (
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"
)

// takeOversEnv has the duration for which TestTakeOverPercentiles makes take-overs. Without it the test is skipped.
const takeOversEnv = "PARLEY_TAKEOVERS"

const (
	takeOverPairs   = 2  // nodes that are taken over at the same time, on the same servers
	takeOversOfNode = 20 // after these, another node is made, so that the check of all its forms stays short
)

// TestTakeOverPercentiles kills the processes of nodes on three servers under load, again and again. Each standby takes
// over with all that was acknowledged. It reports how long the clients waited, and 99 of 100 of these times are in bounds.
func TestTakeOverPercentiles(t *testing.T) {
	spec := os.Getenv(takeOversEnv)
	if spec == "" {
		t.Skip(takeOversEnv + " is not set")
	}
	period, err := time.ParseDuration(spec)
	if err != nil {
		t.Fatal(err)
	}
	var (
		mu   sync.Mutex
		took []time.Duration
		c    = startCluster(t)
		end  = time.Now().Add(period)
	)
	t.Run("pairs", func(t *testing.T) {
		for range takeOverPairs {
			t.Run("pair", func(t *testing.T) {
				t.Parallel()
				for time.Now().Before(end) && !t.Failed() {
					some := c.takeOvers(t, end)
					mu.Lock()
					took = append(took, some...)
					mu.Unlock()
				}
			})
		}
	})
	slices.Sort(took)
	if len(took) == 0 {
		t.Fatal("none was taken over")
	}
	t.Logf("%d take-overs: half within %v, 90 of 100 within %v, 99 of 100 within %v, the longest %v", len(took),
		percentile(took, 50), percentile(took, 90), percentile(took, 99), took[len(took)-1])
	if slow := percentile(took, 99); slow > takeOver {
		t.Errorf("99 of 100 take-overs are within %v, want at most %v", slow, takeOver)
	}
}

// takeOvers kills the process of a new node some times, or until a time. It returns how long the clients waited for each
// standby.
func (c *cluster) takeOvers(t *testing.T, end time.Time) (took []time.Duration) {
	node, standby, _ := c.pair(t)
	l := startLoad(t, node, standby)
	for len(took) < takeOversOfNode && time.Now().Before(end) && !t.Failed() {
		l.more(t, 10+rand.Int64N(40))
		took = append(took, l.gap(t, node.kill))
		standby.runs(t)
		node.start(t)
		node.waits(t)
		node, standby = standby, node
	}
	l.end()
	l.check(t, node)
	t.Logf("%d acknowledged, none lost", l.acks.Load())
	standby.kill()
	node.kill()
	return took
}

// percentile returns the least of sorted durations that so many of 100 do not exceed.
func percentile(sorted []time.Duration, percent int) time.Duration {
	at := (len(sorted)*percent + 99) / 100
	return sorted[max(at, 1)-1].Round(time.Millisecond)
}
