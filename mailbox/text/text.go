package text

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/events"
)

// Part is a part of a message as its sender wrote it: words, or the path of a value under an edge name.
type Part struct {
	Words  string // of a reference, the reference as it was written
	Edge   string
	Path   string
	Quoted bool // words that would be a reference if they were not code, not in quotes, and no user of another system
}

// MaxEdges bounds the edges of a message.
const MaxEdges = 64

// Parse parses a message. @name and @edge:name at the beginning of a word refer to values, and \@ is a plain @. Any other @ is
// plain text: one within a word, as in an e-mail address, or without a name after it. So is all that is code or quoted: what
// stands in backticks, in a fence, in quotes or in a quoted line. There a text is spoken of, and nothing is handed over. Nor is it by
// @user@example.com, which names somebody else, of another system. A name
// here consists of letters, digits, "_", "-", "/" and inner dots; other names need a second name. An edge never begins with
// "@", as the standard edges do.
func Parse(text string) []Part {
	var (
		parts []Part
		words strings.Builder
		prev  = ' '
	)
	flush := func() {
		if words.Len() > 0 {
			parts = append(parts, Part{Words: words.String()})
			words.Reset()
		}
	}
	quoted := quotedIn(text)
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		in := quoted.at(i)
		switch {
		case r == '\\' && in != inCode && strings.HasPrefix(text[i+1:], "@"):
			words.WriteByte('@')
			prev, i = '@', i+2
			continue
		case r == '@' && beginsWord(prev, in):
			m, length := reference(text[i:])
			if length == 0 {
				break
			}
			flush()
			host := 0
			if rest := text[i+length:]; strings.HasPrefix(rest, "@") {
				host = nameLength(rest[1:], false)
			}
			if host > 0 {
				length += 1 + host
			}
			if m.Words = text[i : i+length]; in != notQuoted || host > 0 {
				m = Part{Words: m.Words, Quoted: true}
			}
			parts = append(parts, m)
			prev, i = 'x', i+length
			continue
		}
		words.WriteString(text[i : i+n])
		prev, i = r, i+n
	}
	if flush(); len(parts) == 0 {
		parts = append(parts, Part{})
	}
	return parts
}

// beginsWord reports whether a word may begin behind a character. In quotes and code it may begin behind their marks too.
func beginsWord(prev rune, in quoting) bool {
	return unicode.IsSpace(prev) || unicode.Is(unicode.Ps, prev) || strings.ContainsRune("<*,;–—", prev) || in != notQuoted && strings.ContainsRune("`'\"‘“«„‹", prev)
}

// Joined returns the text of parts as a message has it: runs of words are one, and a reference that names nothing is words.
func Joined(parts []Part) (all []Part) {
	for _, p := range parts {
		if n := len(all) - 1; p.Edge == "" && n >= 0 && all[n].Edge == "" {
			all[n].Words += p.Words
			continue
		}
		p.Quoted = false
		all = append(all, p)
	}
	return all
}

// References returns the references of a text by which a sent message has handed something over. Plain is what looks like one
// and was taken as text. Each stands once, as it was written.
func References(text string, spans []events.Span) (given, plain []string) {
	edges := map[string]bool{}
	for _, sp := range spans {
		edges[sp.Edge] = sp.Edge != ""
	}
	for _, p := range Parse(text) {
		list := &plain
		switch {
		case p.Edge != "" && edges[p.Edge]:
			list = &given
		case p.Edge == "" && !p.Quoted:
			continue
		}
		if !slices.Contains(*list, p.Words) && len(*list) < MaxEdges {
			*list = append(*list, p.Words)
		}
	}
	return given, plain
}

// reference parses @name or @edge:path at the start of text. Length 0 means that there is none.
func reference(text string) (m Part, length int) {
	first := nameLength(text[1:], false)
	if first == 0 {
		return m, 0
	}
	name := text[1 : 1+first]
	rest := text[1+first:]
	if !strings.HasPrefix(rest, ":") || strings.Contains(name, "/") {
		return Part{Edge: strings.TrimLeft(name[strings.LastIndexByte(name, '/')+1:], "@"), Path: name}, 1 + first
	}
	second := nameLength(rest[1:], true)
	if second == 0 {
		return Part{Edge: name, Path: name}, 1 + first
	}
	return Part{Edge: name, Path: rest[1 : 1+second]}, 1 + first + 1 + second
}

// nameLength returns the length of the name at the start of text, which may begin with "@" if special.
func nameLength(text string, special bool) int {
	end := 0
	for i, r := range text {
		switch {
		case r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r), end > 0 && unicode.IsMark(r), special && i == 0 && r == '@':
			end = i + utf8.RuneLen(r)
			continue
		case end > 0 && (r == '-' || r == '.' || r == '/' || r == '@' && text[i-1] == '/'):
			continue // part of the name if more of it follows
		}
		break
	}
	return end
}
