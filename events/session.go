package events

import "parley/capabilities"

// SessionStarted adds a session of a coding agent to the mailbox of its address, which is the agent of the folder that it
// works in. Agent is the session's own agent.
type SessionStarted struct {
	Agent   capabilities.ID `json:"agent"`
	Session string          `json:"session"` // the coding agent's ID for it
	Process SessionProcess  `json:"process,omitzero"`
}

// SessionMoved has a session go on: under another ID of the coding agent's, or in another process. One that had ended lives
// again.
type SessionMoved struct {
	Agent   capabilities.ID `json:"agent"`
	Session string          `json:"session"`
	Process SessionProcess  `json:"process,omitzero"`
}

// SessionEnded ends a session. Forgotten removes one that has ended from the address's list, because its agent is archived.
type SessionEnded struct {
	Agent     capabilities.ID `json:"agent"`
	Forgotten bool            `json:"forgotten,omitempty"`
}

// SessionProcess is the process of a coding agent. Its start tells it from a later one with the same ID. The zero process is
// one that is not known.
type SessionProcess struct {
	PID   int    `json:"pid"`
	Start string `json:"start"`
}
