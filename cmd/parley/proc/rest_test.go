package proc

import (
	"fmt"
	"testing"
)

// TestMemoryIsReturnedAtRest gives memory back twice in a rest, and not while there is work or little to give.
func TestMemoryIsReturnedAtRest(t *testing.T) {
	const busy, idle = restWork + 1, restWork / 4
	r, at := rest{}, uint64(0)
	given := ""
	for i, work := range []uint64{busy, busy, idle, idle, idle, idle, idle, idle, busy, idle, idle, busy, idle} {
		at += work
		held := uint64(restSpare + 1)
		if i == 12 {
			held = restSpare
		}
		if r.isDue(heap{at, held}) {
			given += fmt.Sprint(i, " ")
		}
	}
	if want := "2 6 9 "; given != want {
		t.Errorf("given back after %s, want %s", given, want)
	}
	if h := readHeap(); h.held == 0 || h.allocated == 0 {
		t.Errorf("%+v", h)
	}
}
