package actors

import (
	"testing"

	"parley/capabilities"
	"parley/internal/eventually"
	"parley/internal/fair"
)

// TestListingsRestBesideWriters ends turns shortly after something was written, and long after. The place is free at once in the
// second case alone.
func TestListingsRestBesideWriters(t *testing.T) {
	n := openNode(t, t.TempDir())
	fae := guest(t, n, "fae")
	n.turns.Queue = fair.New[capabilities.ID](1, 1)
	free := func() bool {
		turn, ok := n.turns.Try(fae.ID())
		if ok {
			turn.Leave()
		}
		return ok
	}
	turn, _ := n.turns.Try(fae.ID())
	for range 20 { // the rest takes as long as this
		if _, err := fae.Send(t.Context(), "SELF", "words"); err != nil {
			t.Fatal(err)
		}
	}
	n.leaveTurn(turn)
	if free() {
		t.Error("a listing did not rest after something was written")
	}
	eventually.Holds(t, "nothing was written for long, and no listing rests", func() bool {
		turn, ok := n.turns.Try(fae.ID())
		if ok {
			n.leaveTurn(turn)
		}
		return ok && free()
	})
}
