package events

import (
	"bytes"

	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"parley/capabilities"
)

// InvitationMade adds an invitation. It is in the log of a node's host. The first node that shows the secret with this
// digest (SHA-256), before the time, is held under the name from then on.
type InvitationMade struct {
	Invitation capabilities.ID   `json:"invitation"`
	Name       string            `json:"name"`
	Digest     []byte            `json:"digest"`
	Until      capabilities.Time `json:"until"`
	Grant      capabilities.ID   `json:"grant"`          // by which who accepts will hold this host
	Token      capabilities.ID   `json:"token,omitzero"` // the host's token by which it was made, which it ends with
}

// InvitationEnded ends an invitation: a node has used it, or it was revoked.
type InvitationEnded struct {
	Invitation capabilities.ID     `json:"invitation"`
	Node       capabilities.NodeID `json:"node,omitzero"` // that used it; zero if it was revoked
}

// NodeMet adds another node, or updates its addresses. It is in the log of a node's host.
type NodeMet struct {
	Node  capabilities.NodeID `json:"node"`
	Host  capabilities.ID     `json:"host,omitzero"` // the other's host; zero if it is known only by introduction
	By    capabilities.NodeID `json:"by,omitzero"`   // who introduced it; zero if it came itself
	Hints []string            `json:"hints,omitempty"`
	Stamp capabilities.Time   `json:"stamp"` // the other's clock when it gave the hints: the newest stand; zero if it was introduced

	Network Network `json:"network,omitempty"` // the nearest in which it may be dialled; AnyNetwork leaves that as it was
}

// Network is how near to a node an address is. An address from a stranger is dialled in no nearer network than the one
// in which the stranger was met.
type Network string

// The networks, from the farthest to the nearest.
const (
	PublicNetwork  Network = "public"
	PrivateNetwork Network = "private" // of an organisation or a house
	ThisMachine    Network = "machine"
	AnyNetwork     Network = "" // nothing is known: of nodes met by programs before there was this
)

// metAnywhere lifts version 1, which had no Network: it gets none at its end.
func metAnywhere(payload []byte) ([]byte, error) {
	if len(payload) == 0 || payload[0] != msgpcode.FixedArrayLow|5 {
		return nil, errMalformed
	}
	lifted := append(bytes.Clone(payload), msgpcode.FixedStrLow)
	lifted[0]++
	return lifted, nil
}

// QuotaSet sets the quotas of an agent, or of another node, in place of those set before. Quotas that it does not
// mention have their defaults. It is in the log of a node's host.
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

// NodeDropped removes another node. What it was given before is void. It is in the log of a node's host.
type NodeDropped struct {
	Node capabilities.NodeID `json:"node"`
	Date capabilities.Time   `json:"date"`
}
