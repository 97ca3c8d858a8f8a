package events

// Attention is what an agent has set of how mail reaches the sessions of its coding agent, or a client of MCP that acts for it. The
// zero value is what holds where nothing was set.
type Attention struct {
	AllSessions   bool   `json:"allSessions,omitempty"`   // each session is offered the agent's mail, and not only the one that was active last
	Quiet         string `json:"quiet,omitempty"`         // when nothing comes by itself: hours of a day as 22:00-07:00, always, or "" for never
	Zone          string `json:"zone,omitempty"`          // the IANA time zone of Quiet; "" is the node's
	Interruptions string `json:"interruptions,omitempty"` // the least priority that comes in the middle of a turn, low or normal, or none; "" is urgent
}

// AttentionSet records the whole of what an agent has set.
type AttentionSet struct{ Attention }
