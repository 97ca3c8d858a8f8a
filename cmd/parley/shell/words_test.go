package shell

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestSplitInvertsJoin(t *testing.T) {
	for line, want := range map[string][]string{
		"":                               nil,
		"  ":                             nil,
		"bwrap --ro-bind / /":            {"bwrap", "--ro-bind", "/", "/"},
		"a 'b c'\t\"d e\" f\\ g":         {"a", "b c", "d e", "f g"},
		`'' "" x`:                        {"", "", "x"},
		`"a\"b\\c\d" '\'`:                {`a"b\c\d`, `\`},
		`pre'in side'post`:               {"prein sidepost"},
		"$HOME `id` $(id) ~ * ; | & > <": {"$HOME", "`id`", "$(id)", "~", "*", ";", "|", "&", ">", "<"},
	} {
		if got, err := Split(line); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v; want %q", line, got, err, want)
		}
	}
	for _, line := range []string{"'a", `"a`, `a\`, `"a\"`} {
		if got, err := Split(line); err == nil {
			t.Errorf("%s: %q", line, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.String(), 0, 5).Draw(t, "words")
		if got, err := Split(Join(words)); err != nil || !slices.Equal(got, words) && len(got)+len(words) > 0 {
			t.Errorf("%q became %q, %v", words, got, err)
		}
	})
}
