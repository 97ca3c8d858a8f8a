package bridge

import (
	"context"
	"errors"
	"strings"

	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
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
	// Settle tells that the form was answered or declined, and by whom.
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
	Title    string
	Text     string
	From     string
	At       capabilities.Time
	Deadline capabilities.Time
	Page     string         // address of the node's pages; "" for none
	Buttons  []Button       // of an open approval, or of a form that fits a Listener
	Fields   []events.Field // of a form, if all that is shown of it is whole; else none

	// Of a form that has ended.
	Status string
	By     string
	Ended  capabilities.Time
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
		Form: m.MessageID, Revision: m.AnswerRevision(), Kind: m.Type, Title: Cut(m.Title, maxTitle), Text: Cut(m.Description, maxText),
		From: nameOf(m.FromName, m.From), At: m.Date, Deadline: m.Deadline, Status: string(view.StatusOpen),
		Fields: fieldsOf(m),
	}
	if base != "" {
		n.Page = base + "/"
	}
	if o := m.Outcome; o != nil {
		n.Status, n.By, n.Ended = string(o.Status), nameOf(o.ByName, o.By), o.At
	}
	return n
}

// isWhole reports whether a notice has all of a form's texts.
func isWhole(m *view.Message) bool {
	return Cut(m.Title, maxTitle) == m.Title && Cut(m.Description, maxText) == m.Description
}

func nameOf(name string, id capabilities.ID) string {
	if name == "" && !id.IsZero() {
		name = id.String()
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
