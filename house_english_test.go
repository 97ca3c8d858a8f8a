package parley_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode"
)

const maxWords = 20 // of a sentence in a comment

// TestSentencesAreShort counts the words of the sentences in comments outside of tests.
func TestSentencesAreShort(t *testing.T) {
	for _, f := range sources(t) {
		if f.test {
			continue
		}
		for _, group := range f.tree.Comments {
			line := 1 + strings.Count(f.text[:group.Pos()-f.tree.FileStart], "\n")
			for _, s := range sentences(group.Text()) {
				if n := words(s); n > maxWords {
					t.Errorf("%s:%d: %d words: %s", f.path, line, n, strings.Join(strings.Fields(s), " "))
				}
			}
		}
	}
}

var sentenceEnd = regexp.MustCompile(`[.?!:;]["')\]]*(\s+|$)`)

// sentences returns the sentences of a comment. Each item of a list, and each part before a colon or a semicolon, counts
// by itself. Indented lines are code.
func sentences(comment string) []string {
	var all []string
	for paragraph := range strings.SplitSeq(comment, "\n\n") {
		var text strings.Builder
		for line := range strings.Lines(paragraph) {
			switch {
			case strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "  "):
				text.WriteString(". ")
			case strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "# "):
				text.WriteString(". " + line[2:])
			default:
				text.WriteString(line)
			}
		}
		all = append(all, sentenceEnd.Split(text.String(), -1)...)
	}
	return all
}

func words(s string) int {
	n := 0
	for word := range strings.FieldsSeq(s) {
		if strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			n++
		}
	}
	return n
}
