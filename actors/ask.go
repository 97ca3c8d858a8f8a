package actors

import (
	"parley/capabilities"
	"parley/events"
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

// Asked is an accepted ask: it is on disk. Outcome is there if the form was settled already, or, with no
// Form, if the name it was to be bound to was bound already.
type Asked struct {
	Form    capabilities.ID `json:"form,omitzero"`
	Promise capabilities.ID `json:"promise,omitzero"`
	Number  uint64          `json:"number"`
	Outcome *Outcome        `json:"outcome,omitempty"`

	// Unreachable says that the recipient's node cannot be reached now: the form goes there when it can.
	Unreachable bool `json:"unreachable,omitempty"`
}

// Status says where a form stands.
type Status string

// The statuses. All but StatusOpen are ends.
const (
	StatusOpen       Status = "open"
	StatusAnswered   Status = "answered"
	StatusCancelled  Status = "cancelled"
	StatusDeclined   Status = "declined"
	StatusExpired    Status = "expired"
	StatusSuperseded Status = "superseded"

	// StatusAnswering is an answer that is kept, and on its way to a home that cannot be reached. The form is
	// open until it arrives.
	StatusAnswering Status = "answering"
)

// Outcome is how a form ended. Values is a record, in the clear for the asker and masked for others where
// a field is secret; Order has the names in it as the form orders them.
type Outcome struct {
	Status  Status             `json:"status"`
	Form    capabilities.ID    `json:"form,omitzero"`
	Promise capabilities.ID    `json:"promise,omitzero"`
	By      capabilities.ID    `json:"by,omitzero"`
	ByName  string             `json:"byName,omitempty"` // the caller's name for By
	At      capabilities.Time  `json:"at,omitzero"`
	Note    string             `json:"note,omitempty"` // in words, by who declined or cancelled
	Values  capabilities.Value `json:"values,omitzero"`
	Order   []string           `json:"order,omitempty"`

	// Of an approval, to who asked it. Allowed says that the agent's host has allowed the call that Digest is of: another
	// who was asked has an opinion, and allows nothing.
	Digest  string `json:"digest,omitempty"`
	Allowed bool   `json:"allowed,omitempty"`

	answer capabilities.ID // of which settlement it is, if that came from another node
}
