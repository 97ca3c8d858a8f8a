package api

// LimitState is the use of a limit.
type LimitState struct {
	Name    string `json:"name"` // as in --limit
	For     string `json:"for"`  // host, agents, listen, socket or peers
	Now     int64  `json:"now"`
	Limit   int64  `json:"limit"`
	Each    int64  `json:"each,omitempty"` // of one agent or address
	Refused uint64 `json:"refused"`        // since the node started
}

// SetQuotaRequest sets quotas of an agent, which it shares with the agents that it makes. Other quotas stay as they are. -1
// is no limit.
type SetQuotaRequest struct {
	Acting
	AgentID string           `json:"agentId"`
	Quotas  map[string]int64 `json:"quotas,omitempty"`
	Reset   bool             `json:"reset,omitempty"` // drop the earlier settings first
}

// GetQuotaRequest asks for the use of an agent's quotas, by it and by the agents that it made.
type GetQuotaRequest struct {
	Acting
	AgentID string `json:"agentId"`
}

// LimitPeerRequest sets quotas of another node. Each holds for every mailbox that the node sends to.
type LimitPeerRequest struct {
	Acting
	Node   string           `json:"node"` // its ID, or the host's name for its host
	Quotas map[string]int64 `json:"quotas,omitempty"`
	Reset  bool             `json:"reset,omitempty"` // drop the earlier settings first
}

// DropPeerRequest ends the relation with another node.
type DropPeerRequest struct {
	Acting
	Node string `json:"node"` // its ID, or the host's name for its host
}
