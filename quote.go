package parley

import (
	"strconv"
	"strings"
	"unicode"
)

// Shown returns text from outside as a message may hold it: cut to a number of characters, on one line, and with
// invisible characters escaped.
func Shown(s string, limit int) string {
	s = strings.ToValidUTF8(Cut(s, limit), "\uFFFD")
	if !strings.ContainsFunc(s, IsInvisible) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if IsInvisible(r) {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Quoted returns Shown within quotation marks.
func Quoted(s string, limit int) string { return `"` + Shown(s, limit) + `"` }

// Cut returns the first characters of a text, with an ellipsis if there are more.
func Cut(s string, limit int) string {
	n := 0
	for i := range s {
		if n == limit {
			return s[:i] + "…"
		}
		n++
	}
	return s
}

// IsInvisible reports whether a rune leaves no mark of its own. Those are controls, spaces other than the plain one,
// bidi and zero-width characters, fillers and variation selectors.
func IsInvisible(r rune) bool {
	return !unicode.IsPrint(r) || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
