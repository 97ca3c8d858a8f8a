package terminal

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"
)

// TestYAMLEscapesInvisibleText checks that YAML escapes the same characters as JSON and text, and keeps the meaning.
func TestYAMLEscapesInvisibleText(t *testing.T) {
	check := func(t interface{ Errorf(string, ...any) }, doc any) {
		text, err := json.Marshal(doc)
		if err != nil {
			t.Errorf("%v", err)
		}
		out, err := YAML(text)
		if err != nil {
			t.Errorf("%q: %v", doc, err)
			return
		}
		if strings.ContainsFunc(out, hidesInYAML) {
			t.Errorf("%q hides in %q", doc, out)
		}
		var got any
		if err := yaml.Unmarshal([]byte(out), &got); err != nil {
			t.Errorf("%q: %v in %q", doc, err, out)
			return
		}
		var want any
		if err := json.Unmarshal(text, &want); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q became %q in %q", want, got, out)
		}
	}
	hostile := []string{"\u202eevil", "a\u200bb", "\x1b[31mred", "\u2028", "\ufeff", "\U000e0041", "line\nwith \u202e in\n", "\r", "\u0085", "a\tb\n", "\x7f", "\u2066x\u2069: y", "- \u202e", "\ufffe", "\n\t", "\n\n a", " \n b"}
	for _, s := range hostile {
		check(t, map[string]any{"v": s, s: "key", "list": []any{s, map[string]any{s: s}}})
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.SampledFrom(hostile), rapid.StringOfN(rapid.RuneFrom([]rune("\u202e\u200b\n\t \"'\\:#-a\x1b\U000e0041")), 0, 120, -1)).Draw(t, "text")
		check(t, map[string]any{"v": s, "l": []any{s}})
	})
}
