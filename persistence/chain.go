package persistence

import (
	"errors"

	"parley/capabilities"
	"parley/events"
)

// chain follows the log: each frame must have the next number, be the node's, and name the one before.
type chain struct {
	node capabilities.NodeID
	last mark
	open bool // the hash before the next frame is not known: whatever it names is taken
}

// chainFrom follows the log from commit first on. Only for the first of all is it known what comes before.
func chainFrom(node capabilities.NodeID, first uint64) *chain {
	return &chain{node: node, last: mark{number: first - 1}, open: first > 1}
}

// follow checks the next frame and gives its commit.
func (c *chain) follow(number uint64, bytes []byte) (*events.Commit, error) {
	want := c.last.number + 1
	if number != want {
		return nil, lost(want, "is missing")
	}
	commit, hash, err := decode(number, bytes)
	if err != nil {
		return nil, err
	}
	switch {
	case commit.Node != c.node:
		return nil, lost(number, "is of node %s", commit.Node)
	case commit.Prev != c.last.hash && !c.open:
		return nil, lost(number, "does not follow the one before it: one of the two is not what was written")
	}
	c.last, c.open = mark{number, hash}, false
	return commit, nil
}

// decode reads the frame stored under a number.
func decode(number uint64, bytes []byte) (*events.Commit, events.Hash, error) {
	commit, hash, err := events.DecodeCommit(bytes)
	if unknown, ok := errors.AsType[*events.UnknownError](err); ok {
		return nil, hash, lost(number, "was written by a newer program: %v", unknown).WithHint("start the newer program")
	}
	if err != nil {
		return nil, hash, lost(number, "is damaged: %v", err)
	}
	if commit.Number != number {
		return nil, hash, lost(number, "is stored where commit %d should be", commit.Number)
	}
	return commit, hash, nil
}

// confirm checks that a mark's commit is what it says, when the chain passes it.
func (c *chain) confirm(m mark) error {
	if c.last.number == m.number && c.last.hash != m.hash {
		return lost(m.number, "is not the one that was durable")
	}
	return nil
}
