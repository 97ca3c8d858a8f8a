package queue

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/call/risk"
)

// Section is the part of the queue that a row is in.
type Section uint8

// The sections, in their order.
const (
	DueSoon Section = iota // it ends soon
	Stopped                // an agent does nothing else until it is decided
	CanWait
)

// String returns the heading of a section.
func (s Section) String() string {
	switch s {
	case DueSoon:
		return "Due soon"
	case Stopped:
		return "Agents are stopped on these"
	}
	return "Can wait"
}

// Bounds of what is due soon.
const (
	soon    = 2 * time.Hour   // before a deadline
	giveUp  = 3 * time.Minute // before an asker that waits gives up
	patient = time.Hour       // an asker that waits less than that gives up at its deadline, and did not choose one for people
)

// Fold says why messages are one row.
type Fold uint8

// The folds.
const (
	Single    Fold = iota // it is one message
	Identical             // the same call, several times
	Similar               // calls that are alike
)

// minSimilar is the number of similar calls from which on they are one row.
const minSimilar = 3

// Row is what is decided at one place.
type Row struct {
	Members []int // of the messages, the first asked first
	Fold    Fold
	Section Section

	Limit   capabilities.Time // the earliest; 0 for none
	Stopped bool              // of any
	Risk    risk.Level        // the highest
	Since   capabilities.Time // the earliest
}

// IsStopped reports whether who asked waits for the answer now, and does nothing else.
func IsStopped(m *view.Message) bool { return m.Permission != nil && m.AnswerNeeded }

// Rank returns the rows of messages that wait, in the order of the queue at a time.
func Rank(all []view.Message, r *Readings, now capabilities.Time) []Row {
	rows := make([]Row, 0, len(all))
	for _, members := range fold(all, r, now) {
		rows = append(rows, rowOf(all, members, r, now))
	}
	slices.SortStableFunc(rows, func(a, b Row) int { return compare(all, &a, &b) })
	return rows
}

func rowOf(all []view.Message, members folded, r *Readings, now capabilities.Time) Row {
	row := Row{Members: members.of, Fold: members.why, Section: CanWait}
	for _, i := range members.of {
		m := &all[i]
		if m.Deadline != 0 && (row.Limit == 0 || m.Deadline < row.Limit) {
			row.Limit = m.Deadline
		}
		if row.Since == 0 || m.Date < row.Since {
			row.Since = m.Date
		}
		if f := r.Of(m); f != nil {
			row.Risk = max(row.Risk, f.Risk)
		}
		row.Stopped = row.Stopped || IsStopped(m)
		if isDueSoon(m, now) {
			row.Section = DueSoon
		}
	}
	if row.Section != DueSoon && row.Stopped {
		row.Section = Stopped
	}
	return row
}

// GivesUp reports whether who asked waits now and gives up at the deadline, which is no deadline for people.
func GivesUp(m *view.Message) bool {
	return IsStopped(m) && m.Deadline != 0 && m.Deadline.Std().Sub(m.Date.Std()) < patient
}

// isDueSoon reports whether a message ends soon.
func isDueSoon(m *view.Message, now capabilities.Time) bool {
	if m.Deadline == 0 {
		return false
	}
	within := soon
	if GivesUp(m) {
		within = giveUp
	}
	return m.Deadline.Std().Sub(now.Std()) <= within
}

// compare orders two rows.
func compare(all []view.Message, a, b *Row) int {
	first, other := &all[a.Members[0]], &all[b.Members[0]]
	by := cmp.Compare(a.Section, b.Section)
	switch a.Section {
	case DueSoon:
		by = cmp.Or(by, cmp.Compare(a.Limit, b.Limit))
	case Stopped:
		by = cmp.Or(by, cmp.Compare(b.Risk, a.Risk), cmp.Compare(a.Since, b.Since))
	}
	return cmp.Or(by, cmp.Compare(a.Since, b.Since), first.MessageID.Compare(other.MessageID))
}

// folded are messages of one row.
type folded struct {
	of  []int
	why Fold
}

// alike is what calls of a row share.
type alike struct {
	caller    capabilities.ID // of whom a call is, if not of the asker
	from, to  capabilities.ID
	session   string // of a coding agent: its name
	folder    string
	risk      risk.Level
	identical string // the call; "" for similar ones
	key       string
	limit     capabilities.Time // of what is due soon
	answers   string            // the decisions that it takes, and whether it is a second vote
}

// fold returns the messages in rows. The work is one look at each and one place for each in a table.
func fold(all []view.Message, r *Readings, now capabilities.Time) []folded {
	var rows []folded
	identical := map[alike]int{}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return byDate(&all[a], &all[b]) })
	for _, i := range order {
		m := &all[i]
		f := r.Of(m)
		if f == nil || !folds(m) {
			rows = append(rows, folded{of: []int{i}})
			continue
		}
		key := alike{from: m.From, to: m.To, caller: m.Permission.Caller(), session: m.Permission.Session, identical: m.Permission.Call(), answers: answersOf(m)}
		if at, ok := identical[key]; ok {
			rows[at].of, rows[at].why = append(rows[at].of, i), Identical
			continue
		}
		identical[key] = len(rows)
		rows = append(rows, folded{of: []int{i}})
	}
	return foldSimilar(all, rows, r, now)
}

// foldSimilar makes one row of those that are similar, at the place of the first.
func foldSimilar(all []view.Message, rows []folded, r *Readings, now capabilities.Time) []folded {
	similar := map[alike][]int{}
	var keys []alike
	for at, row := range rows {
		m := &all[row.of[0]]
		f := r.Of(m)
		if f == nil || !folds(m) || f.Risk == risk.High || f.alike == "" {
			continue
		}
		key := alike{from: m.From, to: m.To, caller: m.Permission.Caller(), session: m.Permission.Session, folder: m.Permission.Folder, risk: f.Risk, key: f.alike, answers: answersOf(m)}
		if isDueSoon(m, now) {
			key.limit = m.Deadline
		}
		if similar[key] == nil {
			keys = append(keys, key)
		}
		similar[key] = append(similar[key], at)
	}
	for _, key := range keys {
		same, count := similar[key], 0
		for _, at := range same {
			count += len(rows[at].of)
		}
		if len(same) < 2 || count < minSimilar {
			continue
		}
		var members []int
		for _, at := range same {
			members, rows[at].of = append(members, rows[at].of...), nil
		}
		slices.SortFunc(members, func(a, b int) int { return byDate(&all[a], &all[b]) })
		rows[same[0]] = folded{members, Similar}
	}
	return slices.DeleteFunc(rows, func(row folded) bool { return len(row.of) == 0 })
}

func byDate(a, b *view.Message) int {
	return cmp.Or(cmp.Compare(a.Date, b.Date), a.MessageID.Compare(b.MessageID))
}

// folds reports whether a message may be in a row with others: an open call that one person decides.
func folds(m *view.Message) bool { return m.AnswerNeeded && m.Permission != nil && m.Votes == nil }

// answersOf returns the decisions that a message takes, as a key.
func answersOf(m *view.Message) string {
	var b strings.Builder
	if m.IsSecondVote() {
		b.WriteString("second ")
	}
	for _, f := range m.Fields {
		if f.Name != "decision" {
			continue
		}
		for _, o := range f.Options {
			b.WriteString(o.Value + " ")
		}
	}
	return b.String()
}

// Counts are the numbers of rows of a queue.
type Counts struct{ Rows, DueSoon, High int }

// Count counts rows.
func Count(rows []Row) (c Counts) {
	for _, r := range rows {
		c.Rows++
		if r.Section == DueSoon {
			c.DueSoon++
		}
		if r.Risk == risk.High {
			c.High++
		}
	}
	return c
}

// Differences returns what texts share at their beginning and end, in whole words, and what is between in each. Nothing of a
// text is lost.
func Differences(texts []string) (before string, parts []string, after string) {
	if len(texts) == 0 {
		return "", nil, ""
	}
	words := make([][]string, len(texts))
	for i, t := range texts {
		words[i] = strings.Fields(t)
	}
	share := func(at func(of []string, n int) string, most int) (n int) {
		for ; n < most; n++ {
			for _, w := range words {
				if at(w, n) != at(words[0], n) {
					return n
				}
			}
		}
		return n
	}
	shortest := len(words[0])
	for _, w := range words {
		shortest = min(shortest, len(w))
	}
	front := share(func(of []string, n int) string { return of[n] }, shortest)
	back := share(func(of []string, n int) string { return of[len(of)-1-n] }, shortest-front)
	for _, w := range words {
		parts = append(parts, strings.Join(w[front:len(w)-back], " "))
	}
	return strings.Join(words[0][:front], " "), parts, strings.Join(words[0][len(words[0])-back:], " ")
}

// SimilarLine returns similar calls in one line: what they share, and the first and the last of what differs.
func SimilarLine(facts []*Facts) string {
	if facts[0].Verb == "edit" || facts[0].Verb == "write" || facts[0].Verb == "read" {
		var names []string
		for _, f := range facts {
			file, _, _ := strings.Cut(f.Brief.Text(), " +")
			if name := path.Base(file); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		line := strings.Join(names[:min(len(names), 3)], ", ")
		switch more := len(names) - 3; {
		case more == 1:
			line += " +1 file"
		case more > 1:
			line += " +" + strconv.Itoa(more) + " files"
		}
		return line
	}
	texts := make([]string, len(facts))
	for i, f := range facts {
		texts[i] = f.Brief.Text()
	}
	before, parts, after := Differences(texts)
	differs := cmp.Or(parts[0], "…")
	if last := parts[len(parts)-1]; last != parts[0] {
		differs += " … " + last
	}
	return strings.Join(strings.Fields(before+" "+differs+" "+after), " ")
}
