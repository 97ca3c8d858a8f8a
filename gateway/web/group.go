package web

import (
	"context"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
	"parley/gateway/call"
	"parley/gateway/call/risk"
	"parley/gateway/queue"
	"parley/gateway/sanitize"
)

// Bounds of similar calls in one row. All of them are shown whole before they are decided, so a row has what a person can read.
const (
	maxSimilar      = 100
	maxSimilarBytes = 128 << 10 // of their inputs
	maxColumns      = 4         // of what differs; calls that differ in more are shown one below the other
	maxGroupRisks   = 20        // sentences
	farAbove        = 50        // times the median, from which on a number is marked
)

// partsOf returns the members of a row of the queue in rows that a page can show whole. A call with a large input is a row of its
// own.
func partsOf(messages []view.Message, of queue.Row) (parts [][]int) {
	if of.Fold == queue.Single {
		return [][]int{of.Members}
	}
	var last, alone [][]int
	size := 0
	for _, i := range of.Members {
		n := len(messages[i].Permission.Input)
		switch {
		case of.Fold == queue.Similar && n > maxInList:
			alone = append(alone, []int{i})
			continue
		case of.Fold == queue.Identical && len(last) > 0 && len(last[len(last)-1]) < api.MaxDecisions:
		case of.Fold == queue.Similar && len(last) > 0 && len(last[len(last)-1]) < maxSimilar && size+n <= maxSimilarBytes:
		default:
			last, size = append(last, nil), 0
		}
		last[len(last)-1] = append(last[len(last)-1], i)
		size += n
	}
	return append(last, alone...)
}

// foldOf returns why some messages are one row.
func foldOf(messages []view.Message, members []int) queue.Fold {
	if len(members) < 2 {
		return queue.Single
	}
	first := &messages[members[0]]
	for _, i := range members[1:] {
		if !messages[i].AsksSame(first) {
			return queue.Similar
		}
	}
	return queue.Identical
}

// group is similar calls as one item: what is the same is said once, and what differs is a column.
type group struct {
	Title   string
	Same    []call.Value // in all
	Columns []column     // nil if the members are shown one below the other
	Members []groupMember
	Notes   []string // on all
	Risks   risk.Findings
	More    int   // sentences on risks that are not among Risks
	Says    *says // what the agent says of all; nil if it says something else of each
	Marked  bool  // something is to be looked at in a member
}

// treeFolder is a folder with the files of it that calls change.
type treeFolder struct {
	Folder string
	Files  []treeFile
}

// treeFile leads to the change of a file.
type treeFile struct {
	Name, Key      string
	Added, Removed int
	IsNew          bool
}

// Tree returns the files that the calls change, by their folders in the order of the calls; nil if they do anything else, or change one.
func (g *group) Tree() (all []treeFolder) {
	if g == nil || g.Columns != nil {
		return nil
	}
	many := 0
	for _, m := range g.Members {
		b := slices.IndexFunc(m.Blocks, func(b drawnBlock) bool { return b.HasNumbers() && b.Path != "" })
		if b < 0 {
			return nil
		}
		block := m.Blocks[b]
		folder, name := path.Split(block.Path)
		at := slices.IndexFunc(all, func(f treeFolder) bool { return f.Folder == folder })
		if at < 0 {
			at, all = len(all), append(all, treeFolder{Folder: folder})
		}
		all[at].Files = append(all[at].Files, treeFile{Name: name, Key: m.Key, Added: block.Added, Removed: block.Removed, IsNew: block.Kind == call.File})
		many++
	}
	if many < 2 {
		return nil
	}
	return all
}

// column is a value that differs.
type column struct {
	Name    string
	Numbers bool
}

// says is what an agent says of a call.
type says struct{ Reason, Part, Session string }

// IsEmpty reports whether it says nothing.
func (s *says) IsEmpty() bool { return s == nil || *s == says{} }

// groupMember is one of similar calls.
type groupMember struct {
	ID, Digest   string
	Key, Address string // of its own card
	Form         string // the ID of the element that sends the decision
	Name         string // of the call among the others, in a line
	Date         capabilities.Time
	Cells        []cell
	Blocks       []drawnBlock // without columns
	Marks        []string     // of risks that others have not
	Look         string       // what is remarkable of its numbers
	Says         *says        // nil if it is said of all, or nothing is
}

// cell is a value of a column.
type cell struct {
	Text    string
	Missing bool
	Numbers bool
}

// Of returns the member as a page names it in a decision.
func (m groupMember) Of() string { return m.ID + " " + m.Digest }

// Digests returns the digests of all members.
func (g *group) Digests() string {
	all := make([]string, len(g.Members))
	for i, m := range g.Members {
		all[i] = m.Digest
	}
	return strings.Join(all, " ")
}

// similarTo returns the open calls that are one row with a message of an agent's mail, as the queue folds them now; nil if it is
// a row of its own.
func (p *page) similarTo(ctx context.Context, l local, e view.Message) []view.Message {
	if e.Permission == nil || !e.AnswerNeeded {
		return nil
	}
	waiting := p.waitingIn(ctx, l)
	for _, of := range queue.Rank(waiting, &p.site.readings, capabilities.At(time.Now())) {
		if of.Fold != queue.Similar {
			continue
		}
		for _, members := range partsOf(waiting, of) {
			if foldOf(waiting, members) == queue.Similar && slices.ContainsFunc(members, func(i int) bool { return waiting[i].MessageID == e.MessageID }) {
				return pick(waiting, members)
			}
		}
	}
	return nil
}

// groupOf returns the group of similar calls of an agent's mail, for the card with a key.
func groupOf(p *page, l local, key string, members []view.Message) *group {
	g := newGroup(members)
	for i := range g.Members {
		m := newRow(p.base, l, members[i], p.site.readings.Of(&members[i]))
		g.Members[i].Key, g.Members[i].Address, g.Members[i].Form = m.Key, m.Address(), key+"-ask"
	}
	return g
}

// newGroup reads similar calls.
func newGroup(members []view.Message) *group {
	g := &group{Members: make([]groupMember, len(members))}
	readings := make([]call.Reading, len(members))
	for i := range members {
		m := &members[i]
		readings[i] = call.Read(m.Permission)
		g.Members[i] = groupMember{ID: m.MessageID.String(), Digest: m.Digest, Date: m.Date, Name: readings[i].Line}
	}
	g.say(members)
	g.findRisks(readings)
	if !g.compare(readings) {
		g.Same, g.Columns, g.Notes = nil, nil, nil
		for i, r := range readings {
			g.Members[i].Blocks, g.Members[i].Cells, g.Members[i].Look = drawBlocks(wholeOf(r, members[i].Permission)), nil, ""
		}
	}
	g.Title = titleOf(readings[0], g)
	g.Marked = slices.ContainsFunc(g.Members, func(m groupMember) bool { return m.Look != "" || len(m.Marks) > 0 })
	return g
}

// wholeOf returns all blocks of a call. If they leave lines out, the input as it stands follows them.
func wholeOf(r call.Reading, p *parley.Permission) []call.Block {
	if r.LeftOut == 0 {
		return r.Blocks
	}
	note := fmt.Sprintf("%d lines are left out above. The whole input has them:", r.LeftOut)
	return append(slices.Clone(r.Blocks), call.Block{Kind: call.Values, Notes: []string{note}, Values: []call.Value{{Text: p.Input}}})
}

// titleOf returns what the calls do, in words.
func titleOf(first call.Reading, g *group) string {
	n := len(g.Members)
	switch first.Verb {
	case "edit", "write":
		return fmt.Sprintf("Make %d changes", n)
	case "read":
		return fmt.Sprintf("Read %d times", n)
	case "list":
		return fmt.Sprintf("List %d times", n)
	case "request":
		return fmt.Sprintf("Make %d requests", n)
	case "run":
		for _, v := range g.Same {
			if before, _, _ := strings.Cut(v.Text, " …"); v.Key == "command" && before != "" && before != "…" {
				return fmt.Sprintf("Run %s %d times", before, n)
			}
		}
		return fmt.Sprintf("Run %d commands", n)
	}
	return fmt.Sprintf("Call %s %d times", first.Object, n)
}

// say tells what the agent says of the calls: once, or at each.
func (g *group) say(members []view.Message) {
	all := make([]says, len(members))
	for i := range members {
		p := members[i].Permission
		all[i] = says{p.Reason, p.Part, p.Session}
	}
	if !slices.ContainsFunc(all, func(s says) bool { return s != all[0] }) {
		g.Says = &all[0]
		return
	}
	for i := range all {
		g.Members[i].Says = &all[i]
	}
}

// findRisks collects the sentences on what may go wrong, and marks the members whose marks are not those of all.
func (g *group) findRisks(readings []call.Reading) {
	seen := map[risk.Finding]bool{}
	first := readings[0].Risks.Marks()
	differ := slices.ContainsFunc(readings, func(r call.Reading) bool { return !slices.Equal(r.Risks.Marks(), first) })
	for i, r := range readings {
		if differ {
			g.Members[i].Marks = r.Risks.Marks()
		}
		for _, f := range r.Risks {
			if f.From, f.To = 0, 0; seen[f] {
				continue
			}
			seen[f] = true
			if len(g.Risks) == maxGroupRisks {
				g.More++
				continue
			}
			g.Risks = append(g.Risks, f)
		}
	}
}

// compare puts what differs into columns, and reports whether the calls can be shown by them: whole, with nothing folded.
func (g *group) compare(readings []call.Reading) bool {
	given := make([]map[string]string, len(readings))
	var keys []string
	for i, r := range readings {
		values, ok := valuesOf(r)
		if !ok || len(r.Blocks[0].Notes) != len(readings[0].Blocks[0].Notes) || !slices.Equal(r.Blocks[0].Notes, readings[0].Blocks[0].Notes) {
			return false
		}
		given[i] = map[string]string{}
		for _, v := range values {
			if _, twice := given[i][v.Key]; twice {
				return false
			}
			given[i][v.Key] = v.Text
			if !slices.Contains(keys, v.Key) {
				keys = append(keys, v.Key)
			}
		}
	}
	g.Notes = readings[0].Blocks[0].Notes
	for _, key := range keys {
		texts := make([]cell, len(given))
		for i := range given {
			text, ok := given[i][key]
			texts[i] = cell{Text: text, Missing: !ok}
		}
		if !slices.ContainsFunc(texts, func(c cell) bool { return c != texts[0] }) {
			g.Same = append(g.Same, call.Value{Key: key, Text: texts[0].Text})
			continue
		}
		if key == "command" {
			if shared := shorten(texts); shared != "" {
				g.Same = append(g.Same, call.Value{Key: key, Text: shared})
			}
		}
		g.add(column{Name: key}, texts)
	}
	return len(g.Columns) > 0 && len(g.Columns) <= maxColumns
}

// add appends a column, and marks what is remarkable of its numbers.
func (g *group) add(c column, cells []cell) {
	numbers := make([]float64, 0, len(cells))
	for _, one := range cells {
		if n, err := strconv.ParseFloat(one.Text, 64); err == nil && !one.Missing {
			numbers = append(numbers, n)
		}
	}
	c.Numbers = len(numbers) == len(cells)
	if c.Numbers {
		sorted := slices.Sorted(slices.Values(numbers))
		largest, median := sorted[len(sorted)-1], sorted[len(sorted)/2]
		for i, n := range numbers {
			switch {
			case median > 0 && n > farAbove*median:
				g.Members[i].Look = "Far above the others"
			case n == largest && largest > sorted[0] && g.Members[i].Look == "":
				g.Members[i].Look = "Largest"
			}
		}
	}
	g.Columns = append(g.Columns, c)
	for i := range cells {
		cells[i].Numbers = c.Numbers
		g.Members[i].Cells = append(g.Members[i].Cells, cells[i])
	}
}

// valuesOf returns a call that is short as keys with values: a command of one line, or a list of values. It reports false for any
// other.
func valuesOf(r call.Reading) (values []call.Value, ok bool) {
	if len(r.Blocks) == 0 || len(r.Blocks) > 2 || r.LeftOut > 0 {
		return nil, false
	}
	for i, b := range r.Blocks {
		switch {
		case b.Path != "", i > 0 && (b.Kind != call.Values || len(b.Notes) > 0 || b.Says != ""), b.Kind == call.Command && len(b.Lines) != 1, b.Kind != call.Command && len(b.Lines) > 0, b.Kind == call.Diff, b.Kind == call.File:
			return nil, false
		case b.Kind == call.Command:
			values = append(values, call.Value{Key: "command", Text: b.Lines[0].Text()})
		}
		if b.Says != "" {
			values = append(values, call.Value{Key: "says", Text: "“" + b.Says + "”"})
		}
		values = append(values, b.Values...)
	}
	return values, !slices.ContainsFunc(values, func(v call.Value) bool { return v.Key == "" || v.Key != "command" && v.IsLong() })
}

// shorten takes what commands share at their beginning and end out of them, in whole words, and returns it around an ellipsis. Commands
// with other blanks than single spaces stay whole, so that two that differ never look alike.
func shorten(commands []cell) string {
	texts := make([]string, len(commands))
	for i, c := range commands {
		texts[i] = c.Text
		if c.Missing || c.Text != strings.Join(strings.Fields(c.Text), " ") {
			return ""
		}
	}
	before, parts, after := queue.Differences(texts)
	if before == "" && after == "" {
		return ""
	}
	for i := range commands {
		commands[i].Text = parts[i]
	}
	return strings.TrimSpace(before + " … " + after)
}

// onlyShared leaves of the rules that an approval offers those that all the calls offer, which one decision can make.
func (a *approval) onlyShared(members []view.Message) {
	if a.Rule == nil {
		return
	}
	isShared := func(id string) bool {
		for _, m := range members {
			if !slices.ContainsFunc(m.Permission.Offers, func(o parley.Offer) bool { return o.ID == id && isOffered(a.Permission.Offers, o) }) {
				return false
			}
		}
		return true
	}
	a.Rule.Choices = slices.DeleteFunc(slices.Clone(a.Rule.Choices), func(c choice) bool { return !isShared(c.Value) })
	if len(a.Rule.Choices) == 0 {
		a.Rule = nil
		return
	}
	if !slices.ContainsFunc(a.Rule.Choices, func(c choice) bool { return c.Chosen }) {
		a.Rule.Choices[0].Chosen = true
	}
}

// isOffered reports whether a rule is among others, and covers more than the very call.
func isOffered(all []parley.Offer, o parley.Offer) bool {
	return o.Rule.Kind != events.CoversCall && slices.ContainsFunc(all, func(own parley.Offer) bool { return reflect.DeepEqual(own, o) })
}

// Line returns the words of a member for screen readers.
func (m groupMember) Line() string {
	if len(m.Cells) > 0 {
		return sanitize.Line(m.Cells[0].Text)
	}
	return sanitize.Line(m.Name)
}
