package rule

import (
	"path"
	"slices"
	"strings"

	"parley/events"
)

// The kinds of operands in patterns.
const (
	noOperands = ""
	names      = "names"     // letters, digits, dots, dashes and underscores
	branches   = "branches"  // names with slashes: of branches and tags
	revisions  = "revisions" // branches, commits, expressions such as HEAD~1 and main..next, and paths
	paths      = "paths"     // files and folders in the call's folder that are not hidden
	texts      = "text"      // any text first, and then paths
)

// coversCommand reports whether a pattern matches a simple command in a folder.
func coversCommand(p *events.CommandPattern, words []string, folder string) bool {
	n := len(p.Words)
	if n == 0 || len(words) < n || !slices.Equal(words[:n], p.Words) {
		return false
	}
	operands := 0
	for rest := words[n:]; len(rest) > 0; {
		if strings.HasPrefix(rest[0], "-") {
			taken := takenBy(p.Options, rest)
			if taken == 0 {
				return false
			}
			rest = rest[taken:]
			continue
		}
		if !isOperand(p.Operands, operands, rest[0], folder) {
			return false
		}
		operands++
		rest = rest[1:]
	}
	return true
}

// takenBy returns the number of words of the option at the start of rest; 0 if it is not listed.
func takenBy(options, rest []string) int {
	for _, o := range options {
		if n := optionTakes(o, rest); n > 0 {
			return n
		}
	}
	return 0
}

// optionTakes returns the number of words of rest that match one option of events.CommandPattern.
func optionTakes(option string, rest []string) int {
	word := rest[0]
	if letters, ok := strings.CutPrefix(option, "-["); ok {
		letters = strings.TrimSuffix(letters, "]")
		given := word[1:]
		if given != "" && strings.Trim(given, letters) == "" {
			return 1
		}
		return 0
	}
	if name, ok := strings.CutSuffix(option, " N"); ok {
		if word == name && len(rest) > 1 && isNumber(rest[1]) {
			return 2
		}
		return 0
	}
	if prefix, ok := strings.CutSuffix(option, "N"); ok {
		if digits, ok := strings.CutPrefix(word, prefix); ok && isNumber(digits) {
			return 1
		}
		return 0
	}
	if word == option {
		return 1
	}
	return 0
}

func isNumber(s string) bool {
	return s != "" && len(s) < 10 && strings.Trim(s, "0123456789") == ""
}

// isOperand reports whether a word may be the operand of a pattern at an index.
func isOperand(kind string, number int, word, folder string) bool {
	switch kind {
	case names:
		return isName(word)
	case branches:
		return isRevision(word, "._-/")
	case revisions:
		return isRevision(word, "._-/@^~") || isPathIn(word, folder)
	case paths:
		return isPathIn(word, folder)
	case texts:
		return number == 0 || isPathIn(word, folder)
	}
	return false
}

// isName reports whether a word is a plain name. No program takes such a word for an option, a path or an address.
func isName(word string) bool {
	return word != "" && isAlnum(word[0]) && isOf(word, "._-")
}

// isRevision reports whether a word names a branch, tag or commit. Since git may take the word for a path, it must not
// lead out of the folder either.
func isRevision(word, marks string) bool {
	if word == "" || !isAlnum(word[0]) && word[0] != '@' || !isOf(word, marks) {
		return false
	}
	for part := range strings.SplitSeq(word, "/") {
		if part == "" || part[0] == '.' {
			return false
		}
	}
	return true
}

func isOf(word, marks string) bool {
	for i := range len(word) {
		if !isAlnum(word[i]) && strings.IndexByte(marks, word[i]) < 0 {
			return false
		}
	}
	return true
}

// isPathIn reports whether a word is a path within a folder, with no hidden part.
func isPathIn(word, folder string) bool {
	if folder == "" || folder == "/" || word == "" || word[0] == '+' { // some programs take "+" for an option
		return false
	}
	if path.IsAbs(word) {
		if word == folder {
			return true
		}
		rest, ok := strings.CutPrefix(word, folder+"/")
		if !ok {
			return false
		}
		word = strings.TrimSuffix(rest, "/")
	} else {
		word = strings.TrimSuffix(strings.TrimPrefix(word, "./"), "/")
	}
	return word == "" || word == "." || isPlainPath(word) && !isHidden(word)
}
