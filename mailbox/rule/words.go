package rule

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"parley/events"
)

// VeryCall returns the words of the rule for the very call, which are shown beside the call.
func VeryCall(folder string) string { return "exactly this call" + Where(folder) }

// Words describes a coverage in words.
func Words(c *events.Coverage) string {
	switch c.Kind {
	case events.CoversCall:
		return exactly(c.Input) + Where(c.Folder)
	case events.CoversCommands:
		all := make([]string, len(c.Commands))
		for i := range c.Commands {
			all[i] = phrase(&c.Commands[i])
		}
		return strings.Join(all, "; ") + Where(c.Folder)
	case events.CoversFile:
		return "any input for the file " + c.File + Where(c.Folder)
	case events.CoversFiles:
		return "any input for files " + c.Glob + " that are not hidden" + Where(c.Folder)
	case events.CoversTool:
		return "any input" + Where(c.Folder)
	}
	return fmt.Sprintf("%q, which this program does not know", string(c.Kind))
}

// exactly describes an input in words: a command line as it is, any other input as JSON, and a long one by its digest.
func exactly(input string) string {
	if digest, ok := strings.CutPrefix(input, digestMark); ok {
		return "exactly the long input with the SHA-256 digest " + digest
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(input), &fields) == nil && len(fields) == 1 {
		if line, ok := textOf(fields["command"]); ok {
			return "exactly: " + line
		}
	}
	return "exactly the input " + input
}

// Where describes a folder in words, as they follow those of what a rule covers. A call without a folder may be made anywhere.
func Where(folder string) string {
	switch {
	case folder == "":
		return ""
	case isShowable(folder):
		return ", in " + folder
	}
	return ", in " + strconv.QuoteToGraphic(folder)
}

func isShowable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// phrase describes a pattern in words.
func phrase(p *events.CommandPattern) string {
	words := make([]string, len(p.Words))
	for i, w := range p.Words {
		if words[i] = w; !isBare(w) {
			words[i] = strconv.Quote(w) // a word of several, or of none
		}
	}
	said := strings.Join(words, " ")
	if n := len(p.Words); n > 2 && (p.Words[n-2] == "push" || p.Words[n-2] == "fetch") {
		preposition := map[string]string{"push": " to ", "fetch": " from "}[p.Words[n-2]]
		said = strings.Join(words[:n-1], " ") + preposition + words[n-1]
	}
	if noun := noun(p.Operands); noun != "" {
		said += ", " + noun
	}
	if len(p.Options) == 0 {
		return said + ", without options"
	}
	return said + ", with options for display"
}

func noun(operands string) string {
	switch operands {
	case noOperands:
		return ""
	case names:
		return "any names"
	case branches:
		return "any branches or tags"
	case revisions:
		return "any revisions or files that are not hidden"
	case paths:
		return "any files that are not hidden"
	case texts:
		return "any text in files that are not hidden"
	}
	return strconv.Quote(operands)
}
