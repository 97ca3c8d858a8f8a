package shell

import (
	"strings"

	"parley"
)

// Split splits a command line into words as a shell does. It understands quotes and backslashes, and expands nothing.
func Split(line string) ([]string, error) {
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

// Join returns a command line that Split, and a shell, read as these words.
func Join(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = Word(w)
	}
	return strings.Join(quoted, " ")
}

// Word returns an argument as a shell reads it, in quotes where it needs them.
func Word(s string) string {
	plain := s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+,=", r)
	})
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
