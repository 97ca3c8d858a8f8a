package view

import (
	"slices"

	"parley/capabilities"
)

// Discussion returns of the messages found in a form's thread those between its asker and the others that it concerns. A form that joins a thread
// brings nothing above its call that its asker has no part in.
func (f Found) Discussion(form *Message) (all []Message) {
	for _, m := range f.Messages {
		if m.Type == "message" && m.Archived == nil && (m.From == form.From || isTo(&m, form.From)) {
			all = append(all, m)
		}
	}
	return all
}

// isTo reports whether a message went to an agent.
func isTo(m *Message, agent capabilities.ID) bool {
	return m.To == agent || slices.ContainsFunc(m.Recipients, func(r Recipient) bool { return r.ID == agent })
}
