package gateway

import (
	"fmt"
	"strings"
	"unicode"
)

// seen makes text from others safe to read on one line: what does not show itself, or would reorder the line or hide
// between letters, stands as an escape. Markup is the templates' care.
func seen(s string) string { return escapeUnseen(s, false) }

// seenLines is seen for text that may have lines.
func seenLines(s string) string { return escapeUnseen(s, true) }

func escapeUnseen(s string, lines bool) string {
	hidden := func(r rune) bool { return Hides(r) && (!lines || r != '\n' && r != '\t') }
	s = strings.ToValidUTF8(s, "\uFFFD")
	if lines {
		s = strings.ReplaceAll(s, "\r\n", "\n")
	}
	if !strings.ContainsFunc(s, hidden) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if hidden(r) {
			fmt.Fprintf(&b, `\u{%x}`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Hides reports whether a character is one that a reader does not see for what it is: a control character, one that
// reorders a line, or one of no width.
func Hides(r rune) bool {
	if r < 0x7f {
		return r < 0x20
	}
	switch {
	case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp):
		return true
	case unicode.Is(unicode.Noncharacter_Code_Point, r), unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
		return true
	case unicode.Is(unicode.Variation_Selector, r):
		return r != 0xfe0e && r != 0xfe0f // these two choose between text and emoji
	}
	return r == 0x2800 // braille without dots
}
