package web

import (
	"strings"
	"testing"

	"parley/gateway/call"
)

// TestColoursKeepTheText colours lines of every grammar: whatever a grammar makes of a text, the page shows the text.
func TestColoursKeepTheText(t *testing.T) {
	t.Parallel()
	texts := []string{"func main() { return \"a\" } // done", "def f(x): # why\n", "\t{\"a\": [1, 2.5e3, null]}", "'unended", "/* unended", "<<EOF\n$(x", "\u202e\u00e4\U0001F600 = 1", "", strings.Repeat("(", 300)}
	for end := range grammars {
		b := call.Block{Kind: call.Diff, Path: "a" + end}
		for i, text := range texts {
			mark := []call.Mark{call.Same, call.Added, call.Removed}[i%3]
			for line := range strings.SplitSeq(text, "\n") {
				half := strings.IndexFunc(line, func(r rune) bool { return r == ' ' }) + 1
				b.Lines = append(b.Lines, call.Line{Mark: mark, Spans: []call.Span{{Text: line[:half]}, {Text: line[half:], Changed: true}}})
			}
		}
		for i, pieces := range coloured(b) {
			var got, changed strings.Builder
			for _, p := range pieces {
				got.WriteString(p.Text)
				if p.Changed {
					changed.WriteString(p.Text)
				}
			}
			if l := b.Lines[i]; got.String() != l.Text() || changed.String() != l.Spans[1].Text {
				t.Errorf("%s: %q is shown as %q, with %q changed", end, l.Text(), got.String(), changed.String())
			}
		}
	}
}

// TestCodeHasColours looks at a line of a known and of an unknown kind of file.
func TestCodeHasColours(t *testing.T) {
	t.Parallel()
	line := func(file, text string) (classes []string) {
		for _, p := range coloured(call.Block{Path: file, Lines: []call.Line{{Mark: call.Added, Spans: []call.Span{{Text: text}}}}})[0] {
			if p.Class != "" {
				classes = append(classes, p.Class+":"+p.Text)
			}
		}
		return classes
	}
	for file, want := range map[string]string{"a.go": `k:func fn:f st:"x" nm:1 rm:// y`, "a.js": `st:"x" nm:1 rm:// y`, "a.unknown": ""} {
		got := strings.Join(line(file, `func f("x", 1) // y`), " ")
		for part := range strings.SplitSeq(want, " ") {
			if !strings.Contains(got, part) {
				t.Errorf("%s: %q lacks %q", file, got, part)
			}
		}
		if want == "" && got != "" {
			t.Errorf("%s: %q", file, got)
		}
	}
}

// TestLinesHaveNumbers counts the lines of both sides of a change.
func TestLinesHaveNumbers(t *testing.T) {
	t.Parallel()
	marks := []call.Mark{call.Same, call.Removed, call.Added, call.Added, call.Same}
	b := call.Block{Kind: call.Diff, Path: "a.go"}
	for _, m := range marks {
		b.Lines = append(b.Lines, call.Line{Mark: m, Spans: []call.Span{{Text: "x"}}})
	}
	want := [][2]int{{1, 1}, {2, 0}, {0, 2}, {0, 3}, {3, 4}}
	for i, row := range drawBlocks([]call.Block{b})[0].Rows {
		if got := [2]int{row.Old, row.New}; got != want[i] {
			t.Errorf("line %d has the numbers %v, want %v", i, got, want[i])
		}
	}
}
