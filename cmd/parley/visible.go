package main

import (
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"parley/gateway"
)

// visible makes text from others safe to print on one line: what does not show itself, or would move the
// cursor, reorder the line or hide between letters, is written as an escape.
func visible(s string) string { return escape(s, "") }

// quoted is visible in quotes. What is within them can be told from what is around them.
func quoted(s string) string { return `"` + escape(s, `"\`) + `"` }

func escape(s, special string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return gateway.Hides(r) || r == utf8.RuneError || strings.ContainsRune(special, r) }) {
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
		case gateway.Hides(r):
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

// safeJSON escapes the same characters inside the strings of a JSON text. It means what it meant.
func safeJSON(text []byte) []byte {
	s := string(text)
	if !strings.ContainsFunc(s, gateway.Hides) {
		return text
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case !gateway.Hides(r) || r < 0x20: // control characters below 0x20 are layout here: strings have none
			b.WriteRune(r)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return []byte(b.String())
}
