package bridge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"parley/actors/view"
	"parley/events"
	"parley/gateway/call"
	"parley/gateway/sanitize"
)

// LinkPage is what the page of a link shows. Its texts are safe to show.
type LinkPage struct {
	Title   string
	Tool    string // of a call
	Rows    []LinkRow
	Text    string
	Answers []Button // without a URL and a secret: each posts to the link with its outcome
}

// LinkRow is a line of what is asked.
type LinkRow struct {
	Text string
	Risk bool
}

// byLink are the outcomes that a link may give, in the order in which they are offered.
var byLink = []string{"once", "deny", "decline"}

// LinkLabel returns the label of an answer that a link may give; "" if it may give none of that outcome.
func LinkLabel(outcome string) string {
	if slices.Contains(byLink, outcome) {
		return labels[outcome]
	}
	return ""
}

// Pressed returns what is said of an answer that was given by a button with a label.
func Pressed(label string, o view.Outcome) (title, text string) {
	n := Notice{Status: string(o.Status)}
	if v := o.Votes; v != nil {
		n.Votes = fmt.Sprintf("%d of %d", v.Have, v.Need)
	}
	if !n.Waits() {
		return "Answered: " + label, ""
	}
	title, text = n.Done()
	return title + " " + label, text
}

// PageOf returns what the page of a link shows of a form, with those outcomes that the link may give. What is not shown whole is
// not allowed.
func PageOf(m *view.Message, outcomes []string) LinkPage {
	p, whole := asked(m)
	for _, o := range byLink {
		if slices.Contains(outcomes, o) && (o != "once" || whole && m.Takes(o) && !m.Passkey) {
			p.Answers = append(p.Answers, Button{Label: labels[o], Outcome: o})
		}
	}
	if m.Passkey {
		p.Text = "It needs a passkey. Open Parley to decide on it there."
	}
	if !whole {
		p.Text = "This is not all of it. Open Parley to see the whole, and to answer it there."
	}
	return p
}

// asked returns what a form asks, and whether that is all of it.
func asked(m *view.Message) (p LinkPage, whole bool) {
	from := cmp.Or(m.Sender(), view.ShortID(m.From))
	if m.Type != string(events.Approval) {
		p.Title = sanitize.Line(from + " asks: " + m.Title)
		p.Rows, whole = rowsWithin(call.RowsOf(m.Description))
		return p, whole
	}
	reading := call.Read(m.Permission)
	p.Title, p.Tool = sanitize.Line(reading.Asker(from)+" wants to "+reading.Verb+" "+reading.Object), sanitize.Line(m.Title)
	p.Rows, whole = rowsWithin(reading.Rows())
	return p, whole
}

// maxPage bounds the rows of a page, in bytes.
const maxPage = 64 << 10

// rowsWithin returns the beginning of some rows that a page has room for, and whether that is all.
func rowsWithin(rows []call.Row) (shown []LinkRow, whole bool) {
	size := 0
	for _, r := range rows {
		text := sanitize.Line(strings.ReplaceAll(r.Text, "\t", "    ")) // a row is one line, whatever is in it
		if size += len(text); size > maxPage {
			return shown, false
		}
		shown = append(shown, LinkRow{text, r.Kind == call.RiskRow})
	}
	return shown, true
}
