package gateway

import (
	"context"
	"fmt"
	"hash/fnv"
	"html/template"
	"slices"
	"strings"
	"time"

	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/form"
)

// card is one message as the page draws it.
type card struct {
	view.Message
	Base    string // what the addresses of pages begin with
	As      string // the name of the agent whose mail it is in; "" is who is signed in
	Key     string // what element IDs begin with
	Status  view.FormStatus
	Widgets []widget
	Answers []answer
	Carried []carried
	Verdict verdict // of an approval that was answered
	Wrong   string  // what a refused try said
}

// verdict is what was decided on an approval, in words.
type verdict struct {
	Sign, Words, Reason string
}

// carried is a value that a message brings.
type carried struct{ Edge, Value string }

// tried is what someone sent that was refused.
type tried struct {
	texts  []form.Text
	wrong  string
	fields map[string]string
}

// card draws a message. Names are those of the agent whose mail it is in.
func (s *Server) card(ctx context.Context, l local, e view.Message, t *tried) card {
	c := card{Message: e, Base: pagePrefix(ctx), As: l.name, Key: elementKey(l.name, e.Number), Status: statusOf(e)}
	if t != nil {
		c.Wrong = t.wrong
	}
	name := s.namer(ctx, l.agent)
	for _, edge := range sortedKeys(e.Edges) {
		c.Carried = append(c.Carried, carried{Edge: edge, Value: showValue(e.Edges[edge], nil, name)})
	}
	switch {
	case e.AnswerNeeded:
		if c.Widgets = widgets(c.Key, e.Fields, t); c.IsApproval() {
			c.Widgets = decisions(c.Widgets)
		}
	case e.Outcome != nil:
		if c.Verdict = verdictOf(e); c.Verdict == (verdict{}) {
			c.Answers = answers(e, name)
		}
	}
	return c
}

// verdictOf puts the answer to an approval into words; there are none where it is between others.
func verdictOf(e view.Message) verdict {
	if e.Type != string(events.Approval) || e.Outcome.Status != view.StatusAnswered {
		return verdict{}
	}
	decision, reason := mailbox.ReadDecision(e.Outcome.Values)
	v := verdict{Reason: reason}
	opinion := e.Outcome.Digest != "" && !e.Outcome.Allowed // its asker knows who decides
	switch decision {
	case mailbox.Once:
		if opinion {
			return verdict{"–", "Not allowed: only the agent’s host can", reason}
		}
		v.Sign, v.Words = "✓", "Allowed once"
	case mailbox.Always:
		v.Sign, v.Words = "✓", "Always: "+mailbox.RuleWords(e.Fields, e.Outcome.Values)
	case mailbox.Deny:
		v.Sign, v.Words = "✕", "Denied"
	case mailbox.Never:
		v.Sign, v.Words = "✕", "Never: "+mailbox.RuleWords(e.Fields, e.Outcome.Values)
	default:
		return verdict{}
	}
	return v
}

func statusOf(e view.Message) view.FormStatus {
	switch {
	case e.Type == "message":
		return ""
	case e.Outcome != nil:
		return e.Outcome.Status
	case e.Answering:
		return view.StatusAnswering
	}
	return view.StatusOpen
}

// elementKey tells the elements of one message from those of all others that a page may show.
func elementKey(as string, number uint64) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(as)) // a hash takes everything
	return fmt.Sprintf("m%x-%d", h.Sum32(), number)
}

// Waits reports whether it is for the agent to answer.
func (c card) Waits() bool { return c.AnswerNeeded }

// MayCancel reports whether the agent asked it and may take it back.
func (c card) MayCancel() bool { return c.Sent && c.Status == view.StatusOpen }

// Lone reports whether the form is answered by one press of a button.
func (c card) Lone() bool {
	return slices.ContainsFunc(c.Widgets, func(w widget) bool { return w.Lone })
}

// IsApproval reports whether it is about a call of a tool, which its context shows to the letter.
func (c card) IsApproval() bool { return c.Type == string(events.Approval) }

// HasRequired reports whether a mark needs explaining.
func (c card) HasRequired() bool {
	return slices.ContainsFunc(c.Widgets, func(w widget) bool { return w.Required && !w.Lone })
}

// HasSecret reports whether the form asks for what is not kept as a draft.
func (c card) HasSecret() bool {
	return slices.ContainsFunc(c.Widgets, func(w widget) bool { return w.Kind == "secret" })
}

// DueSoon reports whether a form is soon due.
func (c card) DueSoon() bool {
	return c.Deadline != 0 && time.Until(c.Deadline.Std()) < time.Hour
}

// Heading is what the message is about, in a line.
func (c card) Heading() string {
	switch {
	case c.Title != "":
		return c.Title
	case c.Type == "message":
		return ""
	}
	subject, _ := c.subject()
	return subject
}

// Context is what more there is to read.
func (c card) Context() string {
	if c.Title == "" {
		_, more := c.subject()
		return more
	}
	return c.Description
}

// subject parts a description as letters are: a line, an empty one, and more. An approval's is one piece.
func (c card) subject() (line, more string) {
	line, more, parted := strings.Cut(strings.ReplaceAll(c.Description, "\r\n", "\n"), "\n\n")
	if !parted || c.IsApproval() || c.Type == "message" || line == "" || strings.ContainsAny(line[:1], "\n`~>|") || strings.Contains(line, "\n") {
		return c.Description, ""
	}
	return line, more
}

// Reading is the context as a page shows it. The input of a call is not for this: it is shown to the letter.
func (c card) Reading() template.HTML { return markdown(c.Context()) }

// party is somebody as a page names them.
type party struct {
	Name string // what to show
	ID   string
	Own  bool // the name is the reader's own for them
}

// partyOf names a party: by the reader's name for it, or by its ID.
func partyOf(id capabilities.ID, name string) party {
	if name == "" {
		return party{Name: shortID(id), ID: id.String()}
	}
	return party{Name: name, ID: id.String(), Own: true}
}

// shortID is the part of an ID that differs most between those made at about one time.
func shortID(id capabilities.ID) string {
	text, _, _ := strings.Cut(id.String(), "@")
	return "…" + text[max(0, len(text)-8):]
}

// readable is a time for those whose browser does not say it better.
func readable(t capabilities.Time) string { return t.Std().Format("2 Jan 2006, 15:04 UTC") }
