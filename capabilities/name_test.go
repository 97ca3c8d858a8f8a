package capabilities

import (
	"slices"
	"strings"
	"testing"

	"parley/internal/fault"
)

func TestNamesFollowTheRules(t *testing.T) {
	for _, good := range []string{
		"a", "fae", "Fäe", "名前", "a b", "a@b", "a.b", "...", ".a", "self", "Self", "mail", "nodes", "a\nb", "-", "🙂",
		strings.Repeat("é", 255),
	} {
		if err := CheckName(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", ".", "..", "/", "a/b", "a\x00b", "@", "@self", "@host", "@mail", "@nodes", "@other", "SELF", "HOST",
		"\xff", "a\xc3", strings.Repeat("é", 256), strings.Repeat("a", 1<<20),
	} {
		err := CheckName(bad)
		wantCode(t, err, fault.InvalidName, bad)
		if err != nil && len(fault.AsError(err).Message) > 600 {
			t.Errorf("%.20q: a message of %d bytes", bad, len(err.Error()))
		}
	}
}

func TestPathsFollowTheRules(t *testing.T) {
	for s, want := range map[string]Path{
		"a":                            {"a"},
		"a/b/c":                        {"a", "b", "c"},
		"SELF":                         {"@self"},
		"HOST/x":                       {"@host", "x"},
		"@host":                        {"@host"},
		"@mail/0/@to":                  {"@mail", "0", "@to"},
		"@nodes/n":                     {"@nodes", "n"},
		"a/@b":                         {"a", "@b"},
		"a/HOST":                       {"a", "HOST"},
		"a b/ü":                        {"a b", "ü"},
		"a" + strings.Repeat("/b", 15): append(Path{"a"}, slices.Repeat(Path{"b"}, 15)...),
	} {
		if got, err := ParsePath(s); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: got %q, %v", s, got, err)
		}
	}
	for _, bad := range []string{
		"", "/", "a/", "/a", "a//b", ".", "..", "a/.", "a/../b", "@", "@other", "@other/a", "a\x00", "a/\x00", "a/\xff", "\xff",
		"a/" + strings.Repeat("é", 256), "a" + strings.Repeat("/b", 16),
	} {
		_, err := ParsePath(bad)
		wantCode(t, err, fault.InvalidName, bad)
	}
}
