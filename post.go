package parley

import "parley/events"

// Priority is how soon a message should be seen: urgent, normal or low. "" is normal.
type Priority = events.Priority

// Header is what a sender says of a message beside its text. It reaches each who is shown the message unchanged.
type Header = events.Header

// MaxRecipients bounds the recipients of a message.
const MaxRecipients = 32

// Post is a message as its sender gives it. Where it goes is said beside it.
type Post struct {
	Header
	Text  string `json:"text"`            // with references as @edge:name or @name
	Plain bool   `json:"plain,omitempty"` // an @ in Text is a plain one
	Key   string `json:"key,omitempty"`   // idempotency key, of 255 bytes at most: the same one is the same message

	Escalate string `json:"escalate,omitempty"` // with AckBy: who gets the message if it is not acknowledged by then
}
