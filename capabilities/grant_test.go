package capabilities

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func cutIDs(l *Ledger, id ID) []ID {
	var ids []ID
	for _, g := range l.Cut(id) {
		ids = append(ids, g.ID)
	}
	return ids
}

func TestCutReturnsDerivedGrants(t *testing.T) {
	var l Ledger
	for _, pair := range [][2]byte{{1, 0}, {2, 1}, {3, 2}, {4, 1}, {5, 9}, {6, 3}, {7, 5}} { // grant, parent
		g := Grant{ID: testID(pair[0]), Kind: KindAgent}
		if pair[1] != 0 {
			g.Parent = testID(pair[1])
		}
		l.Add(g)
	}
	for _, c := range []struct {
		cut  byte
		want []ID
	}{
		{1, []ID{testID(1), testID(2), testID(3), testID(4), testID(6)}},
		{2, []ID{testID(2), testID(3), testID(6)}},
		{6, []ID{testID(6)}},
		{9, []ID{testID(5), testID(7)}}, // an unknown grant with derived ones
		{8, nil},
	} {
		if got := cutIDs(&l, testID(c.cut)); !slices.Equal(got, c.want) {
			t.Errorf("cut %d: got %v", c.cut, got)
		}
	}
	l.Mark(testID(2), 5)
	if got, want := cutIDs(&l, testID(1)), []ID{testID(1), testID(3), testID(4), testID(6)}; !slices.Equal(got, want) {
		t.Errorf("a revoked grant ends again: got %v", got)
	}
}

// TestCutReturnsGrantsThatCameBeforeTheirParent adds grants in each order: as another node likes.
func TestCutReturnsGrantsThatCameBeforeTheirParent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []Grant
		for n := range byte(8) {
			g := Grant{ID: testID(n + 1), Kind: KindAgent}
			if parent := rapid.ByteRange(0, n).Draw(t, "parent"); parent != 0 {
				g.Parent = testID(parent)
			}
			all = append(all, g)
		}
		var ordered, other Ledger
		for _, g := range all {
			ordered.Add(g)
		}
		for _, g := range rapid.Permutation(all).Draw(t, "order") {
			other.Add(g)
		}
		for _, g := range all {
			want, got := cutIDs(&ordered, g.ID), cutIDs(&other, g.ID)
			slices.SortFunc(got, ID.Compare)
			if slices.SortFunc(want, ID.Compare); !slices.Equal(got, want) {
				t.Fatalf("%s ends %v, and in another order %v", g.ID, want, got)
			}
		}
	})
}

func TestLedgerKeepsFirstGrant(t *testing.T) {
	var l Ledger
	l.Add(Grant{ID: testID(1), Name: "first"})
	l.Add(Grant{ID: testID(1), Name: "second"})
	l.Mark(testID(1), 5)
	l.Mark(testID(1), 9)
	l.Mark(testID(2), 9)
	g, ok := l.Get(testID(1))
	if !ok || g.Name != "first" || g.Revoked != 5 || l.Len() != 1 {
		t.Fatalf("got %+v, %d", g, l.Len())
	}
	if !l.Any(func(g Grant) bool { return g.Name == "first" }) || l.Any(func(g Grant) bool { return g.Name == "second" }) {
		t.Fatal("Any found a missing grant, or missed one")
	}
	if g, ok := l.Get(testID(2)); ok {
		t.Fatalf("got %+v, which was never added", g)
	}
	l.All()[0].Name = "changed by the caller"
	if g, _ := l.Get(testID(1)); g.Name != "first" {
		t.Fatal("All returned the ledger's own slice")
	}
}

// TestCutIsTheClosureOfParents checks that Cut returns a grant if and only if the revoked grant is it or one of its
// ancestors.
func TestCutIsTheClosureOfParents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "grants")
		var l Ledger
		parents := make([]int, n+1)
		for i := 1; i <= n; i++ {
			parents[i] = rapid.IntRange(0, i-1).Draw(t, "parent")
			g := Grant{ID: testID(byte(i))}
			if parents[i] != 0 {
				g.Parent = testID(byte(parents[i]))
			}
			l.Add(g)
		}
		cut := rapid.IntRange(1, n).Draw(t, "cut")
		var want []ID
		for i := 1; i <= n; i++ {
			for a := i; a != 0; a = parents[a] {
				if a == cut {
					want = append(want, testID(byte(i)))
				}
			}
		}
		if got := cutIDs(&l, testID(byte(cut))); !slices.Equal(got, want) {
			t.Fatalf("parents %v, cut %d: got %v, want %v", parents, cut, got, want)
		}
	})
}
