package web

import (
	"cmp"
	"context"
	"hash/fnv"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode"

	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/sanitize"
)

// row is a message as a list shows it: in two lines.
type row struct {
	view.Message
	Base     string // the beginning of the addresses of pages
	As       string // the reader's name for the agent that has the message; "" for the reader
	In       string // the query of the list, without a question mark
	Key      string // of the message's card
	Status   view.FormStatus
	Folder   string // the last part of the folder of an approval's call
	Line     string // the message in a line
	Decision decision
	Current  bool   // it is the item beside the list
	Group    string // heading before the row; "" for none
}

// newRow returns the row of a message in the mail of an agent.
func newRow(base string, l local, e view.Message) row {
	r := row{Message: e, Base: base, As: l.name, Key: ElementKey(l.name, e.Number), Status: statusOf(e)}
	c := card{Message: e, Status: r.Status}
	if c.IsApproval() {
		c.Approval = newApproval(e)
		if r.Folder = path.Base(c.Approval.Folder); c.Approval.Folder == "" {
			r.Folder = ""
		}
		if e.Outcome != nil {
			r.Decision = decisionOf(e)
		}
	}
	r.Line = lineOf(cmp.Or(c.Heading(), e.Text))
	return r
}

// maxLine bounds the characters of a row's text: more do not fit into a line.
const maxLine = 160

// lineOf returns the beginning of a text as one line.
func lineOf(text string) string {
	text = strings.Join(strings.Fields(text[:min(len(text), 8*maxLine)]), " ")
	if letters := []rune(strings.ToValidUTF8(text, "")); len(letters) > maxLine {
		return string(letters[:maxLine]) + "…"
	}
	return strings.ToValidUTF8(text, "")
}

// Other returns the agent at the other end of the message.
func (r row) Other() party {
	if r.Sent && !r.Received {
		return partyOf(r.To, r.ToName)
	}
	return partyOf(r.From, r.FromName)
}

// Waits reports whether the agent can answer the form.
func (r row) Waits() bool { return r.AnswerNeeded }

// IsNew reports whether the reader has something to do or to read.
func (r row) IsNew() bool { return r.AnswerNeeded || r.Unread }

// Address returns the address of the message, within its list.
func (r row) Address() string {
	q := url.Values{}
	if r.As != "" {
		q.Set("as", r.As)
	}
	return r.Base + FormsPath + r.MessageID.String() + suffix(q, r.In)
}

// suffix returns a query with a question mark, or "" for an empty one. In is the query of a list, which the query contains
// under "in".
func suffix(q url.Values, in string) string {
	if in != "" {
		q.Set("in", in)
	}
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}

// State returns the state of a form in few words, with its sign; "" for a message and an open form.
func (r row) State() string {
	switch {
	case r.Decision.Words != "":
		return r.Decision.Sign + " " + r.Decision.Words
	case r.Status == view.StatusAnswering:
		return "◌ On its way"
	case r.Status == view.StatusOpen && r.Sent && !r.AnswerNeeded:
		return "○ Waits"
	case r.Outcome == nil:
		return ""
	}
	switch r.Outcome.Status {
	case view.StatusAnswered:
		return "✓ Answered"
	case view.StatusDeclined:
		return "✕ Declined"
	case view.StatusExpired:
		return "⏱ Expired"
	case view.StatusSuperseded:
		return "⊘ Replaced"
	}
	return "⊘ Cancelled"
}

// Initials returns one or two letters for an agent, and Tint the number of its colour.
func (p party) Initials() string {
	words := strings.FieldsFunc(sanitize.Line(p.Name), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	switch {
	case len(words) == 0:
		return "·"
	case len(words) == 1:
		letters := []rune(words[0])
		return strings.ToUpper(string(letters[:min(len(letters), 2)]))
	}
	return strings.ToUpper(string([]rune(words[0])[:1]) + string([]rune(words[1])[:1]))
}

// tints is the number of colours of initials.
const tints = 8

// Tint returns the number of the agent's colour.
func (p party) Tint() string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(p.ID)) // never fails
	return strconv.Itoa(int(h.Sum32() % tints))
}

// dayOf returns a day in words, for browsers without scripts.
func dayOf(t capabilities.Time) string {
	switch at, now := t.Std().UTC(), time.Now().UTC(); {
	case at.Format(time.DateOnly) == now.Format(time.DateOnly):
		return "Today"
	case at.Format(time.DateOnly) == now.AddDate(0, 0, -1).Format(time.DateOnly):
		return "Yesterday"
	default:
		return at.Format("2 January 2006")
	}
}

// grouped sets the headings between rows: of days or, with by "agent", of agents.
func grouped(rows []row, by string) []row {
	last := ""
	for i := range rows {
		heading := dayOf(rows[i].Date)
		if by == "agent" {
			heading = rows[i].Other().Name
		}
		if heading != last {
			rows[i].Group, last = heading, heading
		}
	}
	return rows
}

// drawRows returns the rows of messages in the mail of an agent, newest first.
func (p *page) drawRows(l local, messages []view.Message, in string) []row {
	rows := make([]row, 0, len(messages))
	for i := len(messages) - 1; i >= 0; i-- {
		r := newRow(p.base, l, messages[i])
		r.In = in
		rows = append(rows, r)
	}
	return rows
}

// firstOf returns the message to show beside a list: the first that waits, or the first.
func firstOf(rows []row) *row {
	for i := range rows {
		if rows[i].AnswerNeeded {
			return &rows[i]
		}
	}
	if len(rows) > 0 {
		return &rows[0]
	}
	return nil
}

// localOf returns the agent whose mail has a row.
func (p *page) localOf(ctx context.Context, r *row) (local, error) {
	a, err := p.site.Backend.Agent(ctx, p.principal, r.As)
	return local{r.As, a}, err
}
