package persistence

import (
	"math/rand/v2"
	"testing"

	"parley"
	"parley/events"
)

func TestEventsAtReturnsTheWantedVersions(t *testing.T) {
	o := testOptions(t)
	j := open(t, o)
	w := make(writer)
	random := rand.New(rand.NewPCG(1, 1))
	for range 60 {
		sections := []events.Section{w.section(t, 1, 1+random.IntN(3)), w.section(t, 2, 1)}
		for range random.IntN(3) {
			sections = append(sections, w.section(t, 1, 1+random.IntN(2)), w.section(t, 1, 1), w.section(t, 3, 1))
		}
		if err := await(t, j, j.Append(sections...)); err != nil {
			t.Fatal(err)
		}
	}
	for _, again := range []bool{false, true} {
		if again {
			closeJournal(t, j)
			j = open(t, o)
		}
		for n, version := range w {
			for _, share := range []float64{0, 0.01, 0.1, 0.5, 1} {
				var want []uint64
				for v := uint64(1); v <= version; v++ {
					if random.Float64() < share {
						want = append(want, v)
					}
				}
				got, err := j.EventsAt(t.Context(), mailboxID(n), want)
				if err != nil || len(got) != len(want) {
					t.Fatalf("%d events, %v; want %d", len(got), err, len(want))
				}
				for i, e := range got {
					value, _ := e.Event.(*events.NameBound).Value.AsInt()
					if number, err := j.commitOf(mailboxID(n), want[i]); e.Version != want[i] || uint64(value) != want[i] || e.Commit != number || err != nil {
						t.Fatalf("mailbox %d: version %d is %+v of commit %d, %v", n, want[i], e, number, err)
					}
				}
			}
		}
	}
}

func TestEventsAtRefusesVersionsThatAreNotThere(t *testing.T) {
	j := open(t, testOptions(t))
	w := make(writer)
	w.write(t, j, 1, 5)
	for _, versions := range [][]uint64{{0}, {6}, {1, 6}, {2, 1}, {3, 3}} {
		_, err := j.EventsAt(t.Context(), mailboxID(1), versions)
		wantCode(t, err, parley.InvalidArgument)
	}
	_, err := j.EventsAt(t.Context(), mailboxID(2), []uint64{1})
	wantCode(t, err, parley.InvalidArgument)
}
