package capabilities

import (
	"slices"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestLookalikesOfNames(t *testing.T) {
	for _, c := range []struct {
		name, like string
		mixed      bool
	}{
		{"pаypal", "paypal", true}, // with a Cyrillic а
		{"асе", "ace", false},
		{"ace", "асе", false},
		{"НОST", "HOST", true},
		{"ｆａｅ", "fae", false},
		{"οσ", "oσ", false},
		{"тест-api", "", false},
		{"приветBot", "", true},
		{"Δt", "", false},
		{"fae", "", false},
		{"日本go", "", false},
		{"café", "", false},
	} {
		if got := Lookalikes(c.name); c.like != "" && !slices.Contains(got, c.like) {
			t.Errorf("%q looks like %q, want %q", c.name, got, c.like)
		}
		if got := MixesScripts(c.name); got != c.mixed {
			t.Errorf("%q is mixed: %t", c.name, got)
		}
	}
	if got := Lookalikes("fae-1"); len(got) > 0 {
		t.Errorf("fae-1 looks like %q", got)
	}
}

// TestLookalikesAreOfOneScript checks the tables.
func TestLookalikesAreOfOneScript(t *testing.T) {
	for i, of := range []*unicode.RangeTable{unicode.Cyrillic, unicode.Greek, unicode.Armenian} {
		for latin, other := range scripts[i] {
			if !unicode.Is(unicode.Latin, latin) || !unicode.Is(of, other) || other == utf8.RuneError || unicode.IsUpper(latin) != unicode.IsUpper(other) && other != 'ӏ' {
				t.Errorf("%d: %q for %q", i, other, latin)
			}
		}
	}
}
