package bridge

import (
	"testing"

	"parley"
	"parley/actors/view"
)

// TestCallsWithBrokenNamesAreNotWhole has line breaks in what stands in one row: they are spelled out, and so the call cannot be
// allowed from a notice.
func TestCallsWithBrokenNamesAreNotWhole(t *testing.T) {
	for _, test := range []struct {
		tool, input string
		whole       bool
	}{
		{"Write", `{"file_path":"/a/b.txt","content":"x\ny"}`, true},
		{"Write", `{"file_path":"/a/b\n.txt","content":"x"}`, false},
		{"Write", `{"file_path":"/a/b\r.txt","content":"x"}`, false},
		{"Read", `{"file_path":"/a/b\nc"}`, false},
		{"mcp__a__b", `{"name":"x"}`, true},
		{"mcp__a__b", `{"na\nme":"x"}`, false},
		{"mcp__a__b", `{"in":{"na\nme":"x"}}`, true},
		{"mcp__a__b", `{"na\tme":"x"}`, false},
	} {
		m := &view.Message{Permission: &parley.Permission{Tool: test.tool, Input: test.input}}
		if text, whole := readingOf(m); whole != test.whole {
			t.Errorf("%s %s: whole %t\n%s", test.tool, test.input, whole, text)
		}
	}
}
