package watch

import (
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/terminal"
	"parley/events"
	"parley/gateway/api"
	"parley/mailbox"
)

// askMandate asks for a mandate that is given with a call: by which rules, within which limits. What it gives is said before it is sent.
func askMandate(m *model, targets []view.Message) tea.Cmd {
	e := targets[0]
	switch mark, high := m.worst(targets); {
	case high:
		m.state = terminal.Visible(mark) + ": no mandate is given with a call of high risk. a allows it once"
		return nil
	case len(targets) > 1:
		m.state = "a mandate is given with one call"
		return nil
	}
	return m.ask(prompt{about: e, label: "Allow it, and what else without asking? Give numbers (1, 2)", choices: mailbox.OffersOf(e.Permission), next: func(text string) tea.Cmd {
		terms := &parley.MandateTerms{}
		offers := mailbox.OffersOf(e.Permission)
		for _, number := range strings.FieldsFunc(text, isBetween) {
			n, err := strconv.Atoi(number)
			if err != nil || n < 1 || n > len(offers) {
				m.state = "nothing was decided: " + terminal.Quoted(number) + " is no number of a rule"
				return nil
			}
			terms.Rules = append(terms.Rules, parley.MandateRule{Offer: offers[n-1].ID})
		}
		return m.ask(prompt{about: e, label: "How many calls at most, and for how long? (20 8h)", next: func(text string) tea.Cmd {
			return sayMandate(m, e, terms, text)
		}})
	}})
}

func isBetween(r rune) bool { return r == ',' || r == ' ' }

// sayMandate says all that a mandate gives, and gives it when the person presses enter.
func sayMandate(m *model, e view.Message, terms *parley.MandateTerms, limits string) tea.Cmd {
	for _, word := range strings.FieldsFunc(limits, isBetween) {
		if n, err := strconv.ParseUint(word, 10, 32); err == nil {
			terms.Calls = uint32(n)
			if n > 0 {
				continue
			}
		}
		until, err := terminal.Later(word, m.now())
		if err != nil || until.IsZero() {
			m.state = "nothing was decided: " + terminal.Quoted(word) + " is neither a number of calls nor a time"
			return nil
		}
		terms.Until = capabilities.At(until).String()
	}
	given, err := mailbox.MandateOf(e.Permission, terms, capabilities.At(m.now()))
	if err != nil {
		m.state = "nothing was decided: " + terminal.Visible(terminal.Message(err))
		return nil
	}
	says := given.Sentence(m.nameOf(e.From, e.FromName), func(t capabilities.Time) string { return m.screen.Moment(t.Std(), t.String()) })
	return m.ask(prompt{about: e, label: "Enter gives it, esc goes back", says: says, next: func(string) tea.Cmd {
		answer := parley.Answer{Digest: e.Digest, Revision: e.AnswerRevision(), Texts: []events.FieldText{{Name: "decision", Text: mailbox.Once}}, Mandate: terms}
		return m.call(e, "respond_form", "✓ Allowed once, with a mandate", true, api.RespondFormRequest{FormRef: refTo(e.MessageID), Answer: answer})
	}})
}
