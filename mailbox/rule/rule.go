package rule

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"parley"
	"parley/events"
)

// Reading is a parsed call, ready to be matched with rules.
type Reading struct {
	call     *parley.Permission
	essence  string
	commands [][]string // of its command line, if that is understood
	plain    bool       // its tool runs command lines and its input has nothing else: rules for commands may cover it
	bare     bool       // its input is a command line, perhaps with a description
	files    []string   // that the call is about, absolute
}

// Read parses the call of a permission. A call that it does not understand is covered by rules for that very call alone.
func Read(c *parley.Permission) *Reading {
	r := &Reading{call: c, essence: essence(c), files: filesOf(c)}
	r.readLine()
	return r
}

// maxParts bounds the input of a call that several rules may allow together, in bytes: the use of each of them is
// recorded with the input.
const maxParts = 16 << 10

// readLine parses the command line of a call, if it has one.
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
	short := len(r.call.Input) <= maxParts
	r.commands, r.plain, r.bare = commands, short && runsLines(r.call.Tool), short
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

// ID returns a short name of a coverage: its kind, and digits of the digest of what it covers.
func ID(c *events.Coverage) string {
	text, err := json.Marshal(c)
	if err != nil { // a structure of texts always has a JSON form
		panic(err)
	}
	sum := sha256.Sum256(text)
	return string(c.Kind) + "-" + hex.EncodeToString(sum[:8])
}

// maxWords bounds the words of an offer, in bytes. A rule with more words is not offered.
const maxWords = 600

// Offers returns the wider rules to choose from, from the narrowest to the widest. Each covers the call, and no two
// have the same words. A call without a folder has none.
func (r *Reading) Offers() []events.Coverage {
	var offers []events.Coverage
	if r.call.Folder == "" || !isShowable(r.call.Folder) {
		return nil
	}
	if patterns, ok := r.patterns(); ok {
		offers = append(offers, events.Coverage{Kind: events.CoversCommands, Folder: r.call.Folder, Commands: patterns})
	}
	if len(r.files) == 1 {
		offers = append(offers, fileOffers(r.call.Folder, r.call.Tool, r.files[0])...)
	}
	return slices.DeleteFunc(offers, func(c events.Coverage) bool { return len(Words(&c)) > maxWords })
}

// patterns returns a pattern for each simple command of the call's line; none unless each has one.
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

// Equal reports whether two rules cover the same calls in the same way.
func Equal(a, b *events.Coverage) bool {
	return a.Kind == b.Kind && a.Folder == b.Folder && a.Input == b.Input && a.File == b.File && a.Glob == b.Glob &&
		slices.EqualFunc(a.Commands, b.Commands, func(a, b events.CommandPattern) bool { return coversSame(&a, &b) })
}

func coversSame(a, b *events.CommandPattern) bool {
	return slices.Equal(a.Words, b.Words) && slices.Equal(a.Options, b.Options) && a.Operands == b.Operands
}

// Standing is a standing rule as Decide matches it.
type Standing struct {
	Covers *events.Coverage
	Allow  bool
}

// Decision is the decision of standing rules about a call.
type Decision struct {
	Rules []int // indexes of the deciding rules; none if nothing is decided
	Allow bool
}

// Decide returns the decision of the rules for a call's tool. A rule that denies the call, or a command of its line,
// precedes all that allow. A call is allowed by one rule that covers it, or by rules that cover all commands of its
// line.
func (r *Reading) Decide(rules []Standing) Decision {
	var d Decision
	for i := range rules {
		if !rules[i].Allow && r.touches(&rules[i]) {
			return Decision{Rules: []int{i}}
		}
	}
	if i := slices.IndexFunc(rules, func(s Standing) bool { return s.Allow && r.matches(&s) }); i >= 0 {
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

// MayConcern reports whether a rule that covers something may have a part in a decision about the call: one for another very call
// has none.
func (r *Reading) MayConcern(c *events.Coverage) bool {
	return c.Kind != events.CoversCall || c.Input == r.essence && c.Folder == r.call.Folder
}

// matches reports whether a rule covers the whole call.
func (r *Reading) matches(s *Standing) bool {
	c := s.Covers
	switch {
	case c.Kind == events.CoversCall:
		return r.MayConcern(c)
	case c.Kind == events.CoversTool:
		return c.Folder == r.call.Folder
	case c.Kind == events.CoversFile, c.Kind == events.CoversFiles:
		return len(r.files) > 0 && !slices.ContainsFunc(r.files, func(file string) bool { return !coversFile(c, file) || s.Allow && !mayAllow(c, r.call.Tool, file) })
	}
	return r.plain && !slices.ContainsFunc(r.commands, func(words []string) bool { return !r.coversPart(s, words) })
}

// coversPart reports whether a rule for commands covers one command of a line.
func (r *Reading) coversPart(s *Standing, words []string) bool {
	c := s.Covers
	if c.Kind != events.CoversCommands || c.Folder != r.call.Folder {
		return false
	}
	return slices.ContainsFunc(c.Commands, func(p events.CommandPattern) bool { return coversCommand(&p, words, c.Folder) })
}

// touches reports whether a rule covers the call, or a command of its line.
func (r *Reading) touches(s *Standing) bool {
	switch {
	case r.matches(s):
		return true
	case s.Covers.Kind == events.CoversCommands:
		return slices.ContainsFunc(r.commands, func(words []string) bool { return r.coversPart(s, words) })
	case s.Covers.Kind == events.CoversCall, s.Covers.Kind == events.CoversTool:
		return false
	}
	return slices.ContainsFunc(r.files, func(file string) bool { return coversFile(s.Covers, file) })
}
