package mailbox

import (
	"parley/capabilities"
)

// numbers has the numbers of messages by ID. Nearly all IDs are of the mailbox's own node, and need not name
// it each time.
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
