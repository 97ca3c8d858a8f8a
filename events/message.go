package events

import (
	"parley/capabilities"
)

// MessagePosted is a message in a mailbox: its sender's or its recipient's copy, each with its own Number.
// Only the sender's has Via and Facet.
type MessagePosted struct {
	Number  uint64             `json:"number"`
	Message capabilities.ID    `json:"message"`
	From    capabilities.ID    `json:"from"`
	To      capabilities.ID    `json:"to"`
	Via     capabilities.ID    `json:"via,omitzero"`   // the grant by which From reached To
	Facet   capabilities.Facet `json:"facet,omitzero"` // and how much of To it held
	Text    []Span             `json:"text"`
	ReplyTo capabilities.ID    `json:"replyTo,omitzero"`
	Date    capabilities.Time  `json:"date"`
}

// Span is a piece of a message: words, or a value that the message carries under an edge name.
type Span struct {
	Words string             `json:"words,omitempty"`
	Edge  string             `json:"edge,omitempty"`
	Value capabilities.Value `json:"value,omitzero"`
}

// MessageDismissed takes a message out of view. The message stays in the log.
type MessageDismissed struct {
	Number uint64 `json:"number"`
}

// ParcelKind says what a mailbox owes to another.
type ParcelKind uint8

// The kinds of parcels.
const (
	ParcelCopy       ParcelKind = 1 // a form or message that the other has not got yet
	ParcelOutcome    ParcelKind = 2 // how a form that the other has a copy of ended
	ParcelRevocation ParcelKind = 3 // that a grant of the other's is revoked
	ParcelForward    ParcelKind = 4 // that a form of the other's was handed on
)

// MessageDelivered says that a parcel has arrived: To's mailbox has it in its log. Seq is its number among
// all that the mailbox ever owed, Subject the form, message or grant that it is about. Refused, if any, is
// why the other would not have it.
type MessageDelivered struct {
	Seq     uint64          `json:"seq"`
	Parcel  ParcelKind      `json:"parcel"`
	Subject capabilities.ID `json:"subject"`
	To      capabilities.ID `json:"to"`
	Refused string          `json:"refused,omitempty"`
}
