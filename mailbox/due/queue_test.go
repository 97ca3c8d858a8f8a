package due_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"parley/capabilities"
	"parley/mailbox/due"
)

// A queue agrees with a sorted list.
func TestQueueAgreesWithSortedList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q due.Queue[int]
		var want []capabilities.Time
		for i := range rapid.IntRange(0, 50).Draw(t, "items") {
			at := capabilities.Time(rapid.IntRange(0, 20).Draw(t, "at"))
			q.Add(at, i)
			want = append(want, at)
		}
		slices.Sort(want)
		now := capabilities.Time(rapid.IntRange(0, 20).Draw(t, "now"))
		var past []capabilities.Time
		for _, item := range q.Until(now) {
			past = append(past, item.At)
		}
		slices.Sort(past)
		if n := len(past); !slices.Equal(past, want[:n]) || n < len(want) && want[n] <= now {
			t.Fatalf("at %d there are %v of %v", now, past, want)
		}
		for _, at := range want {
			if first, ok := q.First(); !ok || first.At != at {
				t.Fatalf("the first is at %d, want %d", first.At, at)
			}
			q.Drop()
		}
		if _, ok := q.First(); ok || q.Len() != 0 {
			t.Fatal("the queue is not empty")
		}
	})
}
