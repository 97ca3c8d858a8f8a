package web

import (
	"net/http"
	"net/url"
	"strings"

	"parley"
	"parley/actors/view"
	"parley/events"
	"parley/gateway/call"
	"parley/gateway/call/risk"
)

// edited is a call with another input, as a page shows it before it is allowed.
type edited struct {
	*approval
	Change string // before what differs in the command, in whole words
	Was    string
	Is     string
	Rest   string
	Wrong  string // why it cannot be allowed
}

// HasRisk reports whether something may go wrong with it.
func (e *edited) HasRisk() bool { return e.Risks.Level() > risk.None }

// editOf returns the input that a plain HTML form would allow instead of that of a call: one with the command line that was typed,
// or the input itself. It is "" if neither was sent.
func editOf(e view.Message, sent url.Values) string {
	if line := strings.ReplaceAll(sent.Get("command"), "\r\n", "\n"); sent.Has("command") {
		if _, ok := call.CommandIn(e.Permission.Input); !ok || strings.TrimSpace(line) == "" {
			return ""
		}
		return call.WithCommand(e.Permission.Input, line)
	}
	for i, f := range e.Fields {
		if f.Name == "input" {
			return strings.ReplaceAll(sent.Get(control(i)), "\r\n", "\n")
		}
	}
	return ""
}

// newEdited reads a call with another input.
func newEdited(e view.Message, input string) *edited {
	p := *e.Permission
	p.Input = input
	a := newApproval(view.Message{Permission: &p, Digest: p.Digest(), From: e.From, FromName: e.FromName, FromSaid: e.FromSaid})
	a.whole()
	d := &edited{approval: a}
	was, _ := call.CommandIn(e.Permission.Input)
	if is, ok := call.CommandIn(input); ok {
		d.Change, d.Was, d.Is, d.Rest = differing(was, is)
	}
	switch {
	case strings.TrimSpace(input) == "":
		d.Wrong = emptyEdit
	case input == e.Permission.Input:
		d.Wrong = "It is what was asked"
	}
	return d
}

// emptyEdit says that nothing would be allowed instead.
const emptyEdit = "Write what to allow instead, or go back"

// differing divides two texts into what they share at the beginning and the end, in whole words, and what is between.
func differing(was, is string) (before, old, now, after string) {
	a, b := wordsOf(was), wordsOf(is)
	front, back := 0, 0
	for front < min(len(a), len(b)) && a[front] == b[front] {
		front++
	}
	for back < min(len(a), len(b))-front && a[len(a)-1-back] == b[len(b)-1-back] {
		back++
	}
	join := func(of []string) string { return strings.Join(of, "") }
	return join(a[:front]), join(a[front : len(a)-back]), join(b[front : len(b)-back]), join(a[len(a)-back:])
}

// wordsOf returns the words of a text and the blanks between them, of which the text consists.
func wordsOf(text string) (words []string) {
	isBlank := func(c byte) bool { return c == ' ' || c == '\n' || c == '\t' }
	for from, i := 0, 1; i <= len(text); i++ {
		if i == len(text) || isBlank(text[i]) != isBlank(text[from]) {
			words, from = append(words, text[from:i]), i
		}
	}
	return words
}

// showEdited draws a call with the input that was typed: the part of the page alone for a script, or the page.
func showEdited(p *page, e view.Message, sent url.Values, show func(*refusedAnswer) error) error {
	if e.Permission == nil || !e.AnswerNeeded {
		return parley.Refuse(parley.InvalidArgument, "there is no open call to edit")
	}
	input := editOf(e, sent)
	if p.pane() == "edit" {
		return p.render(http.StatusOK, "edited", newEdited(e, input))
	}
	texts := []events.FieldText{}
	for _, t := range readTexts(e.Fields, sent) {
		if t.Name == "input" {
			t.Text = input
		}
		texts = append(texts, t)
	}
	return show(&refusedAnswer{Texts: texts})
}
