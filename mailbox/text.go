package mailbox

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"parley"
	"parley/events"
)

// TextPart is a part of a message as its sender wrote it: words, or the path of a value under an edge name.
type TextPart struct {
	Words string
	Edge  string
	Path  string
}

const maxEdges = 64

// ParseText parses a message. @name and @edge:name refer to values, and \@ is a plain @. An @ within a word, as in an
// e-mail address, or without a name after it is plain text. A name here consists of letters, digits, "_", "-", "/" and
// inner dots; other names need a second name. An edge never begins with "@", as the standard edges do.
// It refuses with INVALID_ARGUMENT an edge that stands for two values.
func ParseText(text string) ([]TextPart, error) {
	var (
		parts []TextPart
		words strings.Builder
		edges = map[string]string{} // the path by edge
		prev  rune
	)
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == '\\' && strings.HasPrefix(text[i+1:], "@"):
			words.WriteByte('@')
			prev, i = '@', i+2
			continue
		case r == '@' && !inWord(prev):
			m, length := reference(text[i:])
			if length == 0 {
				break
			}
			if path, ok := edges[m.Edge]; ok && path != m.Path || !ok && len(edges) == maxEdges {
				return nil, parley.Refuse(parley.InvalidArgument, "the message has two values under @%.80s, or more than %d in all", m.Edge, maxEdges).
					WithHint("give each an edge name of its own: @edge:name")
			}
			edges[m.Edge] = m.Path
			if words.Len() > 0 {
				parts = append(parts, TextPart{Words: words.String()})
				words.Reset()
			}
			parts = append(parts, m)
			prev, i = 'x', i+length
			continue
		}
		words.WriteString(text[i : i+n])
		prev, i = r, i+n
	}
	if words.Len() > 0 || len(parts) == 0 {
		parts = append(parts, TextPart{Words: words.String()})
	}
	return parts, nil
}

func inWord(r rune) bool {
	return r == '_' || r == '@' || unicode.IsLetter(r) || unicode.IsDigit(r)
}

// reference parses @name or @edge:path at the start of text. Length 0 means that there is none.
func reference(text string) (m TextPart, length int) {
	first := nameLength(text[1:], false)
	if first == 0 {
		return m, 0
	}
	name := text[1 : 1+first]
	rest := text[1+first:]
	if !strings.HasPrefix(rest, ":") || strings.Contains(name, "/") {
		return TextPart{Edge: strings.TrimLeft(name[strings.LastIndexByte(name, '/')+1:], "@"), Path: name}, 1 + first
	}
	second := nameLength(rest[1:], true)
	if second == 0 {
		return TextPart{Edge: name, Path: name}, 1 + first
	}
	return TextPart{Edge: name, Path: rest[1 : 1+second]}, 1 + first + 1 + second
}

// nameLength returns the length of the name at the start of text, which may begin with "@" if special.
func nameLength(text string, special bool) int {
	end := 0
	for i, r := range text {
		switch {
		case r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r), special && i == 0 && r == '@':
			end = i + utf8.RuneLen(r)
			continue
		case end > 0 && (r == '-' || r == '.' || r == '/' || r == '@' && text[i-1] == '/'):
			continue // part of the name if more of it follows
		}
		break
	}
	return end
}

func words(spans []events.Span) []string {
	var ws []string
	for _, s := range spans {
		ws = append(ws, s.Words)
	}
	return ws
}

// ShowText returns a message's text for people, with @edge for each value.
func ShowText(spans []events.Span) string {
	if len(spans) == 1 && spans[0].Edge == "" { // the common case needs no copy
		return spans[0].Words
	}
	var b strings.Builder
	for _, s := range spans {
		b.WriteString(s.Words)
		if s.Edge != "" {
			b.WriteString("@" + s.Edge)
		}
	}
	return b.String()
}
