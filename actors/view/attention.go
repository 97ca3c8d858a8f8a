package view

import (
	"parley"
	"parley/capabilities"
	"parley/events"
)

// Attention is what an agent has set of how mail reaches the sessions of its coding agent, and what follows now.
type Attention struct {
	Agent capabilities.ID `json:"agent"` // whose it is: of a session, the address
	parley.Attention

	IsQuiet    bool              `json:"isQuiet,omitempty"`   // nothing comes by itself now
	QuietUntil capabilities.Time `json:"quietUntil,omitzero"` // then it does again; 0 if it is not quiet, or always
}

// SessionWords says which sessions are told of mail for their address.
func (a Attention) SessionWords() string {
	if a.AllSessions {
		return "each session is told"
	}
	return "the session that was active last is told"
}

// QuietWords says when nothing comes by itself.
func (a Attention) QuietWords() string {
	switch {
	case a.Quiet == "":
		return parley.QuietNever
	case a.Zone != "":
		return a.Quiet + " in " + a.Zone
	}
	return a.Quiet
}

// InterruptionWords says what comes in the middle of a turn.
func (a Attention) InterruptionWords() string {
	switch a.Interruptions {
	case "":
		return "what is urgent"
	case parley.NoInterruptions:
		return "nothing"
	case string(events.Normal):
		return "what is normal or urgent"
	}
	return "all mail"
}
