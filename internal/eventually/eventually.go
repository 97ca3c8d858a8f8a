package eventually

import (
	"testing"
	"time"
)

// Patience is the longest time for which Holds waits. A machine that is busy with other tests needs much of it.
const Patience = 3 * time.Minute

// longestPause is the longest time between two attempts that cost little.
const longestPause = 20 * time.Millisecond

// An attempt that costs much, such as a command, takes at most a quarter of the time. So what it waits for gets on.
const (
	pauseForCost  = 3
	longestForOne = 500 * time.Millisecond
)

// Holds blocks until a condition holds. It fails the test if that takes longer than Patience.
func Holds(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	Within(tb, Patience, what, holds)
}

// Within is Holds with another limit.
func Within(tb testing.TB, most time.Duration, what string, holds func() bool) {
	tb.Helper()
	pause := time.Millisecond
	for end := time.Now().Add(most); ; {
		began := time.Now()
		if holds() {
			return
		}
		cost := time.Since(began)
		if time.Now().After(end) {
			tb.Fatalf("not within %v: %s", most, what)
		}
		time.Sleep(max(pause, Rest(cost)))
		pause = min(2*pause, longestPause)
	}
}

// Rest returns how long to wait after an attempt that took a time, before the next.
func Rest(cost time.Duration) time.Duration { return min(pauseForCost*cost, longestForOne) }
