package view

import (
	"parley"
	"parley/capabilities"
)

// NodeState is the state of a node.
type NodeState struct {
	Node      capabilities.NodeID `json:"node"`
	Name      string              `json:"name"`
	Agents    int                 `json:"agents"`
	OpenForms int                 `json:"openForms"`
	Active    int                 `json:"active"` // mailboxes in memory
	Journal   JournalState        `json:"journal"`
	Problem   *parley.Error       `json:"problem,omitempty"` // READ_ONLY, CORRUPT_LOG; nil when well
}

// JournalState is the size of a journal.
type JournalState struct {
	Commits uint64 `json:"commits"`
	Events  uint64 `json:"events"`
	Bytes   uint64 `json:"bytes"`

	Archived     uint64 `json:"archived,omitempty"`     // the last commit that is in the archive
	ArchiveBytes uint64 `json:"archiveBytes,omitempty"` // of all its segments, wherever they are

	// Flushing is the number of seconds for which the disk has been at one flush, which all writes wait for. It is left
	// out while the disk keeps up.
	Flushing int `json:"flushing,omitempty"`

	// Behind is the number of seconds by which the clock is behind the newest time in the log, from a minute on.
	Behind int `json:"behind,omitempty"`
}

// ActorState is the state of one of a node's actors.
type ActorState struct {
	Name     string `json:"name"`              // a path below the node, such as agents/ULID/program or peers/NODE
	Restarts int    `json:"restarts"`          // after crashes
	Problem  string `json:"problem,omitempty"` // why the actor refuses its messages

	// Snapshots is, for the journal, how often a snapshot was discarded as unreadable since the node was started.
	Snapshots int `json:"discardedSnapshots,omitempty"`
}

// Invitation is good for one node, once, until its time. Locator is the secret of the invitation. It is shown when the
// invitation is made, and never again.
type Invitation struct {
	ID      capabilities.ID   `json:"id"`
	Name    string            `json:"name"`
	Until   capabilities.Time `json:"until"`
	Locator string            `json:"locator,omitempty"`
}

// Accepted is the result of accepting an invitation: the host of the other node, and its name.
type Accepted struct {
	Name string              `json:"name"`
	Node capabilities.NodeID `json:"node"`
	Host capabilities.ID     `json:"host"`
}

// Peer is another node that this one knows.
type Peer struct {
	Node      capabilities.NodeID `json:"node"`
	Name      string              `json:"name,omitempty"` // the host's name for the other's host
	Host      capabilities.ID     `json:"host,omitzero"`  // zero if it is known only by introduction
	Hints     []string            `json:"hints,omitempty"`
	Reachable bool                `json:"reachable"`
	LastHeard capabilities.Time   `json:"lastHeard,omitzero"` // zero if not since this node started
	Waiting   int                 `json:"waiting"`            // outbox items for it that have not arrived
	Traffic   Traffic             `json:"traffic"`
	Use       PeerUse             `json:"use"`
}

// Traffic counts what went between this node and another, or all others, since this one started.
type Traffic struct {
	PacketsIn  uint64 `json:"lettersIn"`
	PacketsOut uint64 `json:"lettersOut"`
	BytesIn    uint64 `json:"bytesIn"`
	BytesOut   uint64 `json:"bytesOut"`
	MailIn     uint64 `json:"mailIn"` // outbox items
	MailOut    uint64 `json:"mailOut"`
	Refused    uint64 `json:"refused"` // packets that were forged, altered, malformed, oversized or foreign
}

// DroppedPeer is the result of dropping a node.
type DroppedPeer struct {
	Node       capabilities.NodeID `json:"node"`
	Names      int                 `json:"names"`      // of the host's for its agents, that are free now
	Introduced int                 `json:"introduced"` // nodes that it had introduced, and that are known no more
	Revoked    int                 `json:"revoked"`    // grants to its agents
	Given      int                 `json:"givenUp"`    // items for it that will not be sent
}
