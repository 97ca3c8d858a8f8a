package view

import (
	"parley/capabilities"
	"parley/events"
)

// Passkey is a passkey with which a person signs decisions of an agent.
type Passkey struct {
	Passkey     capabilities.ID   `json:"passkey"`
	Name        string            `json:"name"`
	Origin      string            `json:"origin"`      // of the page on which alone it is good
	Key         []byte            `json:"key"`         // the public key, as SubjectPublicKeyInfo
	Fingerprint string            `json:"fingerprint"` // of that
	Added       capabilities.Time `json:"added"`
	Used        capabilities.Time `json:"used,omitzero"` // when it signed last
}

// PasskeyNeed says which decisions on calls of an agent are signed with a passkey. Without an agent it is of all that have none of their
// own.
type PasskeyNeed struct {
	Agent capabilities.ID    `json:"agent,omitzero"`
	Name  string             `json:"name,omitempty"` // what the one who decides calls it
	Need  events.PasskeyNeed `json:"need"`
}
