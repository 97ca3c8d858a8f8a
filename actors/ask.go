package actors

import (
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/form"
)

// Which names a message of an agent: its number in the agent's mailbox, as in "3", or the ID of the
// message, form or promise.
type Which string

// Ask is a form to be sent. To is a path of the asker's names, or the ID or locator of an agent that it
// holds. The zero value of everything but To, Description and Fields is a good default.
type Ask struct {
	To          string            `json:"to"`
	Description string            `json:"description"`
	Title       string            `json:"title,omitempty"`
	Fields      []events.Field    `json:"fields"`
	Name        string            `json:"name,omitempty"`    // the answer is bound to this name; if it is bound, nothing is sent
	Key         string            `json:"key,omitempty"`     // idempotency key: the same key is the same form
	Deadline    capabilities.Time `json:"deadline,omitzero"` // it expires then
	NoForward   bool              `json:"noForward,omitempty"`
	Origin      *events.Origin    `json:"-"` // of a form asked in a dialect
}

// Request asks for a capability in words.
type Request struct {
	To        string            `json:"to"`
	Text      string            `json:"text"`
	Name      string            `json:"name,omitempty"` // what is given is bound to this name
	Key       string            `json:"key,omitempty"`
	Deadline  capabilities.Time `json:"deadline,omitzero"`
	NoForward bool              `json:"noForward,omitempty"`
}

// Answer is what an agent says to a form. Values are typed; a string for a capability field is a path of
// the answerer's names. Texts are read by their fields' types, as on a command line. A field stands in one
// of the two. Digest, if it is not "", is of the call that was shown: an approval of another call is not answered.
type Answer struct {
	Which  Which                         `json:"which"`
	Digest string                        `json:"digest,omitempty"`
	Values map[string]capabilities.Value `json:"values,omitempty"`
	Texts  []form.Text                   `json:"texts,omitempty"`
}
