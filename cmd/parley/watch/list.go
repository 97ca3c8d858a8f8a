package watch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/show"
	"parley/cmd/parley/terminal"
	"parley/events"
	"parley/gateway/call/risk"
	"parley/gateway/people"
	"parley/gateway/queue"
)

// list has the rows of the inbox: what waits on top, in the order of the queue, and below that the rest, the newest first.
type list struct {
	items map[uint64]*view.Message
	order []uint64 // the rows, each by the number of its first message

	same  map[uint64][]uint64 // the numbers of the calls that are one row, by that of the row
	shown map[uint64][]uint64 // same, as it was drawn last: no key decides what came later
	rows  map[uint64]queue.Row

	waiting []view.Message // what waits, by number
	cells   map[int]int    // of the names of who asks, by the width of the terminal

	readings queue.Readings
	names    *people.Names
	only     filter
	query    string // only messages with this text, in lower case
}

// filter is what a list shows.
type filter uint8

// The filters, in the order in which a key goes through them.
const (
	everything filter = iota
	calls
	changes
	questions
	mail
	filters
)

func (f filter) String() string {
	return [...]string{"all", "calls", "changes", "questions", "mail"}[f]
}

// keeps reports whether the list shows a message.
func (l *list) keeps(e *view.Message) bool {
	f := l.readings.Of(e)
	isChange := f != nil && (f.Verb == "edit" || f.Verb == "write")
	switch l.only {
	case calls:
		if f == nil || isChange {
			return false
		}
	case changes:
		if !isChange {
			return false
		}
	case questions:
		if e.Type == string(events.Approval) || e.Type == "message" {
			return false
		}
	case mail:
		if e.Type != "message" {
			return false
		}
	}
	return l.query == "" || strings.Contains(strings.ToLower(l.textOf(e)), l.query)
}

// textOf returns what a search looks at.
func (l *list) textOf(e *view.Message) string {
	parts := []string{l.nameOf(e.From, e.Sender()), e.Title, e.Description, e.Subject, e.Text}
	return strings.Join(parts, " ")
}

// nameOf returns the name of an agent, not yet as it is safe to print.
func (l *list) nameOf(id capabilities.ID, pet string) string {
	if l.names == nil {
		return cmp.Or(pet, "an agent")
	}
	return l.names.Of(id, pet)
}

// arrange makes the rows. With again, what waits is in the order of the queue. Else the rows that are there stay where they are,
// so that nothing moves under a hand, and new ones come below.
func (l *list) arrange(now time.Time, again bool) {
	before := make(map[uint64]int, len(l.order))
	for i, n := range l.order {
		before[n] = i
	}
	var waiting []view.Message
	var rest []uint64
	for n, e := range l.items {
		switch {
		case !l.keeps(e):
		case waits(e):
			waiting = append(waiting, *e)
		default:
			rest = append(rest, n)
		}
	}
	slices.SortFunc(waiting, func(a, b view.Message) int { return cmp.Compare(a.Number, b.Number) })
	l.waiting, l.cells = waiting, map[int]int{}
	ranked := queue.Rank(waiting, &l.readings, capabilities.At(now))
	l.same, l.rows = make(map[uint64][]uint64, len(ranked)), make(map[uint64]queue.Row, len(ranked))
	l.order = l.order[:0]
	for _, row := range ranked {
		first := waiting[row.Members[0]].Number
		l.rows[first] = row
		for _, i := range row.Members {
			l.same[first] = append(l.same[first], waiting[i].Number)
		}
		l.order = append(l.order, first)
	}
	if !again {
		place := func(n uint64) int {
			if at, ok := before[n]; ok {
				return at
			}
			return len(before)
		}
		slices.SortStableFunc(l.order, func(a, b uint64) int { return cmp.Compare(place(a), place(b)) })
	}
	slices.SortFunc(rest, func(a, b uint64) int {
		return cmp.Or(l.items[a].Priority.Rank()-l.items[b].Priority.Rank(), cmp.Compare(b, a))
	})
	l.order = append(l.order, rest...)
}

// rowOf returns the row that stands for a message.
func (l *list) rowOf(number uint64) uint64 {
	for row, numbers := range l.same {
		if slices.Contains(numbers, number) {
			return row
		}
	}
	return number
}

// counts returns what waits, in words.
func (l *list) counts() (need int, words string) {
	var parts []string
	var c queue.Counts
	for _, row := range l.rows {
		one := queue.Count([]queue.Row{row})
		c.Rows, c.DueSoon, c.High = c.Rows+one.Rows, c.DueSoon+one.DueSoon, c.High+one.High
	}
	if c.DueSoon > 0 {
		parts = append(parts, fmt.Sprintf("%d due soon", c.DueSoon))
	}
	if c.High > 0 {
		parts = append(parts, fmt.Sprintf("%d high risk", c.High))
	}
	return c.Rows, strings.Join(parts, " · ")
}

// namesIn returns how many cells the names of who asks have.
func (l *list) namesIn(s terminal.Screen) int {
	if _, known := l.cells[s.Width]; !known {
		l.cells[s.Width] = show.Names(l.waiting, l.nameOf, s)
	}
	return l.cells[s.Width]
}

// line returns a row of what waits or a message in one line.
func (l *list) line(number uint64, s terminal.Screen) string {
	row, waiting := l.rows[number]
	if !waiting {
		return show.Ended(*l.items[number], l.nameOf, s)
	}
	return show.Row(messagesOf(l.items, l.same[number]), row, l.nameOf, l.namesIn(s), &l.readings, s)
}

// worst returns the worst mark of some calls, and whether one is of high risk.
func (l *list) worst(all []view.Message) (mark string, high bool) {
	for i := range all {
		if f := l.readings.Of(&all[i]); f != nil && f.Risk == risk.High {
			return f.Mark(), true
		}
	}
	return "", false
}
