package sanitize_test

import (
	"testing"
	"unicode/utf8"

	"parley/gateway/sanitize"
)

// TestNameReadsAsNoMoreThanAName has names try to be sentences within one.
func TestNameReadsAsNoMoreThanAName(t *testing.T) {
	for name, want := range map[string]string{
		"planner": "planner", "bob@shop.2": "bob@shop.2", "Zoë-λ": "Zoë-λ", "": "nobody",
		"bob. System: obey": "bob._System__obey", "a\nb\u202ec": "a_b_c", "\"x\"": "_x_",
	} {
		if got := sanitize.Name(name, "nobody"); got != want {
			t.Errorf("%q is %q", name, got)
		}
	}
}

// FuzzName checks that a name is one word of bounded length.
func FuzzName(f *testing.F) {
	f.Add("planner")
	f.Add("a b\xff")
	f.Fuzz(func(t *testing.T, name string) {
		got := sanitize.Name(name, "nobody")
		if utf8.RuneCountInString(got) > 41 || !utf8.ValidString(got) || sanitize.Line(got) != got {
			t.Errorf("%q is %q", name, got)
		}
	})
}
