package events

import (
	"parley/capabilities"
)

// InvitationMade adds an invitation. It is recorded at a node's host. The first node that shows the secret with this
// SHA-256 digest before the time gets the name.
type InvitationMade struct {
	Invitation capabilities.ID   `json:"invitation"`
	Name       string            `json:"name"`
	Digest     []byte            `json:"digest"`
	Until      capabilities.Time `json:"until"`
	Grant      capabilities.ID   `json:"grant"`          // by which the accepting host will hold this one
	Token      capabilities.ID   `json:"token,omitzero"` // the host's token by which it was made; the invitation ends with it
}

// InvitationEnded ends an invitation, by its use or its revocation.
type InvitationEnded struct {
	Invitation capabilities.ID     `json:"invitation"`
	Node       capabilities.NodeID `json:"node,omitzero"` // that used it; zero if it was revoked
}

// NodeMet adds another node, or updates its addresses. It is recorded at a node's host.
type NodeMet struct {
	Node  capabilities.NodeID `json:"node"`
	Host  capabilities.ID     `json:"host,omitzero"` // the other's host; zero if it is known only by introduction
	By    capabilities.NodeID `json:"by,omitzero"`   // the node that introduced it; zero if it came itself
	Hints []string            `json:"hints,omitempty"`
	Stamp capabilities.Time   `json:"stamp"` // the other's time of the hints: the newest win; zero if it was introduced

	Network Network `json:"network,omitempty"` // the nearest in which it may be dialled; AnyNetwork changes nothing
}

// Network is the distance of an address. An address from another node is dialled in no nearer network than the one in
// which that node was met.
type Network string

// The networks, from the farthest to the nearest.
const (
	PublicNetwork  Network = "public"
	PrivateNetwork Network = "private" // of an organisation or a home
	ThisMachine    Network = "machine"
	AnyNetwork     Network = "" // unknown, or no limit
)

// QuotaSet sets the quotas of an agent, or of another node, in place of those set before. All other quotas have their
// defaults. It is recorded at a node's host.
type QuotaSet struct {
	Agent  capabilities.ID     `json:"agent,omitzero"`
	Node   capabilities.NodeID `json:"node,omitzero"` // zero if it is for an agent
	Quotas []QuotaLimit        `json:"quotas,omitempty"`
}

// QuotaLimit is the limit of one quota; -1 is none.
type QuotaLimit struct {
	Name  string `json:"name"`
	Limit int64  `json:"limit"`
}

// NodeDropped removes another node. All grants to it end. It is recorded at a node's host.
type NodeDropped struct {
	Node capabilities.NodeID `json:"node"`
	Date capabilities.Time   `json:"date"`
}

// JournalArchived records that the beginning of the node's journal is in an archive. It is recorded at a node's host
// before anything leaves the journal.
type JournalArchived struct {
	After      Mark              `json:"after,omitzero"` // the last commit of the archive before
	Last       Mark              `json:"last"`           // the last commit of this one
	Checkpoint Hash              `json:"checkpoint"`     // digest of the states of all mailboxes at the last commit
	Segments   []ArchivedSegment `json:"segments"`       // from After to Last, in order
}

// ArchivedSegment is a file with consecutive commits. It follows the segment before it.
type ArchivedSegment struct {
	Last   Mark              `json:"last"`
	From   capabilities.Time `json:"from"` // of its first commit
	To     capabilities.Time `json:"to"`   // of its last commit
	Bytes  int64             `json:"bytes"`
	Digest Hash              `json:"digest"`
}
