package events

import (
	"parley/capabilities"
	"parley/internal/pack"
)

// MessageState is how far a message has come with its reader. It only moves forward, but that an offer without proof can
// be returned.
type MessageState string

// The states of a message, in their order.
const (
	Delivered MessageState = "delivered" // it is in the recipient's mailbox
	Offered   MessageState = "offered"   // a notice of it reached a reader
	Shown     MessageState = "shown"     // the reader had its text, and that was seen
	Handled   MessageState = "handled"   // it was read in full, replied to, acknowledged or dismissed, or worked on
)

// Rank returns the place of a state in their order: 0 for Delivered and for what is none.
func (s MessageState) Rank() uint8 {
	switch s {
	case Offered:
		return 1
	case Shown:
		return 2
	case Handled:
		return 3
	}
	return 0
}

// Handling is how a message was handled, or shown without a transcript.
type Handling string

// The ways of handling a message.
const (
	WasRead         Handling = "read"
	WasReplied      Handling = "replied"
	WasAcknowledged Handling = "acknowledged"
	WasDismissed    Handling = "dismissed"
	ProgramStarted  Handling = "program started"
	ProgramEnded    Handling = "program ended"
)

// MessagesOffered is a notice of messages with a token that reached a reader at a moment of its program, as in
// "PostToolBatch". Each of several readers is offered all mail if Each is set; without numbers it is from now on.
type MessagesOffered struct {
	Reader  capabilities.ID `json:"reader"`
	Token   string          `json:"token"`
	Numbers []uint64        `json:"numbers"`
	Moment  string          `json:"moment,omitempty"`
	Each    bool            `json:"each,omitempty"`
}

// MessagesShown records that a reader had the text of messages. Proof says how that was seen. It ends the part of the
// reader's offers that it is about. Without a token it is of no offer: the agent marked them as read.
type MessagesShown struct {
	Reader  capabilities.ID `json:"reader"`
	Token   string          `json:"token,omitempty"`
	Numbers []uint64        `json:"numbers"`
	Proof   string          `json:"proof"`
}

// MessagesHandled records what a reader did with messages.
type MessagesHandled struct {
	Reader  capabilities.ID `json:"reader"`
	Numbers []uint64        `json:"numbers"`
	How     Handling        `json:"how"`
}

// OffersReturned ends offers of a reader that were not shown: those messages are offered again. No tokens are all of its
// offers, and the reader is gone.
type OffersReturned struct {
	Reader capabilities.ID `json:"reader"`
	Tokens []string        `json:"tokens,omitempty"`
}

// NoticeRepeated says again that an offer without proof reached its reader, at a later moment: the first notice came to nothing.
type NoticeRepeated struct {
	Reader capabilities.ID `json:"reader"`
	Token  string          `json:"token"`
	Moment string          `json:"moment"`
}

// MessagesFetched records that the texts of messages that a reader was offered were returned to it. That they reached its model
// is known once they are shown: the call that fetched them may have been lost.
type MessagesFetched struct {
	Reader  capabilities.ID `json:"reader"`
	Numbers []uint64        `json:"numbers"`
}

// ReceiptReported records at the sender of a message how far it has come with its recipient By. Reader is who had it there.
type ReceiptReported struct {
	Message capabilities.ID   `json:"message"`
	By      capabilities.ID   `json:"by"`
	Reader  capabilities.ID   `json:"reader"`
	State   MessageState      `json:"state"`
	How     string            `json:"how,omitempty"`
	Date    capabilities.Time `json:"date"`
}

// MessagesOverdue records that the time has passed by which messages were to be acknowledged, at the sender and at the
// recipient. There they come back unread, once.
type MessagesOverdue struct {
	Numbers []uint64 `json:"numbers"`
}

func appendReported(b []byte, e *ReceiptReported) []byte {
	b = appendIDs(pack.AppendArray(b, 6), &e.Message, &e.By, &e.Reader)
	return e.Date.AppendMsgpack(appendTexts(b, string(e.State), e.How))
}
