package events

import (
	"parley/capabilities"
)

// InvitationMade is in the log of a node's host. Whoever shows the secret with this digest (SHA-256) first,
// before the time, is held under the name from then on.
type InvitationMade struct {
	Invitation capabilities.ID   `json:"invitation"`
	Name       string            `json:"name"`
	Digest     []byte            `json:"digest"`
	Until      capabilities.Time `json:"until"`
	Grant      capabilities.ID   `json:"grant"` // by which who accepts will hold this host
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
}
