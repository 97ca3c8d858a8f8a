package rule

import (
	"encoding/json"
	"slices"

	"parley/events"
)

// Call is a call of a tool that permission is asked for.
type Call struct {
	Tool   string
	Input  string // a JSON document
	Folder string // where it is made, absolute; "" where nobody says
}

// Reading is a call as rules see it.
type Reading struct {
	call     Call
	essence  string
	commands [][]string // of its command line, where that is understood as a whole
	plain    bool       // a rule for commands may cover it: its tool runs lines, and nothing else is in its input
	bare     bool       // its input is a command line and perhaps its description
	files    []string   // that it is about, absolute
}

// Read reads a call. What it cannot understand only rules for the very call cover.
func Read(c Call) *Reading {
	r := &Reading{call: c, essence: essence(c), files: filesOf(c)}
	r.readLine()
	return r
}

// readLine reads the command line of a call that has one.
func (r *Reading) readLine() {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(r.call.Input), &fields) != nil {
		return
	}
	line, isText := textOf(fields["command"])
	commands, understood := parseLine(line)
	if !isText || !understood {
		return
	}
	r.commands, r.plain, r.bare = commands, runsLines(r.call.Tool), true
	for name, value := range fields {
		_, isText := textOf(value)
		switch {
		case name == "command":
		case name == "timeout" && isNumber(string(value)):
			r.bare = false
		case isText && r.plain && (name == "description" || name == "title"):
		default:
			r.plain, r.bare = false, false
		}
	}
}

// Exact returns the coverage of the very call.
func (r *Reading) Exact() events.Coverage {
	return events.Coverage{Kind: events.CoversCall, Folder: r.call.Folder, Input: r.essence}
}

// maxWords bounds the words of an offer, in bytes. What cannot be said in fewer is not offered.
const maxWords = 600

// Offers returns the wider rules that may be chosen for the call, from the narrowest to the widest. Each covers the
// call, and no two are put into the same words. Where nobody says in which folder the call is made, there are none.
func (r *Reading) Offers() []events.Coverage {
	var offers []events.Coverage
	if r.call.Folder == "" || !isShowable(r.call.Folder) {
		return nil
	}
	if patterns, ok := r.patterns(); ok {
		offers = append(offers, events.Coverage{Kind: events.CoversCommands, Folder: r.call.Folder, Commands: patterns})
	}
	if len(r.files) == 1 {
		offers = append(offers, fileOffers(r.call.Folder, r.files[0])...)
	}
	return slices.DeleteFunc(offers, func(c events.Coverage) bool { return len(Words(&c)) > maxWords })
}

// patterns returns a pattern for each simple command of the call's line, if each has one.
func (r *Reading) patterns() ([]events.CommandPattern, bool) {
	var all []events.CommandPattern
	if !r.plain {
		return nil, false
	}
	for _, words := range r.commands {
		p, ok := patternFor(words, r.call.Folder)
		if !ok {
			return nil, false
		}
		if !slices.ContainsFunc(all, func(q events.CommandPattern) bool { return coversSame(&p, &q) }) {
			all = append(all, p)
		}
	}
	return all, len(all) > 0
}

func coversSame(a, b *events.CommandPattern) bool {
	return slices.Equal(a.Words, b.Words) && slices.Equal(a.Options, b.Options) && a.Operands == b.Operands
}

// Standing is a standing rule as it is matched.
type Standing struct {
	Covers *events.Coverage // nil for a rule of before there were coverages
	Shape  string           // of such a rule
	Allow  bool
}

// Decision is what standing rules say of a call.
type Decision struct {
	Rules []int // those that decide it, by their place in the list; none if nothing is decided
	Allow bool
	Stale int // the first rule that would have allowed it, and is wider than what was shown; -1 if there is none
}

// Decide returns what the rules for a call's tool say of it. A rule that denies the call, or a command of its line,
// goes before all that allow. Else one rule covers the whole call, or one each covers every command of its line.
func (r *Reading) Decide(rules []Standing) Decision {
	d := Decision{Stale: -1}
	for i := range rules {
		if !rules[i].Allow && r.touches(&rules[i]) {
			return Decision{Rules: []int{i}, Stale: -1}
		}
		if rules[i].Allow && d.Stale < 0 && IsStale(&rules[i]) && r.hasShape(rules[i].Shape) {
			d.Stale = i
		}
	}
	if i := slices.IndexFunc(rules, func(s Standing) bool { return s.Allow && !IsStale(&s) && r.matches(&s) }); i >= 0 {
		d.Rules, d.Allow = []int{i}, true
		return d
	}
	if !r.plain {
		return d
	}
	var used []int
	for _, words := range r.commands {
		i := slices.IndexFunc(rules, func(s Standing) bool { return s.Allow && r.coversPart(&s, words) })
		if i < 0 {
			return d
		}
		if !slices.Contains(used, i) {
			used = append(used, i)
		}
	}
	d.Rules, d.Allow = used, true
	return d
}

// matches reports whether a rule covers the whole call.
func (r *Reading) matches(s *Standing) bool {
	c := s.Covers
	switch {
	case c == nil:
		return r.hasShape(s.Shape)
	case c.Kind == events.CoversCall:
		return c.Input == r.essence && c.Folder == r.call.Folder
	case c.Kind == events.CoversFile, c.Kind == events.CoversFiles:
		return len(r.files) > 0 && !slices.ContainsFunc(r.files, func(file string) bool { return !coversFile(c, file) })
	}
	return r.plain && !slices.ContainsFunc(r.commands, func(words []string) bool { return !r.coversPart(s, words) })
}

// coversPart reports whether a rule for commands covers one of a line.
func (r *Reading) coversPart(s *Standing, words []string) bool {
	c := s.Covers
	if c == nil || c.Kind != events.CoversCommands || c.Folder != r.call.Folder {
		return false
	}
	return slices.ContainsFunc(c.Commands, func(p events.CommandPattern) bool { return coversCommand(&p, words, c.Folder) })
}

// touches reports whether a rule that denies covers the call, or a part of it.
func (r *Reading) touches(s *Standing) bool {
	switch {
	case r.matches(s):
		return true
	case s.Covers == nil:
		return slices.ContainsFunc(r.commands, func(words []string) bool { return isShapeOf(s.Shape, words) })
	case s.Covers.Kind == events.CoversCommands:
		return slices.ContainsFunc(r.commands, func(words []string) bool { return r.coversPart(s, words) })
	case s.Covers.Kind == events.CoversCall:
		return false
	}
	return slices.ContainsFunc(r.files, func(file string) bool { return coversFile(s.Covers, file) })
}
