package mailbox

import (
	"cmp"
	"container/heap"

	"parley/capabilities"
	"parley/events"
)

// numbers maps the IDs of messages to their numbers. Nearly all IDs are of the mailbox's own node, whose key is left
// out of the map's keys.
type numbers struct {
	node   capabilities.NodeID
	own    map[[16]byte]uint64
	others map[capabilities.ID]uint64
}

func newNumbers(node capabilities.NodeID) numbers {
	return numbers{node: node, own: map[[16]byte]uint64{}, others: map[capabilities.ID]uint64{}}
}

func (n *numbers) get(id capabilities.ID) (uint64, bool) {
	if id.Node == n.node {
		number, ok := n.own[id.ULID]
		return number, ok
	}
	number, ok := n.others[id]
	return number, ok
}

func (n *numbers) has(id capabilities.ID) bool {
	_, ok := n.get(id)
	return ok
}

func (n *numbers) put(number uint64, id capabilities.ID) {
	if id.Node == n.node {
		n.own[id.ULID] = number
	} else {
		n.others[id] = number
	}
}

// State is a mailbox as its events have made it. New makes one, and Apply alone changes it.
type State struct {
	ID      capabilities.ID
	Version uint64 // events folded so far
	Profile Profile

	messages       []*Message // by number
	byID           numbers
	keys           map[string]uint64 // idempotency keys of what it asked
	results        map[string]uint64 // names awaited by its open forms
	names          map[string]capabilities.Value
	namesOf        map[capabilities.ID][]string // the names of each agent that has one
	given          capabilities.Ledger
	revoked        map[capabilities.ID]capabilities.Time // grants that it was given and lost
	used           map[capabilities.ID]uint32            // uses of grants that it was given
	outbox         []OutboxItem                          // oldest first
	lastSeq        uint64                                // the number of the newest item
	open           int                                   // forms it asked that are not settled
	approvals      []uint64                              // numbers of the approvals among them, oldest first
	posted         map[string]uint64                     // idempotency keys of messages it sent
	work           work
	profileVersion uint64 // the version after the last event that changed what is said of the agent
	due            dueHeap
	origins        map[originKey][]uint64 // numbers of the forms of dialects, until they are settled and dismissed
	rules          map[capabilities.ID]*Rule
	minted         capabilities.Ledger                        // grants by which it can be reached from other nodes
	pendingMints   int                                        // items of grants that their targets do not know yet
	replyGrants    map[capabilities.NodeID]capabilities.Grant // other nodes' leave to write back
	roots          map[capabilities.ID]capabilities.ID        // of the references it was given that have one, by grant
	peers          peerDirectory
	tokens         []Token // that were not revoked

	ownUse  Usage                     // what the agent itself has the node hold
	heldFor map[capabilities.ID]Usage // what others have this mailbox hold, by their IDs, or those of their nodes
	made    map[capabilities.ID]bool  // agents that it made
}

// New returns the state of a mailbox without events.
func New(id capabilities.ID) *State {
	return &State{
		ID:      id,
		byID:    newNumbers(id.Node),
		keys:    map[string]uint64{},
		results: map[string]uint64{},
		names:   map[string]capabilities.Value{},
		namesOf: map[capabilities.ID][]string{},
		revoked: map[capabilities.ID]capabilities.Time{},
		used:    map[capabilities.ID]uint32{},
		rules:   map[capabilities.ID]*Rule{},
		posted:  map[string]uint64{},
	}
}

// Summary returns what the journal notes of the mailbox beside its events.
func (s *State) Summary() events.Summary {
	return events.Summary{Open: uint32(s.open), Outbox: uint32(len(s.outbox) + s.pendingRuns()), Deadline: s.nextDeadline()}
}

// Approvals returns the agent's own open approvals, oldest first.
func (s *State) Approvals() []*Message {
	open := make([]*Message, len(s.approvals))
	for i, n := range s.approvals {
		open[i] = s.messages[n]
	}
	return open
}

// Messages returns all messages by number. The slice and its elements belong to the state.
func (s *State) Messages() []*Message { return s.messages }

// nextDeadline returns the earliest deadline of an open form. It drops the deadlines of forms that ended.
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

func (h dueHeap) Len() int { return len(h) }

func (h dueHeap) Less(i, j int) bool { return h[i].at < h[j].at }

func (h dueHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *dueHeap) Push(x any) { *h = append(*h, x.(deadline)) }

func (h *dueHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
