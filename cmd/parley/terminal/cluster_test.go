package terminal

import "testing"

func TestClustersAreWhatAPersonSees(t *testing.T) {
	for text, want := range map[string]struct {
		first, last string
		count       int
	}{
		"":              {},
		"ab":            {"a", "b", 2},
		"ok👩‍💻":         {"o", "👩‍💻", 3},
		"👨‍👩‍👧‍👦x":      {"👨‍👩‍👧‍👦", "x", 2},
		"e\u0301":       {"e\u0301", "e\u0301", 1},
		"🇩🇪🇫🇷":          {"🇩🇪", "🇫🇷", 2},
		"👍🏽":            {"👍🏽", "👍🏽", 1},
		"a\u0915\u094d": {"a", "\u0915\u094d", 2},
	} {
		if first, last, n := FirstCluster(text), LastCluster(text), Clusters(text); first != want.first || last != want.last || n != want.count {
			t.Errorf("%q: %q, %q, %d", text, first, last, n)
		}
	}
}
