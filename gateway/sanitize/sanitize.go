package sanitize

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
)

// Line makes text safe to read on one line.
func Line(s string) string { return escape(s, false) }

// Lines is Line for text that may have lines.
func Lines(s string) string { return escape(s, true) }

func escape(s string, lines bool) string {
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

// JSON escapes invisible characters within the strings of a JSON text. It keeps the meaning.
func JSON(text []byte) []byte {
	s := string(text)
	if !strings.ContainsFunc(s, Hides) {
		return text
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case !Hides(r) || r < 0x20: // control characters below 0x20 are layout here: strings have none
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

// maxName is how much of a name Name keeps, in characters.
const maxName = 40

// Name returns a name as one word of letters, digits and "-_.@", of 40 characters at most: nothing in it can read as more than a
// name within a sentence. It returns none for no name.
func Name(name, none string) string {
	word := []rune(strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_.@", r) {
			return r
		}
		return '_'
	}, name))
	switch {
	case len(word) == 0:
		return none
	case len(word) > maxName:
		return string(word[:maxName]) + "…"
	}
	return string(word)
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
