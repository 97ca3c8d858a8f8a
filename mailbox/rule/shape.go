package rule

import (
	"slices"
	"strings"
)

// Rules from before coverages existed have a shape: "exactly: " and an input, "command: " and a whole command, or
// "command: ", a program, its subcommand and "…". The last kind was wider than the words that were shown for it.

const (
	exactShape   = "exactly: "
	commandShape = "command: "
	prefixMark   = " …"
)

// IsStale reports whether a rule that allows is wider than the words that were shown for it. Such a rule decides
// nothing.
func IsStale(s *Standing) bool {
	return s.Allow && s.Covers == nil && strings.HasPrefix(s.Shape, commandShape) && strings.HasSuffix(s.Shape, prefixMark)
}

// hasShape reports whether a shape covers a call.
func (r *Reading) hasShape(shape string) bool {
	if input, ok := strings.CutPrefix(shape, exactShape); ok {
		return input == r.call.Input
	}
	return len(r.commands) == 1 && r.bare && isShapeOf(shape, r.commands[0])
}

// isShapeOf reports whether a shape covers a simple command.
func isShapeOf(shape string, words []string) bool {
	prefix, ok := strings.CutSuffix(shape, prefixMark)
	if ok && len(words) > 1 && prefix == commandShape+words[0]+" "+words[1] {
		return true
	}
	return shape == commandShape+strings.Join(words, " ") && !slices.ContainsFunc(words, isQuoted)
}

// isQuoted reports whether a word must have been quoted. No shape of a whole command has such a word.
func isQuoted(word string) bool { return !isBare(word) }
