package web

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
	"parley/gateway/call"
	"parley/gateway/call/risk"
	"parley/gateway/sanitize"
	"parley/mailbox"
	"parley/mailbox/form"
)

// IsApproval reports whether the form is about a tool's call.
func (c card) IsApproval() bool { return c.Type == string(events.Approval) }

// AsksBack reports whether the question of a call is open when it is drawn.
func (c card) AsksBack() bool { return c.Approval != nil && c.Approval.Opened.Ask }

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
	Command             *string // the text to edit, of a call with a command line; nil if the input itself is edited
	Leave               *leave  // the mandate that may be given with it; nil for none
	Edited              *edited // what was edited, in a page without scripts; nil for nothing
	Digest              string  // of the permission
	Opened              opened

	Key, Agent  string      // of the card, and the name of the agent that asks
	Same, Whole []shownCall // the open calls that are identical, and all of the agent, with this one
}

// opened says which part of the bar of a call is open when it is drawn, for a page without scripts.
type opened struct{ Why, Edit, Ask, Leave, Sure bool }

// openedBy returns the part that an address names under "do".
func openedBy(do string) opened {
	return opened{Why: do == "deny", Edit: do == "edit", Ask: do == "ask", Leave: do == "leave", Sure: do == "allow"}
}

// Title returns what the call does, as the heading above it.
func (a *approval) Title() string {
	if u := a.Use; u != nil && u.Kind == capabilities.KindTool && a.Verb == "list" {
		return "List tools"
	}
	switch a.Verb {
	case "list":
		return "List a folder"
	case "request":
		return "Make a request"
	case "run":
		return "Run a command"
	case "edit":
		return "Change a file"
	case "write":
		return "Write a file"
	case "read":
		return "Read a file"
	}
	if a.Plan() != "" {
		return "Approve a plan"
	}
	return "Use a tool"
}

// ToolWords returns the name of the call's tool in words, as its row has it: that of an MCP tool with its server.
func (a *approval) ToolWords() string {
	if a.Verb == "use" && strings.HasPrefix(a.Tool, "mcp__") {
		return a.Object
	}
	return a.Tool
}

// PlanHTML returns the plan that a call presents, as it is read; "" for any other call, and for a plan that is shown in part. Its text as it was
// written is in the input.
func (a *approval) PlanHTML() template.HTML {
	if a.IsLarge() {
		return ""
	}
	return markdown(a.Plan())
}

// Speaks reports whether the agent says something of the call that is not in its input.
func (a *approval) Speaks() bool { return a.Reason != "" || a.Part != "" || a.Permission.Session != "" }

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
	a := &approval{Permission: *e.Permission, Digest: e.Digest, Agent: cmp.Or(e.Sender(), view.ShortID(e.From))}
	a.Reading = call.Read(e.Permission)
	a.Agent = a.Asker(a.Agent)
	a.draw()
	return a
}

// Drawn returns the blocks as they are drawn, without a plan that stands above them.
func (a *approval) Drawn() []drawnBlock {
	drawn := drawBlocks(a.Blocks)
	if a.PlanHTML() == "" {
		return drawn
	}
	for i := range drawn {
		drawn[i].Values = slices.DeleteFunc(slices.Clone(drawn[i].Values), func(v call.Value) bool { return v.Key == "plan" })
	}
	return drawn
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
	all := []choice{{Value: "", Label: "Never"}, {Value: "1h", Label: "In an hour"}, {Value: "8h", Label: "In 8 hours"}, {Value: "24h", Label: "In a day"}, {Value: "168h", Label: "In a week"}}
	if sent != "" && !slices.ContainsFunc(all, func(c choice) bool { return c.Value == sent }) {
		all = append(all, choice{Value: sent, Label: sent})
	}
	for i := range all {
		all[i].Chosen = all[i].Value == sent
	}
	return all
}

// offered returns the rules that an approval offers, to choose from: what each covers, and below it where. That for the very call is
// chosen if none was.
func offered(p *parley.Permission, w *widget) (all []choice) {
	for i, o := range mailbox.OffersOf(p) {
		c := choice{ID: fmt.Sprintf("%s-%d", w.ID, i), Value: o.ID, Label: o.Words, Words: o.Words, Chosen: o.ID == w.Text() || w.Text() == "" && i == 0}
		c.Label, c.Description = mailbox.CoveredBy(&o)
		all = append(all, c)
	}
	return all
}

// offersAfter returns the rules that the reader may make of a call that was decided without one. None is made to allow what is of high
// risk.
func offersAfter(p *page, c *card) []choice {
	if c.Approval == nil || !c.Received || c.Decision.Words == "" || c.Decision.Until != 0 || !mailbox.MayMakeRule(c.Fields) {
		return nil
	}
	made, _ := mailbox.ReadDecision(c.Outcome.Values)
	mayMake := p.principal.IsHost() && p.principal.May(api.Operation{Name: "rules", Scope: api.ScopeAdmin}) == nil
	if !mayMake || made == mailbox.Always || made == mailbox.Never || c.Approval.IsHigh() && !c.Decision.Denied {
		return nil
	}
	return offered(&c.Approval.Permission, &widget{ID: c.Key + "-offer"})
}

// RuleEnds returns the ends of a rule to choose from.
func (c card) RuleEnds() []choice { return endings("") }

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
			w.Kind, w.Shown, w.Choices = form.Radios, "If you always allow it", offered(&a.Permission, w)
			a.Rule = w
		case "reason":
			a.Why, w.Shown = w, "Reason (optional, "+a.Agent+" reads it)"
		case "until":
			w.Kind, w.Shown = form.Menu, "Expires"
			w.Choices = endings(w.Text())
			a.Until = w
		case "input":
			w.Shown = "Edited input"
			if len(w.Values) == 0 && isPlain(a.Input) {
				w.Values = []string{a.Input}
			}
			a.Edit = w
			if line, ok := call.CommandIn(w.Text()); ok && isPlain(line) {
				a.Command = &line
			}
		}
	}
	if a.Decision == nil || a.Why == nil {
		a.Decision = nil // another node's, which is drawn as any form
		return
	}
	a.describe()
}

// describe has the buttons that make a rule say which.
func (a *approval) describe() {
	for i := range a.Decision.Choices {
		c := &a.Decision.Choices[i]
		if c.Value != mailbox.Always && c.Value != mailbox.Never {
			continue
		}
		c.Description = mailbox.OffersOf(&a.Permission)[0].Words
		if a.Rule != nil {
			if c.Description, c.Says = "the rule chosen above", a.Rule.Control; len(a.Rule.Choices) == 1 {
				c.Description = a.Rule.Choices[0].Words
			}
		}
	}
}

// button is a button that decides.
type button struct {
	choice
	Control, Verb, Key string // the key presses the button
	High               bool   // it allows a call of high risk
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
		b.Verb, b.Key, b.Many, b.High = "Allow once", "A", a.Many(), a.IsHigh()
	case mailbox.Always:
		b.Verb, b.Ends, b.Key = "Always allow", a.ends(), "⇧A"
	case mailbox.Deny:
		b.Verb, b.Many = "Deny", a.Many()
	default:
		b.Verb, b.Ends = "Never allow", a.ends()
	}
	return b
}

// MayAllow reports whether the call may be allowed at all.
func (a *approval) MayAllow() bool {
	return slices.ContainsFunc(a.Decision.Choices, func(c choice) bool { return c.Value == mailbox.Once })
}

// IsHigh reports whether the call is of high risk: it is allowed in two steps, and no rule is offered.
func (a *approval) IsHigh() bool { return a.Risks.Level() == risk.High }

// Effect returns the risk that a second press confirms.
func (a *approval) Effect() string {
	if len(a.Risks) == 0 {
		return ""
	}
	return strings.TrimSuffix(a.Risks[0].Text, ".")
}

// MayRule reports whether a decision may make a rule. It makes none where several decide, and none for a high risk.
func (a *approval) MayRule() bool {
	return !a.IsHigh() && slices.ContainsFunc(a.Decision.Choices, func(c choice) bool { return c.Value == mailbox.Always })
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
