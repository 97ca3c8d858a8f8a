package parley

import (
	"strconv"
	"strings"
	"unicode"

	"parley/capabilities"
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

// MaxCalled bounds what an agent calls itself where others read it, in characters.
const MaxCalled = 80

// Called returns what an agent calls itself, for one who has no name for it. Nothing in it can look like such a name: no quotation mark
// ends it. It returns "" for an agent that calls itself nothing, or by a word that means another to each reader, such as HOST.
func Called(itself string) string {
	words := strings.TrimSpace(Shown(itself, MaxCalled))
	if words == "" || capabilities.Special(words) != "" {
		return ""
	}
	return "“" + strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Quotation_Mark) || r == '`' {
			return '\''
		}
		return r
	}, words) + "” (as it calls itself)"
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
