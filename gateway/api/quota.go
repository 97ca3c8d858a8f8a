package api

// LimitState is how much of a limit is used.
type LimitState struct {
	Name    string `json:"name"` // as in --limit
	For     string `json:"for"`  // host, agents, listen, socket or peers
	Now     int64  `json:"now"`
	Limit   int64  `json:"limit"`
	Each    int64  `json:"each,omitempty"` // of one agent or address
	Refused uint64 `json:"refused"`        // since the node started
}

// SetQuotaRequest gives an agent, which shares them with those that it makes, quotas of its own. Those that are not
// mentioned stay as they are; -1 is no limit.
type SetQuotaRequest struct {
	Acting
	AgentID string           `json:"agentId"`
	Quotas  map[string]int64 `json:"quotas,omitempty"`
	Reset   bool             `json:"reset,omitempty"` // what was set before is dropped first
}

// GetQuotaRequest asks what an agent, with those that it made, uses of its quotas.
type GetQuotaRequest struct {
	Acting
	AgentID string `json:"agentId"`
}

// LimitPeerRequest gives another node quotas of its own, each for every mailbox that it sends to.
type LimitPeerRequest struct {
	Acting
	Node   string           `json:"node"` // its ID, or the host's name for its host
	Quotas map[string]int64 `json:"quotas,omitempty"`
	Reset  bool             `json:"reset,omitempty"` // what was set before is dropped first
}

// DropPeerRequest ends what the node has to do with another.
type DropPeerRequest struct {
	Acting
	Node string `json:"node"` // its ID, or the host's name for its host
}
