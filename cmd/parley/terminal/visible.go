package terminal

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"parley/gateway/sanitize"
)

// Visible returns text from others as it is safe to print on one line. Characters that do not show, move the cursor,
// reorder the line or are invisible are written as escapes.
func Visible(s string) string { return escape(s, "") }

// Quoted returns Visible text in double quotes, in which quotes and backslashes are escaped.
func Quoted(s string) string { return `"` + escape(s, `"\`) + `"` }

// JSON returns a JSON document in which the characters that hide are escaped.
func JSON(doc []byte) []byte { return sanitize.JSON(doc) }

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
