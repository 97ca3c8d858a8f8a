package mcp

import (
	"strings"
	"testing"

	"parley"
	"parley/actors/view"
	"parley/events"
)

// TestPartTextIsWholeCharacters cuts texts where the bytes end, and gives no binary data.
func TestPartTextIsWholeCharacters(t *testing.T) {
	long := strings.Repeat("ü", maxFileText)
	for _, c := range []struct {
		data, want string
		isText     bool
	}{
		{"plain", "plain", true}, {"", "", true}, {"caf\xc3", "caf", true}, {"a\x00b", "a\x00b", false}, {"\xff\xfe\xfd\xfc\xfb", "\xff", false},
		{long, long[:maxFileText], true}, {"x" + long, ("x" + long)[:maxFileText-1], true},
	} {
		got, isText := partText([]byte(c.data))
		if isText != c.isText || isText && got != c.want {
			t.Errorf("%.20q: %d bytes, %v", c.data, len(got), isText)
		}
	}
}

func TestPickFile(t *testing.T) {
	m := &view.Message{Header: parley.Header{Files: []events.File{{Digest: "d1", Name: "a\u202eb.txt"}, {Digest: "d2", Name: "c"}}}}
	for which, want := range map[string]string{"d1": "d1", "c": "d2", "": "", "x": ""} {
		f, err := pickFile(m, which)
		if f.Digest != want || (err == nil) != (want != "") {
			t.Errorf("%q: %+v, %v", which, f, err)
		}
	}
	m.Files = m.Files[:1]
	if f, err := pickFile(m, ""); err != nil || f.Digest != "d1" {
		t.Errorf("the only one: %+v, %v", f, err)
	}
}
