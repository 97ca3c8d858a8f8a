package terminal

import (
	"encoding/json"
	"reflect"
	"strconv"
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

// TestYAMLQuotesTextThatReadersTakeForOtherThings checks texts that YAML 1.1 reads as another type.
func TestYAMLQuotesTextThatReadersTakeForOtherThings(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"", "no", "No", "NO", "yes", "on", "Off", "y", "N", "true", "False", "null", "Null", "~", "=", "<<", "12:30", "190:20:30.15", "1e3", "0777", "0o17", "0x1F", "0b1010",
		"1_000", "+1", "-1.5", ".5", ".inf", "-.INF", ".NaN", "2026-01-01", "2001-12-14t21:59:43.10-05:00", "2026-01-01 10:00:00 Z", "685.230_15e+03", "7",
	} {
		doc, err := json.Marshal(map[string]any{"v": s, s: 1, "list": []string{s}})
		if err != nil {
			t.Fatal(err)
		}
		out, err := YAML(doc)
		if err != nil {
			t.Fatal(err)
		}
		if quoted := strconv.Quote(s); strings.Count(out, quoted) != 3 {
			t.Errorf("%q is written as %s", s, out)
		}
	}
	for _, s := range []string{"nobody", "yes, please", "on it", "12 monkeys", "e3", "a:b c", "nulls", "v1.2", "1st"} {
		if out, err := YAML([]byte(`{"v":"` + s + `"}`)); err != nil || strings.Contains(out, `"`) {
			t.Errorf("%q is written as %s, %v", s, out, err)
		}
	}
}
