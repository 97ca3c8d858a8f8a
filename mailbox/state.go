package mailbox

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"

	"parley/capabilities"
	"parley/events"
	"parley/mailbox/form"
)

// State is a mailbox as its events have made it. Make one with New and change it with Apply alone.
type State struct {
	ID      capabilities.ID
	Version uint64 // events folded so far
	Profile Profile

	messages       []*Message // by number
	byID           numbers
	keys           map[string]uint64 // idempotency keys of what it asked
	results        map[string]uint64 // names awaited by its open forms
	names          map[string]capabilities.Value
	called         map[capabilities.ID][]string // the names of each agent that has one
	given          capabilities.Ledger
	revoked        map[capabilities.ID]capabilities.Time // grants that it was given and lost
	used           map[capabilities.ID]uint32            // uses of grants that it was given
	outbox         []OutboxItem                          // oldest first
	lastSeq        uint64                                // parcels so far
	open           int                                   // forms it asked that are not settled
	approvals      []uint64                              // numbers of the approvals among them, oldest first
	posted         map[string]uint64                     // idempotency keys of messages it sent
	work           work
	profileVersion uint64 // the version after the last event that changed what is said of the agent
	due            dueHeap
	rules          map[capabilities.ID]*Rule
	minted         capabilities.Ledger                        // grants by which it can be reached from other nodes
	minting        int                                        // parcels of grants that their targets do not know yet
	replyGrants    map[capabilities.NodeID]capabilities.Grant // other nodes' leave to write back
	roots          map[capabilities.ID]capabilities.ID        // of the references it was given that have one, by grant
	peers          peerDirectory
	tokens         []Token // that were not revoked

	ownUse  Usage                     // what the agent itself has the node hold
	heldFor map[capabilities.ID]Usage // what others have this mailbox hold, by their IDs, or those of their nodes
	made    map[capabilities.ID]bool  // agents that it made

	nodeText string // "@" and its node, once needed
}

// Profile is what an agent is, apart from its mail.
type Profile struct {
	Kind     events.AgentKind
	Host     capabilities.ID
	By       capabilities.ID
	Title    string
	Labels   map[string]string
	Status   string
	Error    string
	Archived bool
	Created  capabilities.Time
	Updated  capabilities.Time
}

// Message is one message of a mailbox, of those received and those sent. Just one of Form and Posted is there.
type Message struct {
	Number    uint64
	Changed   uint64 // the mailbox's version after the last event about it
	Dismissed bool
	Refused   string // of a message that was sent: why its recipient would not have it
	Form      *Form
	Posted    *events.MessagePosted

	along *Message // of a reply to one that the agent reached by a grant: that which was sent by it
}

// Form is a form in a mailbox: at its home, or a copy.
type Form struct {
	*events.FormRequested
	Holders   []capabilities.ID // at its home: who may answer, in the order in which they came to
	Forwarded []events.FormForwarded
	Answered  *events.FormAnswered  // if it was
	Ended     *events.FormCancelled // if it ended otherwise
	Settled   uint64                // the mailbox's version after its end; 0 while it is open
	Offered   *events.RulesOffered  // of an approval at its home, if it offers rules or says where the call is made

	// In a copy whose home is on another node: what is on its way there, and why it would not have that.
	QueuedAnswer   *events.AnswerQueued
	QueuedForwards []events.ForwardQueued
	Refused        string
}

// OutboxItem is something that a mailbox owes to another. It is in the outbox until the other has it. Seq is its
// number among all that the mailbox ever owed, so that a receipt that comes twice is for one parcel.
type OutboxItem struct {
	Seq     uint64
	Kind    events.OutboxKind
	Subject capabilities.ID // the form, message or grant; of a handover, the grant made for it
	To      capabilities.ID
}

// New makes the state of a mailbox without events.
func New(id capabilities.ID) *State {
	return &State{
		ID:      id,
		byID:    newNumbers(id.Node),
		keys:    map[string]uint64{},
		results: map[string]uint64{},
		names:   map[string]capabilities.Value{},
		called:  map[capabilities.ID][]string{},
		revoked: map[capabilities.ID]capabilities.Time{},
		used:    map[capabilities.ID]uint32{},
		rules:   map[capabilities.ID]*Rule{},
		posted:  map[string]uint64{},
	}
}

// Summary is what the journal notes of the mailbox beside its events.
func (s *State) Summary() events.Summary {
	return events.Summary{Open: uint32(s.open), Outbox: uint32(len(s.outbox) + s.inHand()), Deadline: s.nextDeadline()}
}

// LastSeq returns the number of the newest parcel that the mailbox has ever owed.
func (s *State) LastSeq() uint64 { return s.lastSeq }

// Outbox returns what the mailbox owes, oldest first. The slice is the state's own.
func (s *State) Outbox() []OutboxItem { return s.outbox }

// OutboxAfter returns what is in it of the parcels after a number. The slice is the state's own.
func (s *State) OutboxAfter(seq uint64) []OutboxItem {
	first, _ := slices.BinarySearchFunc(s.outbox, seq+1, func(p OutboxItem, seq uint64) int { return cmp.Compare(p.Seq, seq) })
	return s.outbox[first:]
}

// Approvals returns the agent's questions whether it may make a call that are open, oldest first.
func (s *State) Approvals() []*Message {
	open := make([]*Message, len(s.approvals))
	for i, n := range s.approvals {
		open[i] = s.messages[n]
	}
	return open
}

// Messages returns all messages by number. The slice and what it points to are the state's own.
func (s *State) Messages() []*Message { return s.messages }

// ID is the ID of the message, which is that of its form if it is one.
func (m *Message) ID() capabilities.ID {
	if m.Form != nil {
		return m.Form.ID
	}
	return m.Posted.Message
}

// From is who sent the message; of a form, who asked.
func (m *Message) From() capabilities.ID {
	if m.Form != nil {
		return m.Form.From
	}
	return m.Posted.From
}

// To is whom it was sent to first.
func (m *Message) To() capabilities.ID {
	if m.Form != nil {
		return m.Form.To
	}
	return m.Posted.To
}

// ReplyTo is the message that it replies to; zero if none.
func (m *Message) ReplyTo() capabilities.ID {
	if m.Form != nil {
		return m.Form.ReplyTo
	}
	return m.Posted.ReplyTo
}

// Date is when it was sent.
func (m *Message) Date() capabilities.Time {
	if m.Form != nil {
		return m.Form.Date
	}
	return m.Posted.Date
}

// Sent reports whether the mailbox's agent sent it.
func (s *State) Sent(m *Message) bool { return m.From() == s.ID }

// Received reports whether it was sent to the mailbox's agent, or handed on to it. What an agent sends to
// itself is both sent and received.
func (s *State) Received(m *Message) bool { return m.From() != s.ID || m.To() == s.ID }

// IsOpen reports whether the form has not ended.
func (f *Form) IsOpen() bool { return f.Answered == nil && f.Ended == nil }

// MayAnswer reports whether an agent may settle the form from its copy. Only the form's home can say.
func (f *Form) mayAnswer(by capabilities.ID) bool {
	for _, h := range f.Holders {
		if h == by {
			return true
		}
	}
	return false
}

// Schema compiles the form's fields. What was asked once compiles for ever, or the log is damaged. The state keeps
// no contract: compiled patterns take many times the room of their text.
func (f *Form) Schema() (*form.Schema, error) {
	c, err := form.CompileAccepted(f.Fields)
	if err != nil {
		return nil, fmt.Errorf("form %s: %w", f.ID, err)
	}
	return c, nil
}

// nextDeadline is the earliest deadline of an open form. Deadlines of forms that ended are dropped as they
// come to the top.
func (s *State) nextDeadline() capabilities.Time {
	for len(s.due) > 0 {
		if s.messages[s.due[0].number].Form.IsOpen() {
			return s.due[0].at
		}
		heap.Pop(&s.due)
	}
	return 0
}

type deadline struct {
	at     capabilities.Time
	number uint64
}

func (d deadline) compare(o deadline) int {
	return cmp.Or(cmp.Compare(d.at, o.at), cmp.Compare(d.number, o.number))
}

// dueHeap has the earliest deadline on top.
type dueHeap []deadline

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h dueHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *dueHeap) Push(x any)        { *h = append(*h, x.(deadline)) }
func (h *dueHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
