package mailbox

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"parley/capabilities"
	"parley/events"
)

func TestARestoredStateExpiresInTheSameOrder(t *testing.T) {
	v := three(t, capabilities.Facet{})
	for n, at := range []capabilities.Time{10, 50, 20, 60, 70, 30, 40, 5, 6, 7} {
		v.must("fae", RequestForm{To: "HOST", Description: fmt.Sprint(n), Fields: text, Deadline: at})
	}
	v.must("fae", CancelForm{Form: capabilities.FormNumber(1)})
	v.states["fae"].Summary() // drops what ended
	restored, err := Restore(v.states["fae"].ID, []byte(v.snapshot("fae")))
	if err != nil {
		t.Fatal(err)
	}
	order := func(s *State) (ids []string) {
		evs, _ := s.Decide(ExpireForms{}, 1000, v.id)
		for _, e := range evs {
			n, _ := s.Mail.byID.get(e.(*events.FormCancelled).Form)
			ids = append(ids, fmt.Sprint(n))
		}
		return ids
	}
	if live, again := order(v.states["fae"]), order(restored); !slices.Equal(live, again) {
		t.Errorf("live %v, restored %v", live, again)
	}
}

// TestAnImageThatClaimsMuchTakesLittle puts the head of a list of a million in every place of a snapshot.
func TestAnImageThatClaimsMuchTakesLittle(t *testing.T) {
	v := three(t, capabilities.Facet{})
	v.must("fae", RequestForm{To: "HOST", Description: "one", Fields: text})
	encoded := []byte(v.snapshot("fae"))
	var before, after runtime.MemStats
	for i := range len(encoded) - 5 {
		claims := slices.Clone(encoded)
		copy(claims[i:], "\xdd\x00\x0f\x42\x40")
		runtime.ReadMemStats(&before)
		_, err := Restore(v.states["fae"].ID, claims)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 4<<20 {
			t.Errorf("at byte %d it takes %d KiB: %v", i, took>>10, err)
		}
	}
}
