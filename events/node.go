package events

import (
	"bytes"

	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"parley/capabilities"
)

// InvitationMade is in the log of a node's host. Whoever shows the secret with this digest (SHA-256) first,
// before the time, is held under the name from then on.
type InvitationMade struct {
	Invitation capabilities.ID   `json:"invitation"`
	Name       string            `json:"name"`
	Digest     []byte            `json:"digest"`
	Until      capabilities.Time `json:"until"`
	Grant      capabilities.ID   `json:"grant"`          // by which who accepts will hold this host
	Token      capabilities.ID   `json:"token,omitzero"` // the host's token by which it was made, which it ends with
}

// InvitationEnded says that an invitation is good no more: a node has used it, or it was revoked.
type InvitationEnded struct {
	Invitation capabilities.ID     `json:"invitation"`
	Node       capabilities.NodeID `json:"node,omitzero"` // that used it; zero if it was revoked
}

// NodeMet is in the log of a node's host: it knows another node, or where that is to be found from now on.
type NodeMet struct {
	Node  capabilities.NodeID `json:"node"`
	Host  capabilities.ID     `json:"host,omitzero"` // the other's host; zero if it is known only by introduction
	By    capabilities.NodeID `json:"by,omitzero"`   // who introduced it; zero if it came itself
	Hints []string            `json:"hints,omitempty"`
	Stamp capabilities.Time   `json:"stamp"` // the other's clock when it gave the hints: the newest stand; zero if it was introduced

	Network Network `json:"network,omitempty"` // the nearest in which it may be dialled; AnyNetwork leaves that as it was
}

// Network says how near to a node an address is. What strangers say of addresses is dialled in no nearer network than
// the one in which they were met.
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

// QuotaSet is in the log of a node's host. It gives an agent, or another node, quotas of its own. It replaces the one
// before: what it does not mention is as the node was started with.
type QuotaSet struct {
	Agent  capabilities.ID     `json:"agent,omitzero"`
	Node   capabilities.NodeID `json:"node,omitzero"` // zero if it is for an agent
	Quotas []QuotaLimit        `json:"quotas,omitempty"`
}

// QuotaLimit is the limit of one quota. -1 is none.
type QuotaLimit struct {
	Name  string `json:"name"`
	Limit int64  `json:"limit"`
}

// NodeDropped is in the log of a node's host: another node is known no more, nor what it has introduced. What it was
// given before that is void.
type NodeDropped struct {
	Node capabilities.NodeID `json:"node"`
	Date capabilities.Time   `json:"date"`
}
