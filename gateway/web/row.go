package web

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
	"parley/gateway/call/risk"
	"parley/gateway/people"
	"parley/gateway/queue"
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
	Folder   string       // the last part of the folder of an approval's call
	Line     string       // the message in a line
	Facts    *queue.Facts // of an approval's call; nil for any other message
	Decision decision
	Current  bool  // it is the item beside the list
	Same     []row // the rows of identical or similar open asks, which the list does not show; only their messages are set
	Fold     queue.Fold
	Group    string // heading before the row; "" for none
	By       string // the order of the rows below the heading; "" for that of dates
	Section  queue.Section
	Ruled    *view.RuledCall // it is a call that was decided without a question; nil for a message
	Sought   string          // of History: what it was searched for
}

// newRow returns the row of a message in the mail of an agent. Facts are those of its call; nil for another message.
func newRow(base string, l local, e view.Message, facts *queue.Facts) row {
	r := row{Message: e, Base: base, As: l.name, Key: ElementKey(l.name, e.Number), Status: statusOf(e), Facts: facts}
	c := card{Message: e, Status: r.Status}
	switch {
	case facts != nil:
		if e.Permission.Folder != "" {
			r.Folder = path.Base(sanitize.Line(e.Permission.Folder))
		}
		if e.Outcome != nil {
			r.Decision = decisionOf(e)
		}
		r.Line = lineOf(facts.Brief.Text())
	case e.Archived == nil:
		r.Line = lineOf(words(cmp.Or(c.Heading(), e.Text)))
	case e.Archived.Form:
		r.Line = "A form that has ended, in the archive"
	default:
		r.Line = "A message, in the archive"
	}
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

// changes are the calls that change files, which have a filter of their own among what waits.
const changes = "changes"

// kind returns the kind of the message, by which what waits is filtered.
func (r row) kind() string {
	if r.Facts != nil && (r.Facts.Verb == "edit" || r.Facts.Verb == "write") {
		return changes
	}
	return r.Type
}

// Icon returns the name of the icon for the kind of the message.
func (r row) Icon() string {
	switch {
	case r.Archived != nil:
		return "files"
	case r.Facts != nil:
		if r.Permission.Tool == "ExitPlanMode" {
			return "plan"
		}
		switch r.Facts.Verb {
		case "run":
			return "term"
		case "edit", "write":
			if r.IsSimilar() {
				return "files"
			}
			return "edit"
		case "read":
			return "files"
		}
		return "plug"
	case r.Votes != nil && r.Votes.Need > 1:
		return "users"
	case r.Type == "message":
		return "mail"
	case len(r.Fields) > 1:
		return "form"
	}
	return "ask"
}

// IsHigh reports whether it is an open call of high risk.
func (r row) IsHigh() bool { return r.AnswerNeeded && r.Facts != nil && r.Facts.Risk == risk.High }

// HasRisk reports whether it is an open call with a mark of its risk.
func (r row) HasRisk() bool { return r.AnswerNeeded && r.Facts != nil && r.Facts.Mark() != "" }

// IsSigned reports whether the answer was signed with a passkey.
func (r row) IsSigned() bool { return r.Outcome != nil && r.Outcome.Signed }

// IsApproval reports whether the message is about a tool's call.
func (r row) IsApproval() bool { return r.Permission != nil }

// Other returns the agent at the other end of the message.
func (r row) Other() party {
	switch {
	case r.Archived != nil:
		return party{Name: "Archive"}
	case r.Sent && !r.Received:
		return partyOf(r.To, r.ToName)
	}
	return senderOf(&r.Message)
}

// SentBy returns who sent a message that the agent has not received; "" for one that it has. A group passes on what others sent to it.
func (r row) SentBy() string { return sentBy(&r.Message) }

func sentBy(m *view.Message) string {
	switch {
	case !m.Sent || m.Received:
		return ""
	case !m.Author.IsZero():
		return authorOf(m).Name
	}
	return people.You
}

// Waits reports whether the agent can answer the form.
func (r row) Waits() bool { return r.AnswerNeeded && !r.IsSecondVote() }

// IsUrgent reports whether it is an urgent message that the reader has not read. Those lead the lists, which are by date.
func (r row) IsUrgent() bool { return r.Unread && r.Priority == events.Urgent }

// leads is 1 for a row that leads a list, and 0 for others.
func (r row) leads() int {
	if r.IsUrgent() {
		return 1
	}
	return 0
}

// IsNew reports whether the reader has something to do or to read.
func (r row) IsNew() bool { return r.AnswerNeeded || r.Unread }

// Address returns the address of the message, within its list.
func (r row) Address() string {
	if r.Ruled != nil {
		return r.Base + AgentPath(r.Ruled.Name) + "?tab=rules"
	}
	q := url.Values{}
	if r.As != "" {
		q.Set("as", r.As)
	}
	which := r.MessageID.String()
	if r.Archived != nil {
		which = strconv.FormatUint(r.Number, 10)
	}
	if r.IsSimilar() {
		q.Set("like", "yes")
	}
	return r.Base + FormsPath + which + suffix(q, r.In)
}

// Has reports whether the row stands for the message of a card.
func (r row) Has(key string) bool {
	return r.Key == key || slices.ContainsFunc(r.Same, func(s row) bool { return s.Key == key })
}

// Many returns the number of asks that the row stands for; 0 if it is one.
func (r row) Many() int {
	if len(r.Same) == 0 || r.IsThread() {
		return 0
	}
	return 1 + len(r.Same)
}

// IsSimilar reports whether the row stands for calls that are alike, and not the same.
func (r row) IsSimilar() bool { return r.Fold == queue.Similar }

// Ask returns what identical open asks share, and the messages of a thread; "" for a row that is never one with another.
func (r row) Ask() string {
	if root := rootOf(&r.Message); r.Type == "message" && !root.IsZero() {
		return "thread " + root.String()
	}
	if !r.AnswerNeeded || r.Permission == nil {
		return ""
	}
	return r.Permission.Call() + " " + r.From.String()
}

// Keys returns the keys of the cards of identical asks.
func (r row) Keys() string {
	var keys []string
	for _, s := range r.Same {
		keys = append(keys, s.Key)
	}
	return strings.Join(keys, " ")
}

// Pick returns the messages of the row for an operation on several: their IDs and, of open calls, their digests.
func (r row) Pick() string {
	q := url.Values{}
	if r.As != "" {
		q.Set("as", r.As)
	}
	for _, m := range append([]row{r}, r.Same...) {
		q.Add("id", m.MessageID.String())
		if m.AnswerNeeded && m.Digest != "" {
			q.Add("of", m.MessageID.String()+" "+m.Digest)
		}
	}
	return q.Encode()
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

// State returns the state of a form in few words, with its sign, or how far a message has come that the reader sent; "" for
// another message and an open form.
func (r row) State() string {
	switch {
	case r.Decision.Words != "":
		return r.Decision.Sign + " " + r.Decision.Words
	case r.Status == view.StatusAnswering:
		return "◌ On its way"
	case r.Claim != nil && r.Claim.ByName == self:
		return "◐ You are on it"
	case r.Claim != nil:
		return "◐ " + cmp.Or(r.Claim.ByName, "Another") + " is on it"
	case r.Status == view.StatusVoted:
		return fmt.Sprintf("◐ Voted · %d of %d", r.Votes.Have, r.Votes.Need)
	case r.Status == view.StatusOpen && r.Sent && !r.AnswerNeeded && r.Votes != nil:
		return fmt.Sprintf("○ %d of %d", r.Votes.Have, r.Votes.Need)
	case r.Status == view.StatusOpen && r.Sent && !r.AnswerNeeded:
		return "○ Waits"
	case r.Promised != nil:
		return "○ Waits"
	case r.Outcome == nil && r.Overdue:
		return "Overdue"
	case r.Outcome == nil && r.Sent && !r.Received && r.Message.State.Rank() > 0:
		return string(r.Message.State)
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

// byAgent returns rows in groups of the agent at the other end. The agents come in the order of their first rows.
func byAgent(rows []row) []row {
	at := map[string]int{}
	for i := range rows {
		if id := rows[i].Other().ID; at[id] == 0 {
			at[id] = 1 + len(at)
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(at[a.Other().ID], at[b.Other().ID]) })
	return rows
}

// drawRows returns the rows of messages, of which identical open asks are one row, and the messages of a thread.
func (p *page) drawRows(all []question, in string) []row {
	messages := make([]view.Message, len(all))
	for i, m := range all {
		messages[i] = m.Message
	}
	var rows []row
	for _, group := range view.Together(messages) {
		rows = append(rows, rowOfAll(p, all, group, in))
	}
	rows = foldThreads(rows)
	slices.SortStableFunc(rows, func(a, b row) int { return b.leads() - a.leads() })
	return rows
}

// ranked returns the rows of what waits, in the order of the queue. Identical calls are one row, and so are similar ones.
func ranked(p *page, all []question, in string) []row {
	messages := make([]view.Message, len(all))
	for i, m := range all {
		messages[i] = m.Message
	}
	var rows []row
	for _, of := range queue.Rank(messages, &p.site.readings, capabilities.At(time.Now())) {
		for _, group := range partsOf(messages, of) {
			r := rowOfAll(p, all, group, in)
			if r.Fold = foldOf(messages, group); r.IsSimilar() {
				facts := make([]*queue.Facts, len(group))
				for i, at := range group {
					facts[i] = p.site.readings.Of(&messages[at])
				}
				r.Line = lineOf(queue.SimilarLine(facts))
			}
			if of.Limit != 0 && len(group) > 1 {
				r.Deadline = of.Limit
			}
			r.Section, r.Group, r.By = of.Section, of.Section.String(), orders[of.Section]
			rows = append(rows, r)
		}
	}
	return rows
}

// orders are the orders of the sections of the queue, in words.
var orders = map[queue.Section]string{queue.DueSoon: "soonest first", queue.Stopped: "risk, then waiting time", queue.CanWait: "oldest first"}

// pick returns some of several messages.
func pick(all []view.Message, which []int) []view.Message {
	picked := make([]view.Message, len(which))
	for i, at := range which {
		picked[i] = all[at]
	}
	return picked
}

// rowOfAll returns the row of several messages, which are one row.
func rowOfAll(p *page, all []question, group []int, in string) row {
	first := all[group[0]]
	p.name(&first.Message)
	r := newRow(p.base, first.local, first.Message, p.site.readings.Of(&first.Message))
	r.In = in
	for _, i := range group[1:min(len(group), api.MaxDecisions)] {
		m := all[i]
		r.Same = append(r.Same, row{Message: m.Message, Key: ElementKey(m.name, m.Number)})
	}
	return r
}

// firstOf returns the message to show beside a list: the first that waits, or the first. A call that was decided without a question is
// none.
func firstOf(rows []row) *row {
	for i := range rows {
		if rows[i].AnswerNeeded {
			return &rows[i]
		}
	}
	if i := slices.IndexFunc(rows, func(r row) bool { return r.Ruled == nil }); i >= 0 {
		return &rows[i]
	}
	return nil
}

// localOf returns the agent whose mail has a row.
func (p *page) localOf(ctx context.Context, r *row) (local, error) {
	a, err := p.site.Backend.Agent(ctx, p.principal, r.As)
	return local{r.As, a}, err
}
