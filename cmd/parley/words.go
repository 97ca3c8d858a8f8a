package main

import (
	"strings"

	"parley"
)

// splitWords splits a command line into words as a shell does, and understands quotes and backslashes alone. It starts no
// shell, and expands nothing.
func splitWords(line string) ([]string, error) {
	var (
		words []string
		word  strings.Builder
		begun bool
		quote rune // the one that is open; 0 for none
		plain bool // what comes next is taken as it is
	)
	for _, r := range line {
		switch {
		case plain:
			if quote == '"' && r != '"' && r != '\\' {
				word.WriteByte('\\')
			}
			word.WriteRune(r)
			plain = false
		case r == '\\' && quote != '\'':
			plain, begun = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, begun = r, true
		case strings.ContainsRune(" \t\n", r):
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if quote != 0 || plain {
		return nil, parley.Refuse(parley.InvalidArgument, "%q ends within a quotation", line)
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}

// joinWords writes words so that splitWords reads them again.
func joinWords(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = shellWord(w)
	}
	return strings.Join(quoted, " ")
}
