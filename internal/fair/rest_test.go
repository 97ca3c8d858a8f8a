package fair

import (
	"testing"
	"time"
)

// TestWorkRestsBesideSlowWriters has a log that grows each 50 ms, in which one piece of work of many falls. All are followed by a
// rest, and none when nothing was written for long.
func TestWorkRestsBesideSlowWriters(t *testing.T) {
	r, now := NewRest(1), time.Unix(1, 0)
	if r.Due(1, now) {
		t.Error("a rest before anything is written")
	}
	for ms := range 1000 {
		if now = now.Add(time.Millisecond); !r.Due(uint64(2+ms/50), now) {
			t.Fatalf("no rest %d ms after a commit", ms%50)
		}
	}
	if r.Due(21, now.Add(restedFor)) {
		t.Errorf("a rest %v after the last commit", restedFor)
	}
}
