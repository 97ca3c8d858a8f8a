package call

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"
)

// block returns an edit as a block.
func (e edit) block() Block {
	b := Block{Kind: Diff, Path: e.path, Notes: e.notes, Values: e.rest}
	switch {
	case e.isFile:
		b.Kind = File
		b.Lines = linesOf(Same, e.new)
		b.Added = len(b.Lines)
	case e.old == e.new:
		b.Lines = []Line{{Note, []Span{{Text: "nothing changes"}}}}
	default:
		b.Lines = diffLines(e.old, e.new)
		for _, l := range b.Lines {
			switch l.Mark {
			case Added:
				b.Added++
			case Removed:
				b.Removed++
			}
		}
		markWords(b.Lines)
	}
	return b
}

// linesOf returns the lines of a text. The end of its last line makes no line of its own.
func linesOf(mark Mark, text string) []Line {
	if text == "" {
		return nil
	}
	var lines []Line
	for part := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		lines = append(lines, Line{mark, []Span{{Text: part}}})
	}
	return lines
}

// diffLines returns the lines of a unified diff of two texts. The texts are parts of a file, so lines have no numbers.
func diffLines(was, is string) []Line {
	var last []Line
	ended, ends := strings.HasSuffix(was, "\n"), strings.HasSuffix(is, "\n")
	switch {
	case was == "":
		return linesOf(Added, is)
	case is == "":
		return linesOf(Removed, was)
	case ended && !ends:
		last = linesOf(Note, "the end of the last line is removed")
	case !ended && ends:
		last = linesOf(Note, "the end of the last line is added")
	}
	was, is = strings.TrimSuffix(was, "\n")+"\n", strings.TrimSuffix(is, "\n")+"\n"
	if was == is {
		return append(linesOf(Same, is), last...)
	}
	text := string(diff.Diff("a", []byte(was), "b", []byte(is)))
	var lines []Line
	for i, l := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if i < 3 || l == "" {
			continue // the names of the texts
		}
		switch l[0] {
		case '+':
			lines = append(lines, Line{Added, []Span{{Text: l[1:]}}})
		case '-':
			lines = append(lines, Line{Removed, []Span{{Text: l[1:]}}})
		case '@':
			if !strings.HasPrefix(l, "@@ -1,") || len(lines) > 0 {
				lines = append(lines, Line{Skip, []Span{{Text: "⋯"}}})
			}
		default:
			lines = append(lines, Line{Same, []Span{{Text: l[1:]}}})
		}
	}
	return append(lines, last...)
}

// maxMarked bounds the lines in which words are marked, in bytes.
const maxMarked = 2000

// markWords marks the words that change where lines are added behind removed ones. It pairs them in order.
func markWords(lines []Line) {
	for i := 0; i < len(lines); {
		removed := run(lines[i:], Removed)
		added := run(lines[i+removed:], Added)
		for j := i; j < i+min(removed, added); j++ {
			lines[j].Spans, lines[j+removed].Spans = marked(lines[j].Text(), lines[j+removed].Text())
		}
		i += max(removed+added, 1)
	}
}

// run returns the number of lines with a mark at the beginning.
func run(lines []Line, mark Mark) int {
	for i, l := range lines {
		if l.Mark != mark {
			return i
		}
	}
	return len(lines)
}

// marked returns the spans of two lines. It marks the part between the words that both begin and end with, unless the
// lines have little in common.
func marked(was, is string) (before, after []Span) {
	whole := func() ([]Span, []Span) { return []Span{{Text: was}}, []Span{{Text: is}} }
	if len(was) > maxMarked || len(is) > maxMarked {
		return whole()
	}
	start := commonStart(was, is)
	end := commonEnd(was[start:], is[start:])
	common := strings.TrimSpace(was[:start]) + strings.TrimSpace(was[len(was)-end:])
	if 3*len(common) < min(len(strings.TrimSpace(was)), len(strings.TrimSpace(is))) {
		return whole()
	}
	return parts(was, start, end), parts(is, start, end)
}

// parts returns a line in three spans, of which the middle one has changed. It has no empty spans.
func parts(line string, start, end int) []Span {
	var spans []Span
	for _, s := range []Span{{Text: line[:start]}, {Text: line[start : len(line)-end], Changed: true}, {Text: line[len(line)-end:]}} {
		if s.Text != "" {
			spans = append(spans, s)
		}
	}
	return spans
}

// commonStart returns the length of the beginning that two texts share, up to the end of a word.
func commonStart(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	for n > 0 && (splits(a, n) || splits(b, n)) {
		n--
	}
	return n
}

// commonEnd returns the length of the end that two texts share, from the beginning of a word.
func commonEnd(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	for n > 0 && (splits(a, len(a)-n) || splits(b, len(b)-n)) {
		n--
	}
	return n
}

// splits reports whether an index is within a word or a character.
func splits(text string, at int) bool {
	if at <= 0 || at >= len(text) {
		return false
	}
	if !utf8.RuneStart(text[at]) {
		return true
	}
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	after, _ := utf8.DecodeRuneInString(text[at:])
	return isWord(before) && isWord(after)
}

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
