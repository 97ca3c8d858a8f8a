package eventually

import (
	"testing"
	"time"
)

// Patience is the longest time for which Holds waits. A machine that is busy with other tests needs much of it.
const Patience = 60 * time.Second

// longestPause is the longest time between two attempts.
const longestPause = 20 * time.Millisecond

// Holds blocks until a condition holds. It fails the test if that takes longer than Patience.
func Holds(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	Within(tb, Patience, what, holds)
}

// Within is Holds with another limit.
func Within(tb testing.TB, most time.Duration, what string, holds func() bool) {
	tb.Helper()
	pause := time.Millisecond
	for end := time.Now().Add(most); !holds(); time.Sleep(pause) {
		if time.Now().After(end) {
			tb.Fatalf("not within %v: %s", most, what)
		}
		pause = min(2*pause, longestPause)
	}
}
