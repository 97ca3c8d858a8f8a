package events

import (
	"bytes"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"parley/capabilities"
)

// MessagePosted adds a message to a mailbox: its sender's or its recipient's copy, each with its own Number. Via,
// Facet and Key are set in the sender's alone.
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
	Key     string             `json:"key,omitempty"` // idempotency key
}

// postedUnkeyed lifts version 1, which had no Key: it gets an empty one at its end.
func postedUnkeyed(payload []byte) ([]byte, error) {
	if len(payload) == 0 || payload[0] != msgpcode.FixedArrayLow|9 {
		return nil, errMalformed
	}
	lifted := append(bytes.Clone(payload), msgpcode.FixedStrLow)
	lifted[0]++
	return lifted, nil
}

// Span is a piece of a message: words, or a value under an edge name.
type Span struct {
	Words string             `json:"words,omitempty"`
	Edge  string             `json:"edge,omitempty"`
	Value capabilities.Value `json:"value,omitzero"`
}

// MessageDismissed takes a message out of view. It stays in the log.
type MessageDismissed struct {
	Number uint64 `json:"number"`
}

// OutboxKind is the kind of an item of the outbox.
type OutboxKind uint8

// The kinds of items of the outbox.
const (
	OutboxCopy       OutboxKind = 1 // a form or message that the other has not got yet
	OutboxOutcome    OutboxKind = 2 // how a form that the other has a copy of ended
	OutboxRevocation OutboxKind = 3 // that a grant of the other's is revoked
	OutboxForwarded  OutboxKind = 4 // that a form of the other's was handed on
	OutboxMint       OutboxKind = 5 // that the other can be reached by a grant
	OutboxAnswer     OutboxKind = 6 // what the mailbox says to a form of the other's
	OutboxForward    OutboxKind = 7 // its wish that another may answer a form of the other's
)

// MessageDelivered takes items out of the outbox: the mailboxes that they are for have accepted or refused them. Items
// are their numbers, ascending. Refused, if set, is why they were refused.
type MessageDelivered struct {
	Items   []uint64 `json:"parcels"`
	Refused string   `json:"refused,omitempty"`
}

// deliveredOne lifts version 1, which was about one item and repeated its contents.
func deliveredOne(payload []byte) ([]byte, error) {
	var old struct {
		_msgpack    struct{} `msgpack:",as_array"`
		Seq         uint64
		Kind        OutboxKind
		Subject, To capabilities.ID
		Refused     string
	}
	if err := msgpack.Unmarshal(payload, &old); err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	w := writer{enc: msgpack.NewEncoder(&buf)}
	w.delivered(&MessageDelivered{Items: []uint64{old.Seq}, Refused: old.Refused})
	return buf.Bytes(), w.err
}
