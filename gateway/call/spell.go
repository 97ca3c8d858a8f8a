package call

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"parley/capabilities"
)

// maxMarks bounds the marks on a letter. No language needs more; many more cover the letters around.
const maxMarks = 4

// Spelled returns a text in which what looks like something else is spelled out. In a word with Latin letters, those are the
// look-alikes from other scripts. Everywhere they are letters and digits in other forms, such as bold ones, and what chooses
// the form of a character that has none. Marks on a letter that are too many are told by their number. It leaves what people
// write in prose: blanks that do not break, dashes, and the wide characters of Chinese and Japanese.
func Spelled(text string) string { return spelled(text, false) }

// spelledExactly is Spelled for a text of which each character counts, such as a command line or a path. There all blanks but
// the common ones are spelled out, and all punctuation that looks like another.
func spelledExactly(text string) string { return spelled(text, true) }

func spelled(text string, exactly bool) string {
	if strings.IndexFunc(text, func(r rune) bool { return r > unicode.MaxASCII }) < 0 {
		return text
	}
	var b strings.Builder
	before := ' '
	for text != "" {
		n := strings.IndexFunc(text, func(r rune) bool { return !isPart(r) })
		if n == 0 {
			r, size := utf8.DecodeRuneInString(text)
			next, _ := utf8.DecodeRuneInString(text[size:])
			writeSpelled(&b, text[:size], isAlike(r, exactly) || exactly && isDash(r) && isOption(before, next))
			before, text = r, text[size:]
			continue
		}
		if n < 0 {
			n = len(text)
		}
		spellWord(&b, text[:n], before, exactly)
		before, _ = utf8.DecodeLastRuneInString(text[:n])
		text = text[n:]
	}
	return b.String()
}

func isPart(r rune) bool { return unicode.IsLetter(r) || unicode.IsMark(r) }

// spellWord writes a run of letters and marks that follows a character.
func spellWord(b *strings.Builder, word string, before rune, exactly bool) {
	mixed := capabilities.MixesScripts(word) || strings.ContainsFunc(word, isLatin) && strings.ContainsFunc(word, isRare)
	for word != "" {
		if marks := len(word) - len(strings.TrimLeftFunc(word, unicode.IsMark)); marks > 0 {
			switch count := utf8.RuneCountInString(word[:marks]); {
			case count > maxMarks:
				fmt.Fprintf(b, " ⋯ %d marks ⋯ ", count)
			default:
				for _, r := range word[:marks] {
					writeSpelled(b, string(r), unicode.Is(unicode.Variation_Selector, r) && (before <= unicode.MaxASCII || unicode.IsLetter(before)))
				}
			}
			before, word = ' ', word[marks:]
			continue
		}
		r, size := utf8.DecodeRuneInString(word)
		writeSpelled(b, word[:size], mixed && !isLatin(r) || isAlike(r, exactly) || exactly && isRare(r))
		before, word = r, word[size:]
	}
}

func writeSpelled(b *strings.Builder, character string, out bool) {
	r, _ := utf8.DecodeRuneInString(character)
	if out {
		fmt.Fprintf(b, `\u{%x}`, r)
		return
	}
	b.WriteString(character)
}

func isLatin(r rune) bool { return unicode.Is(unicode.Latin, r) }

// isRare reports whether a letter is of a script of which many letters look like Latin ones, and which few people write.
func isRare(r rune) bool {
	return unicode.In(r, unicode.Cherokee, unicode.Coptic, unicode.Deseret, unicode.Gothic, unicode.Lisu, unicode.Osage)
}

// alikeExactly has characters that look like ASCII ones and are no form of these, by Unicode's list of confusable characters
// (UTS #39).
const alikeExactly = "‐‑−∕⁄ǀ∣∼∗∶։ıȷ·‚"

// isAlike reports whether a character looks like an ASCII one.
func isAlike(r rune, exactly bool) bool {
	if r <= unicode.MaxASCII {
		return false
	}
	if exactly && (unicode.IsSpace(r) || unicode.Is(unicode.Zs, r) || strings.ContainsRune(alikeExactly, r)) {
		return true
	}
	switch {
	case unicode.In(r, unicode.No, unicode.So, unicode.Lm): // raised and circled ones look otherwise
		return false
	case r == 'ª', r == 'º', unicode.IsSpace(r):
		return false
	case !exactly && r >= '\uff00' && r < '\U00010000': // wide ones
		return false
	}
	plain := norm.NFKC.String(string(r))
	return len(plain) == 1 && plain[0] <= unicode.MaxASCII
}

// isDash reports whether a character is a dash of prose, which looks like a hyphen.
func isDash(r rune) bool { return '‒' <= r && r <= '―' }

// isOption reports whether a dash between two characters begins what looks like an option of a command.
func isOption(before, next rune) bool {
	return unicode.IsSpace(before) && (isDash(next) || next == '-' || next <= unicode.MaxASCII && unicode.IsLetter(next))
}
