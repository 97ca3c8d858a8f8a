package capabilities

// Nesting returns how deep objects and lists of a JSON text nest: 1 for {} and 0 for a scalar. It does not parse the
// text, so that a caller can bound the depth of hostile input first. The result for text that is not JSON is arbitrary.
func Nesting(text []byte) int {
	deepest, now, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			now++
			deepest = max(deepest, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return deepest
}
