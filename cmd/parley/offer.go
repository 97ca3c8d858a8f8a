package main

import (
	"fmt"
	"strconv"
	"strings"

	"parley"
	"parley/cmd/parley/terminal"
	"parley/events"
	"parley/mailbox"
)

// offers returns the rules that an approval offers, in words. The first is for the very call.
func (w permission) offers() []string {
	return mailbox.OffersOf(w.asked())
}

// asked returns the fields of the approval.
func (w permission) asked() []events.Field {
	fields := make([]events.Field, len(w.Fields))
	for i, f := range w.Fields {
		fields[i] = f.Field
	}
	return fields
}

// note returns what an approval says about a rule of before; "" if there is none.
func (w permission) note() string {
	for _, f := range w.asked() {
		if f.Name == "decision" {
			return f.Help
		}
	}
	return ""
}

// offer returns the rule that is chosen by its number, from 1, or by its words. No choice is none.
func (w permission) offer(chosen string) (string, error) {
	offers := w.offers()
	if chosen == "" {
		return "", nil
	}
	for i, words := range offers {
		if chosen == words || chosen == strconv.Itoa(i+1) {
			if i == 0 {
				return "", nil // as it is without a choice, also where the approval has no field for one
			}
			return words, nil
		}
	}
	return "", parley.Refuse(parley.InvalidArgument, "approval %d does not offer the rule %q", w.Number, chosen).
		WithHint("choose one by its number or its words: %s", strings.Join(numbered(offers), " | "))
}

// numbered puts the number before each offer.
func numbered(offers []string) []string {
	all := make([]string, len(offers))
	for i, words := range offers {
		all[i] = fmt.Sprintf("%d. %s", i+1, terminal.Visible(words))
	}
	return all
}

// rulesText shows what may be chosen besides the very call, and what is said of a rule of before; "" if there is nothing.
func (w permission) rulesText() string {
	var text string
	if offers := w.offers(); len(offers) > 1 {
		text = "\n   rules: " + strings.Join(numbered(offers), "\n          ")
	}
	if note := w.note(); note != "" {
		text += "\n   note:  " + terminal.Visible(note)
	}
	return text
}

// shownFor shows a call in full before it is decided on, and the rule that is made by that.
func (w permission) shownFor(how decision) (string, error) {
	chosen, err := w.offer(how.rule)
	switch {
	case err != nil:
		return "", err
	case !how.always:
		return w.text() + w.rulesText(), nil
	case chosen == "":
		chosen = w.offers()[0]
	}
	return w.text() + w.rulesText() + "\n   rule:  " + terminal.Visible(chosen), nil
}
