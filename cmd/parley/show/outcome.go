package show

import (
	"fmt"
	"strings"

	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/terminal"
	"parley/events"
	"parley/mailbox"
)

// Outcome returns the outcome of a message in words.
func Outcome(o view.Outcome, of view.Message) string { return ended(o, partyOf(&of)) }

func ended(o view.Outcome, party func(id capabilities.ID, name string) string) string {
	text := string(o.Status)
	if !o.By.IsZero() {
		text += " by " + party(o.By, o.ByName)
	}
	text += fmt.Sprintf(" at %q", o.At)
	if o.Note != "" {
		text += ": " + terminal.Visible(o.Note)
	}
	return text
}

// Settled returns the end of a message in words, that of an approval as "✓ Allowed once" or "✕ Denied · not today".
func Settled(e view.Message, s terminal.Screen) string {
	o := *e.Outcome
	when := s.Time(o.At.Std(), fmt.Sprintf("at %q", o.At))
	by := ""
	if !o.By.IsZero() {
		by = " by " + partyOf(&e)(o.By, o.ByName)
		if e.ByReviewer() && o.ByName != self {
			by = " by reviewer " + partyOf(&e)(o.By, o.ByName)
		}
	}
	sign, words := Decision(e, s)
	switch {
	case sign != "":
		style := terminal.Wrong
		if sign == allowedSign {
			style = terminal.Right
		}
		return s.Paint(style, sign+" "+words) + " ·" + by + " " + when
	case e.Type == string(events.Approval) && o.Status == view.StatusExpired:
		return s.Paint(terminal.Faint, "⏱ Expired") + " " + when
	case s.Width == 0:
		return ended(o, partyOf(&e))
	}
	text := string(o.Status) + by + " " + when
	if o.Note != "" {
		text += ": " + terminal.Visible(o.Note)
	}
	return text
}

const allowedSign = "✓"

// Decision returns the decision about the call of an approval, as a sign and words with the reason. It returns "" for
// an approval without one and for any other message.
func Decision(e view.Message, s terminal.Screen) (sign, words string) {
	if e.Type != string(events.Approval) || e.Outcome == nil || e.Outcome.Status != view.StatusAnswered {
		return "", ""
	}
	made, reason := mailbox.ReadDecision(e.Outcome.Values)
	switch made {
	case mailbox.Once:
		sign, words = allowedSign, "Allowed once"
		if e.Outcome.EditedInput != "" {
			words += ", with another input"
		}
	case mailbox.Always:
		sign, words = allowedSign, "Always: "+mailbox.RuleWords(e.Permission, e.Outcome.Values)+until(e, s)
	case mailbox.Deny:
		sign, words = "✕", "Denied"
	case mailbox.Never:
		sign, words = "✕", "Never: "+mailbox.RuleWords(e.Permission, e.Outcome.Values)+until(e, s)
	default:
		return "", ""
	}
	if sign == allowedSign && !e.Outcome.Allowed {
		sign, words = "–", "Not allowed: only the agent's host can"
	}
	if reason != "" {
		words += " · " + reason
	}
	return sign, terminal.Visible(words)
}

// Vote returns what came of an answer that counts as a vote on a message, as in "1 of 2 votes, in place of your earlier one; waits for bob".
func Vote(e view.Message, v view.Votes) string {
	text := fmt.Sprintf("%d of %d votes", v.Have, v.Need)
	if r := v.Replaced; r != nil {
		of := "that of " + Party(r.Name, r.ID)
		if r.Name == self {
			of = "your earlier one"
		}
		text += ", in place of " + of
	}
	if waits := e.WaitsFor(&v); len(waits) > 0 {
		names := make([]string, len(waits))
		for i, w := range waits {
			names[i] = Party(w.Name, w.ID)
		}
		return text + "; waits for " + strings.Join(names, ", ")
	}
	return text + "; waits for others"
}

// until returns the end of the rule that a decision has made, behind its words; "" for none.
func until(e view.Message, s terminal.Screen) string {
	end := mailbox.EndOfRule(e.Outcome.Values)
	if end == 0 {
		return ""
	}
	return ", until " + s.Moment(end.Std(), end.String())
}
