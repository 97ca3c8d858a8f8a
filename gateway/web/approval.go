package web

import (
	"slices"
	"strings"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
	"parley/gateway/call"
	"parley/gateway/sanitize"
	"parley/mailbox"
	"parley/mailbox/form"
)

// IsApproval reports whether the form is about a tool's call.
func (c card) IsApproval() bool { return c.Type == string(events.Approval) }

// Bounds of what a list shows of a call. What is decided is shown whole: a part has no button that allows.
const (
	maxInList = 16 << 10 // bytes of an input whose whole is in a list; the page of the approval shows that of others

	firstLines    = 40      // of a call of which a list shows a part
	maxNoteInList = 2 << 10 // bytes of a note on such a call
)

// approval is the call of an approval as a page draws it.
type approval struct {
	call.Reading
	parley.Permission
	Blocks []call.Block // those of the reading, or the beginning of them in a list
	More   int          // lines that only the approval's own page shows
	Alone  bool         // it is the approval's own page

	Decision, Why, Rule *widget // of an approval that waits; Rule is nil if it offers none
	Until               *widget // the end of a rule; nil if it takes none
	Edit                *widget // another input; nil if the agent takes none
	Digest              string  // of the permission

	Key, Agent  string      // of the card, and the name of the agent that asks
	Same, Whole []shownCall // the open calls that are identical, and all of the agent, with this one
}

// shownCall is a call that a page shows as open, by which it can be decided together with others.
type shownCall struct {
	ID, Digest string
	Date       capabilities.Time
	Part       string // what the agent says of it
	Session    string
	Reason     string
	Own        bool // it is the call of the card
}

// Many returns the number of identical calls that a decision settles; 0 if it is one.
func (a *approval) Many() int {
	if len(a.Same) < 2 {
		return 0
	}
	return len(a.Same)
}

// SaysOther reports whether the agent says something else of one of the identical calls.
func (a *approval) SaysOther() bool {
	return slices.ContainsFunc(a.Same, func(c shownCall) bool { return c.Part != a.Part || c.Session != a.Session || c.Reason != a.Reason })
}

// Before returns what the digest covers before the input.
func (a *approval) Before() string { before, _ := a.Around(); return before }

// After returns what the digest covers after the input.
func (a *approval) After() string { _, after := a.Around(); return after }

// together names the open calls that may be decided together with one: the identical ones, and those of its agent. Of
// many it names the oldest.
func (a *approval) together(e view.Message, waiting []view.Message) {
	for i := range waiting {
		o := &waiting[i]
		if o.From != e.From || o.Type != string(events.Approval) || !o.AnswerNeeded {
			continue
		}
		shown := shownCall{o.MessageID.String(), o.Digest, o.Date, o.Permission.Part, o.Permission.Session, o.Permission.Reason, o.MessageID == e.MessageID}
		if a.Whole = append(a.Whole, shown); e.AsksSame(o) {
			a.Same = append(a.Same, shown)
		}
	}
	a.Whole = a.Whole[:min(len(a.Whole), api.MaxDecisions)]
	a.Same = a.Same[:min(len(a.Same), api.MaxDecisions)]
	if len(a.Same) == len(a.Whole) && len(a.Same) < 2 {
		a.Same, a.Whole = nil, nil
	}
}

// newApproval reads the call of an approval.
func newApproval(e view.Message) *approval {
	a := &approval{Permission: *e.Permission, Digest: e.Digest, Agent: e.FromName}
	if a.Agent == "" {
		a.Agent = view.ShortID(e.From)
	}
	a.Reading = call.Read(e.Permission)
	a.draw()
	return a
}

// IsLarge reports whether a list shows a part of the call alone.
func (a *approval) IsLarge() bool { return !a.Alone && len(a.Input) > maxInList }

// draw picks what is shown of the call: all of it, or a part if it is large.
func (a *approval) draw() {
	a.Blocks, a.More = a.Reading.Blocks, 0
	if !a.IsLarge() {
		return
	}
	a.Blocks = nil
	lines, size := firstLines, maxInList
	for _, b := range a.Reading.Blocks {
		whole := b
		b.Notes = slices.DeleteFunc(slices.Clone(b.Notes), func(note string) bool { return len(note) > maxNoteInList })
		if len(b.Says) > maxNoteInList {
			b.Says = ""
			a.More++
		}
		b.Lines = b.Lines[:fitting(b.Lines[:min(lines, len(b.Lines))], size)]
		b.Values = slices.DeleteFunc(slices.Clone(b.Values), call.Value.IsLong)
		b.Values = b.Values[:min(lines-len(b.Lines), len(b.Values))]
		lines, size = lines-b.Size(), size-sizeOf(b.Lines)
		a.More += whole.Size() - b.Size() + len(whole.Notes) - len(b.Notes)
		a.Blocks = append(a.Blocks, b)
	}
}

// fitting returns the number of lines, from the first on, that have so many bytes at most.
func fitting(lines []call.Line, most int) int {
	for n := range lines {
		if most -= sizeOf(lines[n : n+1]); most < 0 {
			return n
		}
	}
	return len(lines)
}

// sizeOf returns the bytes of some lines.
func sizeOf(lines []call.Line) (size int) {
	for _, l := range lines {
		size += len(l.Text())
	}
	return size
}

// whole has the approval shown whole, on its own page.
func (a *approval) whole() {
	a.Alone = true
	a.draw()
}

// isPlain reports whether a text comes back from a text area as it is, and shows all of its characters.
func isPlain(text string) bool {
	return !strings.Contains(text, "\r") && sanitize.Lines(text) == text
}

// endings returns the ends of a rule to choose from. One that was sent and is none of them is another.
func endings(sent string) []choice {
	all := []choice{{Value: "", Label: "never"}, {Value: "1h", Label: "in an hour"}, {Value: "8h", Label: "in 8 hours"}, {Value: "24h", Label: "in a day"}, {Value: "168h", Label: "in a week"}}
	if sent != "" && !slices.ContainsFunc(all, func(c choice) bool { return c.Value == sent }) {
		all = append(all, choice{Value: sent, Label: sent})
	}
	for i := range all {
		all[i].Chosen = all[i].Value == sent
	}
	return all
}

// decisions names the widgets of an approval. The first offered rule is selected, and the buttons that make a rule
// describe it. If there are several rules, a script describes the selected one.
func (a *approval) decisions(drawn []widget) {
	for i := range drawn {
		switch w := &drawn[i]; w.Name {
		case "decision":
			w.Lone = true
			w.Choices = w.choices()
			a.Decision = w
		case "rule":
			w.Sure = true
			a.Rule = w
		case "reason":
			a.Why = w
		case "until":
			w.Kind, w.Shown = form.Menu, "It ends"
			w.Choices = endings(w.Text())
			a.Until = w
		case "input":
			w.Shown = "Input to allow instead"
			if len(w.Values) == 0 && isPlain(a.Input) {
				w.Values = []string{a.Input}
			}
			a.Edit = w
		}
	}
	if a.Decision == nil || a.Why == nil {
		a.Decision = nil // another node's, which is drawn as any form
		return
	}
	for i := range a.Decision.Choices {
		c := &a.Decision.Choices[i]
		if c.Value != mailbox.Always && c.Value != mailbox.Never {
			continue
		}
		c.Description = mailbox.OffersOf(&a.Permission)[0].Words
		if a.Rule != nil {
			if c.Description, c.Says = "the rule chosen below", a.Rule.Control; len(a.Rule.Options) == 1 {
				c.Description = a.Rule.Options[0].Label
			}
		}
	}
}

// button is a button that decides.
type button struct {
	choice
	Control, Verb, Key string // the key presses the button
	Many               int    // identical calls that it settles; 0 if it is one, or if it makes a rule
	Ends               string // the control with the end of the rule that it makes; "" if there is none
}

// Button returns the button of a decision.
func (a *approval) Button(value string) button {
	b := button{Control: a.Decision.Control, choice: choice{Value: value}}
	for _, c := range a.Decision.Choices {
		if c.Value == value {
			b.choice = c
		}
	}
	switch value {
	case mailbox.Once:
		b.Verb, b.Key, b.Many = "Allow once", "A", a.Many()
	case mailbox.Always:
		b.Verb, b.Ends = "Always allow", a.ends()
	case mailbox.Deny:
		b.Verb, b.Key, b.Many = "Deny", "D", a.Many()
	default:
		b.Verb, b.Ends = "Never allow", a.ends()
	}
	return b
}

// MayAllow reports whether the call may be allowed at all.
func (a *approval) MayAllow() bool {
	return slices.ContainsFunc(a.Decision.Choices, func(c choice) bool { return c.Value == mailbox.Once })
}

// MayRule reports whether a decision may make a rule. It makes none where several decide.
func (a *approval) MayRule() bool {
	return slices.ContainsFunc(a.Decision.Choices, func(c choice) bool { return c.Value == mailbox.Always })
}

// ends returns the control with the end of a rule; "" if there is none.
func (a *approval) ends() string {
	if a.Until == nil {
		return ""
	}
	return a.Until.Control
}

// decision is the decision on an approval, in words.
type decision struct {
	Sign, Words, Reason string
	Denied              bool
	Until               capabilities.Time // the end of the rule that it made
	Input, Digest       string            // that was allowed instead of the input shown, with the digest of that call
}

// decisionOf returns the answer to an approval in words. It is zero for an approval between other agents.
func decisionOf(e view.Message) decision {
	if e.Type != string(events.Approval) || e.Outcome.Status != view.StatusAnswered {
		return decision{}
	}
	made, reason := mailbox.ReadDecision(e.Outcome.Values)
	if !e.Outcome.Allowed && (made == mailbox.Once || made == mailbox.Always) { // it went to an agent that cannot decide
		return decision{Sign: "–", Words: "Not allowed: only the agent’s host can", Reason: reason, Denied: true}
	}
	switch made {
	case mailbox.Once:
		d := decision{Sign: "✓", Words: "Allowed once", Reason: reason, Input: e.Outcome.EditedInput, Digest: e.Outcome.EditedDigest}
		if d.Input != "" {
			d.Words += ", with another input"
		}
		return d
	case mailbox.Always:
		return decision{Sign: "✓", Words: "Always: " + mailbox.RuleWords(e.Permission, e.Outcome.Values), Reason: reason, Until: mailbox.EndOfRule(e.Outcome.Values)}
	case mailbox.Deny:
		return decision{Sign: "✕", Words: "Denied", Reason: reason, Denied: true}
	case mailbox.Never:
		return decision{Sign: "✕", Words: "Never: " + mailbox.RuleWords(e.Permission, e.Outcome.Values), Reason: reason, Denied: true, Until: mailbox.EndOfRule(e.Outcome.Values)}
	}
	return decision{}
}

// IsBrief reports whether the reason fits behind the decision.
func (d decision) IsBrief() bool {
	return d.Reason != "" && len(d.Reason) <= 120 && !strings.Contains(d.Reason, "\n")
}
