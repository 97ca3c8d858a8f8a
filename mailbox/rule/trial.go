package rule

import (
	"encoding/json"
	"path"
	"strings"

	"parley"
	"parley/events"
)

// Tried is a rule that is tried on many calls of the past. It reads of each call no more than it needs: of most it sees that they lack a
// word of the rule. That is a fraction of what Read does.
type Tried struct {
	standing Standing
	needles  [][]string // a call that it covers has all words of one of these, but for quotes; none if that is not known
}

// Prepare prepares a rule to be tried.
func Prepare(s Standing) *Tried {
	t := &Tried{standing: s}
	switch c := s.Covers; c.Kind {
	case events.CoversCall:
		var fields map[string]json.RawMessage
		if json.Unmarshal([]byte(c.Input), &fields) == nil {
			if line := fields["command"]; len(line) > 1 && line[0] == '"' {
				t.add(string(line[1 : len(line)-1]))
			}
		}
	case events.CoversCommands:
		for _, p := range c.Commands {
			t.add(p.Words...)
		}
	case events.CoversFile:
		t.add(path.Base(c.File))
	}
	return t
}

// add adds words that a covered call may have. One that JSON can write in several ways is left out.
func (t *Tried) add(words ...string) {
	var known []string
	for _, w := range words {
		if bare, ok := unquoted(w); ok {
			known = append(known, bare)
		}
	}
	t.needles = append(t.needles, known)
}

// unquoted returns a text in JSON without the marks with which it and a shell quote. The words of a line that is understood are the
// same without these, so that what one has the other has too. It reports false if the text has other escapes.
func unquoted(text string) (string, bool) {
	if !strings.ContainsAny(text, `\'"`) {
		return text, true
	}
	b := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && (i+1 == len(text) || text[i+1] != '"' && text[i+1] != '\\'):
			return "", false
		case c == '\\':
			i++
		case c != '\'' && c != '"':
			b = append(b, c)
		}
	}
	return string(b), true
}

// Trial is a call of the past on which rules are tried.
type Trial struct {
	r           Reading
	line, files bool   // they were read
	bare        string // the input without quotes
	known       bool   // that is known
}

// Try begins a trial of a call.
func Try(c *parley.Permission) *Trial {
	t := &Trial{r: Reading{call: c}}
	t.bare, t.known = unquoted(c.Input)
	return t
}

// Covers reports whether a rule alone would have decided the call, as Decide with that rule does.
func (t *Trial) Covers(by *Tried) bool {
	s := &by.standing
	c := s.Covers
	if (c.Kind == events.CoversCall || c.Kind == events.CoversCommands) && c.Folder != t.r.call.Folder || !t.mayHave(by.needles) {
		return false
	}
	switch c.Kind {
	case events.CoversCall:
		if t.r.essence == "" {
			t.r.essence = essence(t.r.call)
		}
	case events.CoversCommands:
		if !t.line {
			t.line = true
			t.r.readLine()
		}
	default:
		if !t.files {
			t.files, t.r.files = true, filesOf(t.r.call)
		}
	}
	if s.Allow {
		return t.r.matches(s)
	}
	return t.r.touches(s)
}

// mayHave is false only if the call has not all words of any of the needles.
func (t *Trial) mayHave(needles [][]string) bool {
	if !t.known || len(needles) == 0 {
		return true
	}
	for _, words := range needles {
		all := true
		for _, w := range words {
			all = all && strings.Contains(t.bare, w)
		}
		if all {
			return true
		}
	}
	return false
}
