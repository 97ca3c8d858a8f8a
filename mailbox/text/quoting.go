package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// quoting is the way in which a text speaks of other text, and not for itself.
type quoting uint8

const (
	notQuoted quoting = iota
	inQuotes
	inCode
)

// quotes has the quoted parts of a text, in order and apart from each other.
type quotes []quotedPart

type quotedPart struct {
	from, to int
	as       quoting
}

// at returns how the text at a place is quoted.
func (q *quotes) at(i int) quoting {
	for len(*q) > 0 && (*q)[0].to <= i {
		*q = (*q)[1:]
	}
	if len(*q) > 0 && (*q)[0].from <= i {
		return (*q)[0].as
	}
	return notQuoted
}

// quotedIn returns the parts of a text that are code or quoted: fences, indented lines outside of a paragraph, lines that begin
// with ">", and within a paragraph what stands between backticks or quotation marks. A mark that none closes quotes nothing.
func quotedIn(text string) *quotes {
	var found quotes
	if !strings.Contains(text, "@") {
		return &found
	}
	fence, paragraph := "", -1
	end := func(at int) { // of a paragraph
		if paragraph >= 0 {
			found = append(found, marksIn(text[paragraph:at], paragraph)...)
			paragraph = -1
		}
	}
	for from := 0; from < len(text); {
		to := len(text)
		if n := strings.IndexByte(text[from:], '\n'); n >= 0 {
			to = from + n + 1
		}
		line := strings.TrimSpace(text[from:to])
		switch mark := fenceOf(line); {
		case fence != "":
			found = append(found, quotedPart{from, to, inCode})
			if strings.HasPrefix(mark, fence) && mark == line {
				fence = ""
			}
		case mark != "":
			end(from)
			fence = mark
			found = append(found, quotedPart{from, to, inCode})
		case strings.HasPrefix(line, ">"):
			end(from)
			found = append(found, quotedPart{from, to, inQuotes})
		case line == "":
			end(from)
		case paragraph < 0 && isIndented(text[from:to]):
			found = append(found, quotedPart{from, to, inCode})
		case paragraph < 0:
			paragraph = from
		}
		from = to
	}
	end(len(text))
	return &found
}

// isIndented reports whether a line is code by its indentation.
func isIndented(line string) bool {
	return strings.HasPrefix(strings.TrimLeft(line, " "), "\t") || strings.HasPrefix(line, "    ")
}

// fenceOf returns the mark at the beginning of a line that begins or ends a fence; "" for none.
func fenceOf(line string) string {
	for _, c := range []string{"`", "~"} {
		if mark := line[:len(line)-len(strings.TrimLeft(line, c))]; len(mark) >= 3 && !(c == "`" && strings.Contains(line[len(mark):], "`")) {
			return mark
		}
	}
	return ""
}

// closing has the marks that close a quotation, by those that open one.
var closing = map[rune]string{'"': `"`, '\'': "'", '“': "”“", '„': "“”", '‘': "’", '‚': "‘’", '«': "»", '»': "«", '‹': "›"}

// marksIn returns what stands between backticks and quotation marks in a paragraph that begins at an offset.
func marksIn(text string, offset int) (found []quotedPart) {
	prev := ' '
	open := map[string]bool{} // marks that nothing closes, from some place on
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		until, as := 0, inQuotes
		switch {
		case strings.HasPrefix(text[i:], "\\`"): // an escaped backtick is none, and an escaped quotation mark is one
			n = 2
		case r == '`':
			n = len(text[i:]) - len(strings.TrimLeft(text[i:], "`"))
			if as = inCode; !open[text[i:i+n]] {
				until = codeEnd(text[i:], n)
				open[text[i:i+n]] = until == 0
			}
		case closing[r] != "" && !open[string(r)] && !unicode.IsLetter(prev) && !unicode.IsDigit(prev):
			until = quoteEnd(text[i:], n, closing[r])
			open[string(r)] = until == 0
		}
		if until > 0 {
			found = append(found, quotedPart{offset + i, offset + i + until, as})
			n = until
		}
		prev, _ = utf8.DecodeLastRuneInString(text[:i+n])
		i += n
	}
	return found
}

// codeEnd returns the end of code that begins with n backticks; 0 if nothing ends it.
func codeEnd(text string, n int) int {
	for i := n; i < len(text); {
		run := len(text[i:]) - len(strings.TrimLeft(text[i:], "`"))
		if run == n {
			return i + run
		}
		i += max(run, 1)
	}
	return 0
}

// quoteEnd returns the end of a quotation whose first mark has n bytes; 0 if nothing ends it. An apostrophe within a word ends
// none.
func quoteEnd(text string, n int, ends string) int {
	for i, r := range text[n:] {
		if !strings.ContainsRune(ends, r) {
			continue
		}
		end := n + i + utf8.RuneLen(r)
		if next, _ := utf8.DecodeRuneInString(text[end:]); !unicode.IsLetter(next) && !unicode.IsDigit(next) {
			return end
		}
	}
	return 0
}
