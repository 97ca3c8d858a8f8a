package show

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/terminal"
	"parley/gateway/call/risk"
	"parley/gateway/queue"
)

// NameFunc returns the name of an agent, with the reader's own name for it. It is not yet safe to print.
type NameFunc func(id capabilities.ID, pet string) string

// Widths of the parts of a row, in cells.
const (
	minName  = 10
	maxName  = 22
	maxClaim = 12 // of who is on it, beside what is asked
	minWhat  = 12

	narrow       = 60 // cells of a terminal that has no room for all of it
	narrowName   = 8
	narrowWhat   = 4
	narrowOrMore = 16 // of a name, up to which a terminal of 80 cells has room
)

// Names returns how many cells the names of who asks have in a list, so that what they ask is in one column.
func Names(all []view.Message, name NameFunc, s terminal.Screen) int {
	most, cells := maxName, minName
	switch {
	case s.Width == 0:
	case s.Width < narrow:
		return narrowName
	case s.Width < 100:
		most = narrowOrMore
	}
	for i := range all {
		cells = max(cells, ansi.StringWidth(terminal.Visible(name(all[i].From, all[i].Sender()))))
	}
	return min(cells, most)
}

// Row returns what waits in one row of the queue as one line of a terminal: who asks, what is asked, what is risky, and since
// when. Of what is asked the risky end stays. Same are the messages of the row, and names are the cells of who asks. On a narrow terminal the risk
// stays rather than the time.
func Row(same []view.Message, row queue.Row, name NameFunc, names int, r *queue.Readings, s terminal.Screen) string {
	e := &same[0]
	f := r.Of(e)
	who := terminal.Squeeze(terminal.Visible(name(e.From, e.Sender())), names)
	who += strings.Repeat(" ", max(names-ansi.StringWidth(who), 0))
	first := s.Paint(terminal.Waiting, fmt.Sprintf("%d.", e.Number)) + " " + who + "  "
	isNarrow := s.Width > 0 && s.Width < narrow
	var marks []string
	if n := len(same); n > 1 {
		word := "alike"
		if row.Fold == queue.Identical {
			word = "identical"
		}
		marks = append(marks, s.Paint(terminal.Strong, fmt.Sprintf("%d × %s", n, word)))
	}
	if f != nil && f.Mark() != "" {
		style := terminal.Waiting
		if row.Risk == risk.High {
			style = terminal.Wrong
		}
		at := len(marks)
		if isNarrow { // of what does not fit it stays
			at = 0
		}
		marks = slices.Insert(marks, at, s.Paint(style, f.Mark()))
	}
	if v := e.Votes; v != nil {
		marks = append(marks, fmt.Sprintf("%d of %d", v.Have, v.Need))
	}
	if e.Passkey {
		marks = append(marks, "needs a passkey")
	}
	if c := e.Claim; c != nil {
		who := "you are on it"
		if c.ByName != self {
			who = ansi.Truncate(terminal.Visible(cmp.Or(name(c.By, c.ByName), "another")), maxClaim, "…") + " is on it"
		}
		marks = append(marks, who)
	}
	when := strings.TrimSuffix(terminal.Ago(row.Since.Std(), s.Now), " ago")
	if row.Section == queue.DueSoon {
		when = s.Paint(terminal.Waiting, "due "+terminal.Ago(row.Limit.Std(), s.Now))
	}
	least := minWhat
	if isNarrow {
		least = narrowWhat
		if len(marks) > 0 && row.Section != queue.DueSoon {
			when = ""
		}
	}
	if when != "" {
		marks = append(marks, when)
	}
	last := "  " + strings.Join(marks, " · ")
	room := max(s.Width-ansi.StringWidth(first)-ansi.StringWidth(last), least)
	what := terminal.Visible(cmp.Or(e.Title, e.Description))
	switch {
	case f != nil && row.Fold == queue.Similar:
		facts := make([]*queue.Facts, len(same))
		for i := range same {
			facts[i] = r.Of(&same[i])
		}
		what = terminal.Visible(queue.SimilarLine(facts))
	case f != nil:
		what = brief(f, room)
	}
	what = ansi.Truncate(what, room, "…")
	return s.Fit(first + what + strings.Repeat(" ", max(room-ansi.StringWidth(what), 0)) + last)
}

// brief returns the second line of a call in so many cells.
func brief(f *queue.Facts, cells int) string {
	front, end := terminal.Visible(f.Brief.Front), terminal.Visible(f.Brief.End)
	if end == "" {
		return front
	}
	if room := cells - ansi.StringWidth(end) - 1; room >= 4 {
		return ansi.Truncate(front, room, "…") + " " + end
	}
	return "… " + end
}

// Ended returns a message that does not wait as one line of a list, with the name of who sent it.
func Ended(e view.Message, name NameFunc, s terminal.Screen) string {
	if e.Archived == nil && !e.Sent && e.Author.IsZero() {
		if known := name(e.From, e.Sender()); known != e.CallsItself() {
			e.FromName = known
		}
	}
	return Message(Decided(e, name), s)
}

// Decided returns a message in which who has ended it is called as a person reads it.
func Decided(e view.Message, name NameFunc) view.Message {
	if o := e.Outcome; o != nil && o.ByName != "" && o.ByName != self {
		named := *o
		named.ByName = name(o.By, o.ByName)
		e.Outcome = &named
	}
	return e
}

// List returns messages as lines of a terminal: what waits in the order of the queue under the headings of its sections, and
// below that the rest in their order.
func List(all []view.Message, name NameFunc, s terminal.Screen) (lines []string) {
	var waiting []view.Message
	for _, e := range all {
		if e.AnswerNeeded && e.SnoozedUntil == 0 && !e.Dismissed {
			waiting = append(waiting, e)
		}
	}
	var readings queue.Readings
	section := ""
	heading := func(text string) {
		if section != text {
			lines, section = append(lines, s.Paint(terminal.Faint, text)), text
		}
	}
	names := Names(waiting, name, s)
	for _, row := range queue.Rank(waiting, &readings, capabilities.At(s.Now)) {
		heading(row.Section.String())
		same := make([]view.Message, len(row.Members))
		for i, m := range row.Members {
			same[i] = waiting[m]
		}
		lines = append(lines, Row(same, row, name, names, &readings, s))
	}
	for _, e := range all {
		if e.AnswerNeeded && e.SnoozedUntil == 0 && !e.Dismissed {
			continue
		}
		if len(waiting) > 0 {
			heading("Earlier")
		}
		lines = append(lines, Ended(e, name, s))
	}
	return lines
}
