package web

import (
	"slices"
	"strings"

	"parley/actors/view"
	"parley/events"
	"parley/gateway/call"
	"parley/mailbox"
)

// IsApproval reports whether the form is about a tool's call.
func (c card) IsApproval() bool { return c.Type == string(events.Approval) }

// Bounds of what a page shows of a call before one asks for more.
const (
	firstLines = 40       // of a call; the rest is folded
	openValue  = 12       // lines of a value that is not folded
	maxInList  = 16 << 10 // bytes of an input whose whole is in a list; the page of the approval shows that of others

	maxNoteInList = 2 << 10 // bytes of a note on a call of which a list shows a part
)

// approval is the call of an approval as a page draws it.
type approval struct {
	call.Reading
	Tool, Input, Folder string
	Blocks              []block
	More                int  // lines that only the approval's own page shows
	Alone               bool // it is the approval's own page

	Decision, Reason, Rule *widget // of an approval that waits; Rule is nil if it offers none
}

// block is a block of a call. The rest is folded.
type block struct {
	call.Block
	First, Rest []call.Line
	Short, Long []call.Value
}

// newApproval reads the call of an approval.
func newApproval(e view.Message) *approval {
	a := &approval{Tool: e.Title, Input: e.Description, Folder: mailbox.FolderOf(e.Fields)}
	a.Reading = call.Read(call.Call{Tool: a.Tool, Input: a.Input, Folder: a.Folder})
	a.fold()
	return a
}

// IsLarge reports whether a list shows a part of the call alone.
func (a *approval) IsLarge() bool { return !a.Alone && len(a.Input) > maxInList }

// fold divides the blocks into what is shown first and the rest.
func (a *approval) fold() {
	a.Blocks, a.More = nil, 0
	room, size := firstLines, 0
	for _, b := range a.Reading.Blocks {
		n := min(room, len(b.Lines))
		if len(b.Lines)-n < 3 {
			n = len(b.Lines) // folding one or two lines hides more than it saves
		}
		if a.IsLarge() {
			n = fitting(b.Lines[:n], maxInList-size)
			size += sizeOf(b.Lines[:n])
		}
		if a.IsLarge() {
			b.Notes = slices.DeleteFunc(slices.Clone(b.Notes), func(note string) bool {
				long := len(note) > maxNoteInList
				if long {
					a.More += 1 + strings.Count(note, "\n")
				}
				return long
			})
		}
		shown := block{Block: b, First: b.Lines[:n], Rest: b.Lines[n:]}
		room -= n
		for _, v := range b.Values {
			if lines := 1 + strings.Count(v.Text, "\n"); lines <= min(openValue, room) && len(v.Text) < 80*openValue {
				shown.Short, room = append(shown.Short, v), room-lines
			} else {
				shown.Long = append(shown.Long, v)
			}
		}
		if a.IsLarge() {
			a.More += len(shown.Rest)
			for _, v := range shown.Long {
				a.More += 1 + strings.Count(v.Text, "\n")
			}
			shown.Rest, shown.Long = nil, nil
		}
		a.Blocks = append(a.Blocks, shown)
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
	a.fold()
}

// LinesOf returns the number of lines of a value.
func (b block) LinesOf(v call.Value) int { return 1 + strings.Count(v.Text, "\n") }

// decisions names the widgets of an approval. The first offered rule is selected, and the buttons that make a rule
// describe it. If there are several rules, a script describes the selected one.
func (a *approval) decisions(drawn []widget) {
	for i := range drawn {
		switch w := &drawn[i]; {
		case w.Kind == drawButtons && a.Decision == nil:
			w.Lone = true
			w.Choices = w.choices()
			a.Decision = w
		case w.Kind == string(events.Select) && a.Rule == nil:
			w.Sure = true
			a.Rule = w
		case w.Kind == string(events.Textarea) && a.Reason == nil:
			a.Reason = w
		}
	}
	if a.Decision == nil || a.Reason == nil {
		a.Decision = nil // another node's, which is drawn as any form
		return
	}
	for i := range a.Decision.Choices {
		c := &a.Decision.Choices[i]
		if c.Value != mailbox.Always && c.Value != mailbox.Never {
			continue
		}
		c.Description = mailbox.OffersOf(nil)[0]
		if a.Rule != nil {
			if c.Description, c.Says = "the rule chosen below", a.Rule.Control; len(a.Rule.Options) == 1 {
				c.Description = a.Rule.Options[0].Value
			}
		}
	}
}

// button is a button that decides.
type button struct {
	choice
	Control, Verb, Key string // the key presses the button
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
		b.Verb, b.Key = "Allow once", "A"
	case mailbox.Always:
		b.Verb = "Always allow"
	case mailbox.Deny:
		b.Verb, b.Key = "Deny", "D"
	default:
		b.Verb = "Never allow"
	}
	return b
}

// decision is the decision on an approval, in words.
type decision struct {
	Sign, Words, Reason string
	Denied              bool
}

// decisionOf returns the answer to an approval in words. It is zero for an approval between other agents.
func decisionOf(e view.Message) decision {
	if e.Type != string(events.Approval) || e.Outcome.Status != view.StatusAnswered {
		return decision{}
	}
	made, reason := mailbox.ReadDecision(e.Outcome.Values)
	opinion := e.Outcome.Digest != "" && !e.Outcome.Allowed // it went to an agent that cannot decide
	switch made {
	case mailbox.Once:
		if opinion {
			return decision{"–", "Not allowed: only the agent’s host can", reason, true}
		}
		return decision{"✓", "Allowed once", reason, false}
	case mailbox.Always:
		return decision{"✓", "Always: " + mailbox.RuleWords(e.Fields, e.Outcome.Values), reason, false}
	case mailbox.Deny:
		return decision{"✕", "Denied", reason, true}
	case mailbox.Never:
		return decision{"✕", "Never: " + mailbox.RuleWords(e.Fields, e.Outcome.Values), reason, true}
	}
	return decision{}
}

// IsBrief reports whether the reason fits behind the decision.
func (d decision) IsBrief() bool {
	return d.Reason != "" && len(d.Reason) <= 120 && !strings.Contains(d.Reason, "\n")
}
