package mailbox

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"parley/capabilities"
)

// TestGrantsAreListedByTime lists references that were given, and grants by which other nodes may reply. Each is in the list once,
// and they are sorted by time if the clock never went back.
func TestGrantsAreListedByTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newGrants(capabilities.ID{})
		var made []capabilities.Grant
		now, wentBack := capabilities.Time(1000), false
		for i := range rapid.IntRange(0, 20).Draw(t, "grants") {
			step := rapid.Int64Range(-1, 3).Draw(t, "step")
			now, wentBack = now+capabilities.Time(step), wentBack || step < 0
			g := capabilities.Grant{ID: capabilities.ID{ULID: [16]byte{byte(i + 1)}}, At: now}
			if rapid.Bool().Draw(t, "to reply") {
				g.To.Node = capabilities.NodeOf([capabilities.NodeKeySize]byte{byte(i + 1)})
				l.putReply(g)
			} else {
				l.given.Add(g)
			}
			made = append(made, g)
		}
		all := l.All()
		if slices.ContainsFunc(made, func(g capabilities.Grant) bool { return !slices.Contains(all, g) }) || len(all) != len(made) {
			t.Fatalf("got %v, want %v", all, made)
		}
		if !wentBack && !slices.IsSortedFunc(all, func(a, b capabilities.Grant) int { return cmp.Compare(a.At, b.At) }) {
			t.Fatalf("not sorted: %v", all)
		}
	})
}
