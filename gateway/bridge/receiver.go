package bridge

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/call"
	"parley/gateway/sanitize"
)

// Receiver is a place where people are told of forms. Its methods return when the receiver has taken what they tell, or
// with an error: the worker tries again later, with the same Notice.Key. They may be called again for what was taken.
type Receiver interface {
	// Tell shows an open form, in place of what was shown of it before. It returns a mark by which the receiver finds
	// again what it shows, if it needs one.
	Tell(context.Context, Notice) (mark string, err error)
	// Withdraw tells that nobody needs to answer the form any more: it was cancelled, or has expired.
	Withdraw(context.Context, Notice) error
	// Settle tells that the form was answered or declined, and by whom. It is also called for a form that is open, and waits
	// for others: see Notice.Waits.
	Settle(context.Context, Notice) error
}

// ErrGone ends the bridge: the receiver wants no more.
var ErrGone = errors.New("the receiver is gone")

// Bounds of the texts of a notice, in characters.
const (
	maxTitle = 120
	maxText  = 1000
)

// Notice is what a receiver is told of a form. Its texts are safe to show.
type Notice struct {
	Key      string // the same for each try to tell the same
	Mark     string // of what the receiver has taken of the form before; "" for none
	Form     capabilities.ID
	Revision uint64
	Kind     string
	Title    string // of an approval the tool
	Text     string // of an approval the call as it is read
	Whole    bool   // Title and Text are all of it: else nobody may allow what they do not see
	MayAllow bool   // of an approval: it takes that
	Folder   string // of an approval, in which the call is made; "" if it is not known
	Reason   string // of an approval, why the call is made, in the agent's own words; also in Text
	Part     string // of an approval, the part of the agent that makes it, as it calls that; also in Text
	Session  string // of an approval of a coding agent, its session; also in Text
	From     string
	At       capabilities.Time
	Deadline capabilities.Time
	Page     string         // address of the form's page; "" for none
	Buttons  []Button       // of an open approval, or of a form that fits a Listener
	Fields   []events.Field // of a form, if all that is shown of it is whole; else none

	Status string // open, and as below
	Votes  string // of a form that needs several answers, as in "1 of 2"
	// Of a form that has ended.
	By    string
	Ended capabilities.Time
}

// Waits reports whether the form is open, and not for the host: it has voted, or its answer is on its way.
func (n Notice) Waits() bool {
	return n.Status == string(view.StatusVoted) || n.Status == string(view.StatusAnswering)
}

// Done returns a title and a text in place of an open form's, without its buttons.
func (n Notice) Done() (title, text string) {
	switch n.Status {
	case string(view.StatusVoted):
		return strings.TrimSpace("Voted: " + n.Title), "Your vote counts, " + n.Votes + ". It waits for others."
	case string(view.StatusAnswering):
		return strings.TrimSpace("Kept: " + n.Title), "Your answer is kept, and goes to the asker's node when that can be reached."
	}
	text = "No answer is needed any more: it was " + n.Status
	if n.By != "" {
		text += " by " + n.By
	}
	return strings.TrimSpace("Done: " + n.Title), text
}

// Button answers the form once: by a post to its URL, or by a Listener with its secret.
type Button struct {
	Label   string
	Outcome string
	URL     string // "" if the node has no address
	Secret  string
}

// AnswerPath begins the addresses that answer a form by a right: the secret and the outcome follow.
const AnswerPath = "/answer/"

// noticeOf returns what is told of a form as it is now.
func noticeOf(m *view.Message, base string) Notice {
	n := Notice{
		Form: m.MessageID, Revision: m.AnswerRevision(), Kind: m.Type, Title: Cut(call.Spelled(sanitize.Line(m.Title)), maxTitle),
		From: nameOf(m.Sender(), m.From), At: m.Date, Deadline: m.Deadline, Status: string(view.StatusOpen),
	}
	if m.Type == string(events.Approval) {
		p := m.Permission
		n.Session = Cut(call.Spelled(sanitize.Line(p.Session)), maxTitle)
		n.Folder, n.Reason, n.Part = Cut(call.Spelled(sanitize.Line(p.Folder)), maxText), Cut(call.Spelled(p.Reason), maxText), Cut(call.Spelled(sanitize.Line(p.Part)), maxTitle)
		n.Text, n.Whole = readingOf(m)
		n.MayAllow = m.Takes("once") && !m.Passkey
	} else {
		n.Text, n.Whole = brief(m.Description)
	}
	n.Whole = n.Whole && n.Title == m.Title
	if n.Fields = fieldsOf(m, n.Whole); m.Passkey { // no button can sign
		n.Fields = nil
		n.Text = strings.TrimSpace(n.Text + "\n" + onThePage)
	}
	if base != "" {
		n.Page = base + "/forms/" + n.Form.String()
	}
	v := m.Votes
	if v != nil {
		n.Votes = fmt.Sprintf("%d of %d", v.Have, v.Need)
	}
	switch o := m.Outcome; {
	case o != nil:
		n.Status, n.By, n.Ended = string(o.Status), nameOf(o.ByName, o.By), o.At
	case m.Answering:
		n.Status = string(view.StatusAnswering)
	case v != nil && v.Own == view.VoteStands:
		n.Status = string(view.StatusVoted)
	}
	return n
}

// onThePage ends the text of a form that is signed with a passkey.
const onThePage = "[It needs a passkey: decide on the page.]"

// readingOf returns the call of an approval as text, and whether that is all of it. Characters that hide, or
// look like others, are shown spelled out. A text with such is not taken for the whole.
func readingOf(m *view.Message) (text string, whole bool) {
	reading := call.Read(m.Permission)
	rows := reading.Rows()
	lines := make([]string, len(rows))
	plain := !reading.Spelled
	said := []string{m.Permission.Folder, m.Permission.Session, m.Permission.Part, m.Permission.Reason}
	if u := m.Permission.Use; u != nil {
		said = append(said, u.Holder, u.Through, u.Name, u.Called)
	}
	for _, text := range said {
		plain = plain && call.Spelled(text) == text
	}
	for i, r := range rows {
		row := strings.ReplaceAll(r.Text, "\t", "    ")
		lines[i] = sanitize.Line(row)
		plain = plain && lines[i] == row
	}
	text, whole = shortened(strings.Join(lines, "\n"), room)
	if whole && !plain {
		text += "\n[It has characters that do not show, or look like others: they are spelled out. Open it to allow it.]"
	}
	return text, whole && plain
}

// brief returns a text that is safe to show, and whether that is all of it.
func brief(text string) (short string, whole bool) {
	safe := call.Spelled(sanitize.Lines(text))
	short, whole = shortened(safe, room)
	return short, whole && short == text
}

// room bounds the text of a notice.
var room = call.Bounds{Lines: 16, Width: 80, Characters: maxText}

// shortened returns a text within bounds, and says below it if that is not all.
func shortened(text string, b call.Bounds) (short string, whole bool) {
	if short, whole = call.Shorten(text, b); !whole {
		short += "\n" + notWhole
	}
	return short, whole
}

// notWhole ends a text that is not all of what is asked.
const notWhole = "[This is not all of it. Open it to see the whole.]"

// Brief returns the text of a notice in less room. It reports whether title and text are all of what is asked.
func (n Notice) Brief(b call.Bounds) (text string, whole bool) {
	text, whole = shortened(strings.TrimSuffix(n.Text, "\n"+notWhole), b)
	if whole && !n.Whole {
		return n.Text, false
	}
	return text, whole && n.Whole
}

// Labelled returns a text of the notice for a place that does not set apart what others wrote: what a form asks is in quotes. The
// call of an approval has its labels already.
func (n Notice) Labelled(text string) string {
	asked, isCut := strings.CutSuffix(text, notWhole)
	if asked = strings.TrimSuffix(asked, "\n"); n.Kind == string(events.Approval) || asked == "" {
		return text
	}
	if text = call.Quoted("asks", asked); isCut {
		text += "\n" + notWhole
	}
	return text
}

func nameOf(name string, id capabilities.ID) string {
	switch {
	case name == "SELF":
		name = "you"
	case name == "" && !id.IsZero():
		name = view.ShortID(id)
	}
	return Cut(name, maxTitle)
}

// Cut makes a text safe to show, and cuts it to so many characters.
func Cut(text string, most int) string {
	text = sanitize.Lines(text)
	if runes := []rune(text); len(runes) > most {
		text = strings.TrimSpace(string(runes[:most])) + "…"
	}
	return text
}
