package actors

import (
	"testing"

	"parley/capabilities"
	"parley/internal/eventually"
	"parley/internal/fair"
)

// TestListingsRestBesideWriters ends a turn during which something was written, and one during which nothing was. The place
// is free at once after the second alone.
func TestListingsRestBesideWriters(t *testing.T) {
	n := openNode(t, t.TempDir())
	fae := guest(t, n, "fae")
	n.turns = fair.New[capabilities.ID](1, 1)
	take := func() (fair.Place[capabilities.ID], bool) { return n.turns.Try(fae.ID()) }
	for _, writes := range []bool{true, false} {
		var turn fair.Place[capabilities.ID]
		eventually.Holds(t, "the place is free again", func() (ok bool) { turn, ok = take(); return ok })
		began := n.journal.Position()
		if writes {
			for range 20 { // the rest takes as long as this
				if _, err := fae.Send(t.Context(), "SELF", "words"); err != nil {
					t.Fatal(err)
				}
			}
		}
		n.leaveTurn(turn, began)
		next, free := take()
		if free == writes {
			t.Errorf("with writes %t the place is free: %t", writes, free)
		}
		if free {
			next.Leave()
		}
	}
}
