package web

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"html/template"
	"maps"
	"slices"
	"strings"
	"time"

	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// Answer is a field of a settled form.
type Answer struct {
	Label  string
	Value  string
	Given  bool
	Secret bool
}

// answers returns the answer to a settled form, in the order of its fields.
func answers(e view.Message, name func(capabilities.Ref) string) []Answer {
	values, ok := e.Outcome.Values.AsRecord()
	if !ok {
		return nil // it is between others
	}
	shown := make([]Answer, 0, len(e.Fields))
	for _, f := range e.Fields {
		v, given := values[f.Name]
		shown = append(shown, Answer{
			Label: cmp.Or(f.Label, f.Name), Value: view.ShowValue(v, f.Options, name), Given: given, Secret: f.Type == events.Secret || v.IsSealed(),
		})
	}
	return shown
}

// Card is one message as the page draws it.
type Card struct {
	view.Message
	Base    string // what the addresses of pages begin with
	As      string // the name of the agent whose mail it is in; "" is who is signed in
	Key     string // what element IDs begin with
	Status  view.FormStatus
	Widgets []FieldWidget
	Answers []Answer
	Carried []Carried
	Verdict Verdict // of an approval that was answered
	Wrong   string  // what a refused try said
}

// Verdict is the decision on an approval, in words.
type Verdict struct {
	Sign, Words, Reason string
}

// Carried is a value that a message brings.
type Carried struct{ Edge, Value string }

// Tried is a refused answer.
type Tried struct {
	Texts  []events.FieldText
	Wrong  string
	Fields map[string]string
}

// NewCard returns the card of a message in the mail of an agent. As is the reader's name for that agent, name says what it
// calls a reference, and t is a refused try; nil for none.
func NewCard(base, as string, e view.Message, t *Tried, name func(capabilities.Ref) string) Card {
	c := Card{Message: e, Base: base, As: as, Key: ElementKey(as, e.Number), Status: StatusOf(e)}
	if t != nil {
		c.Wrong = t.Wrong
	}
	for _, edge := range slices.Sorted(maps.Keys(e.Edges)) {
		c.Carried = append(c.Carried, Carried{Edge: edge, Value: view.ShowValue(e.Edges[edge], nil, name)})
	}
	switch {
	case e.AnswerNeeded:
		if c.Widgets = DrawFields(c.Key, e.Fields, t); c.IsApproval() {
			c.Widgets = decisions(c.Widgets)
		}
	case e.Outcome != nil:
		if c.Verdict = VerdictOf(e); c.Verdict == (Verdict{}) {
			c.Answers = answers(e, name)
		}
	}
	return c
}

// card returns the card of a message in an agent's mail. A reference is named as that agent names it.
func (p *page) card(ctx context.Context, l local, e view.Message, t *Tried) Card {
	return NewCard(p.base, l.name, e, t, namer(ctx, l.agent))
}

// unnamed returns a reference in words, for an agent that has no name for it.
func unnamed(r capabilities.Ref) string { return string(r.Kind) + " " + view.ShortID(r.Target) }

// StatusOf returns the status of a form; "" for a message.
func StatusOf(e view.Message) view.FormStatus {
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

// ElementKey returns a prefix for the IDs of the elements of one message. It is unique on a page.
func ElementKey(as string, number uint64) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(as)) // a hash takes everything
	return fmt.Sprintf("m%x-%d", h.Sum32(), number)
}

// Waits reports whether the agent can answer the form.
func (c Card) Waits() bool { return c.AnswerNeeded }

// MayCancel reports whether the agent asked the form and may cancel it.
func (c Card) MayCancel() bool { return c.Sent && c.Status == view.StatusOpen }

// Lone reports whether the form is answered by one press of a button.
func (c Card) Lone() bool {
	return slices.ContainsFunc(c.Widgets, func(w FieldWidget) bool { return w.Lone })
}

// IsApproval reports whether the form is about a tool's call. Its context shows the call exactly.
func (c Card) IsApproval() bool { return c.Type == string(events.Approval) }

// HasRequired reports whether the mark of required fields needs an explanation.
func (c Card) HasRequired() bool {
	return slices.ContainsFunc(c.Widgets, func(w FieldWidget) bool { return w.Required && !w.Lone })
}

// HasSecret reports whether the form asks for a secret, which no draft keeps.
func (c Card) HasSecret() bool {
	return slices.ContainsFunc(c.Widgets, func(w FieldWidget) bool { return w.Kind == "secret" })
}

// DueSoon reports whether a form is soon due.
func (c Card) DueSoon() bool {
	return c.Deadline != 0 && time.Until(c.Deadline.Std()) < time.Hour
}

// Heading returns the subject of the message in a line.
func (c Card) Heading() string {
	switch {
	case c.Title != "":
		return c.Title
	case c.Type == "message":
		return ""
	}
	subject, _ := c.subject()
	return subject
}

// Context returns the text below the heading.
func (c Card) Context() string {
	if c.Title == "" {
		_, more := c.subject()
		return more
	}
	return c.Description
}

// subject divides a description into its first line and the text behind an empty line. It keeps that of an approval whole.
func (c Card) subject() (line, more string) {
	line, more, parted := strings.Cut(strings.ReplaceAll(c.Description, "\r\n", "\n"), "\n\n")
	if !parted || c.IsApproval() || c.Type == "message" || line == "" || strings.ContainsAny(line[:1], "\n`~>|") || strings.Contains(line, "\n") {
		return c.Description, ""
	}
	return line, more
}

// Reading returns the context as HTML. It is not for the input of a call, which is shown exactly.
func (c Card) Reading() template.HTML { return markdown(c.Context()) }

// party is an agent as a page names it.
type party struct {
	Name string // what to show
	ID   string
	Own  bool // the name is the reader's own for them
}

// partyOf returns a party by the reader's name for it, or by its ID.
func partyOf(id capabilities.ID, name string) party {
	if name == "" {
		return party{Name: view.ShortID(id), ID: id.String()}
	}
	return party{Name: name, ID: id.String(), Own: true}
}

// Readable returns a time in words, for browsers without scripts.
func Readable(t capabilities.Time) string { return t.Std().Format("2 Jan 2006, 15:04 UTC") }

// said returns the texts that were sent for a field; none for a secret.
func (t *Tried) said(f events.Field) []string {
	var values []string
	for _, text := range t.Texts {
		if text.Name == f.Name && f.Type != events.Secret {
			values = append(values, text.Text)
		}
	}
	return values
}

// VerdictOf returns the answer to an approval in words. It is zero for an approval between other agents.
func VerdictOf(e view.Message) Verdict {
	if e.Type != string(events.Approval) || e.Outcome.Status != view.StatusAnswered {
		return Verdict{}
	}
	decision, reason := mailbox.ReadDecision(e.Outcome.Values)
	v := Verdict{Reason: reason}
	opinion := e.Outcome.Digest != "" && !e.Outcome.Allowed // its asker knows who decides
	switch decision {
	case mailbox.Once:
		if opinion {
			return Verdict{"–", "Not allowed: only the agent’s host can", reason}
		}
		v.Sign, v.Words = "✓", "Allowed once"
	case mailbox.Always:
		v.Sign, v.Words = "✓", "Always: "+mailbox.RuleWords(e.Fields, e.Outcome.Values)
	case mailbox.Deny:
		v.Sign, v.Words = "✕", "Denied"
	case mailbox.Never:
		v.Sign, v.Words = "✕", "Never: "+mailbox.RuleWords(e.Fields, e.Outcome.Values)
	default:
		return Verdict{}
	}
	return v
}
