package api

// SetAttentionRequest sets how mail reaches the sessions of the agent's coding agent. What is left out stays.
type SetAttentionRequest struct {
	Acting
	AllSessions   *bool   `json:"allSessions,omitempty"`   // each session is offered the agent's mail, and not only the one that was active last
	Quiet         *string `json:"quiet,omitempty"`         // when nothing comes by itself: hours of a day as 22:00-07:00, always or never
	Zone          *string `json:"zone,omitempty"`          // the time zone of quiet, as Europe/Berlin; the node's without it
	Interruptions *string `json:"interruptions,omitempty"` // the least priority that comes in the middle of a turn: urgent, normal, low or none
}

// GetAttentionRequest returns how mail reaches the sessions of the agent's coding agent.
type GetAttentionRequest struct{ Acting }
