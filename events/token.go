package events

import (
	"parley/capabilities"
)

// TokenMade lets whoever shows the secret with this digest (SHA-256) act for the agent, within the scopes, until
// the time; zero is for ever.
type TokenMade struct {
	Token  capabilities.ID   `json:"token"`
	Digest []byte            `json:"digest"`
	Scopes []string          `json:"scopes"`
	Until  capabilities.Time `json:"until,omitzero"`
	Note   string            `json:"note,omitempty"` // what it is for
}

// TokenRevoked says that a token is good no more.
type TokenRevoked struct {
	Token capabilities.ID `json:"token"`
}
