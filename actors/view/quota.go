package view

import "parley/capabilities"

// Amounts is an amount for each quota by name. -1 is no limit.
type Amounts map[string]int64

// NodeQuotas has the quotas of agents and of other nodes, and those that use most of theirs. It knows the agents whose
// mailboxes were read since the node started.
type NodeQuotas struct {
	Agents    Amounts    `json:"agents"` // of each, where nothing else is set
	Peers     Amounts    `json:"peers"`  // of each other node, for each mailbox that it sends to
	Heaviest  []AgentUse `json:"heaviestAgents"`
	PeersUsed []PeerUse  `json:"heaviestPeers"`
}

// AgentUse is what an agent, with those that it made, has the node hold.
type AgentUse struct {
	Agent  capabilities.ID `json:"agent"`
	Name   string          `json:"name,omitempty"` // the host's name for it
	Used   Amounts         `json:"used"`
	Quotas Amounts         `json:"quotas"`
	Share  float64         `json:"share"` // of the quota that is fullest
	Quota  string          `json:"quota,omitempty"`
}

// PeerUse is what another node has this one hold, in all mailboxes together, and its quotas in each.
type PeerUse struct {
	Node   capabilities.NodeID `json:"node"`
	Name   string              `json:"name,omitempty"` // the host's name for the other's host
	Used   Amounts             `json:"used"`
	Quotas Amounts             `json:"quotas"`
	Share  float64             `json:"share"` // of the quota that is fullest in one mailbox
	Quota  string              `json:"quota,omitempty"`
}
