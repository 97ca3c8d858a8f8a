package main

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"parley/gateway/sanitize"
)

// visible makes text from others safe to print on one line: what does not show itself, or would move the
// cursor, reorder the line or hide between letters, is written as an escape.
func visible(s string) string { return escape(s, "") }

// quoted is visible in quotes. What is within them can be told from what is around them.
func quoted(s string) string { return `"` + escape(s, `"\`) + `"` }

func escape(s, special string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return sanitize.Hides(r) || r == utf8.RuneError || strings.ContainsRune(special, r) }) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case sanitize.Hides(r):
			fmt.Fprintf(&b, `\u{%x}`, r)
		case strings.ContainsRune(special, r):
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
		i += size
	}
	return b.String()
}
