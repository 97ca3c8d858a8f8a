package events

import (
	"parley/capabilities"
)

// NameBound binds a name to a value, in place of its value before.
type NameBound struct {
	Name  string             `json:"name"`
	Value capabilities.Value `json:"value"`
}

// NameUnbound frees a name.
type NameUnbound struct {
	Name string `json:"name"`
}

// CapabilityGranted adds a grant. It is recorded at the giver.
type CapabilityGranted struct {
	Grant capabilities.Grant `json:"grant"`
}

// CapabilityMinted adds a grant by which the agent can be reached from another node. It is recorded at the target. The
// grant's Parent is the one by which its giver holds the target.
type CapabilityMinted struct {
	Grant capabilities.Grant `json:"grant"`
}

// CapabilityRevoked revokes a grant, with everything derived from it in the same mailbox. It is recorded at the giver
// and at the holder.
type CapabilityRevoked struct {
	Grant capabilities.ID   `json:"grant"`
	By    capabilities.ID   `json:"by"`
	Date  capabilities.Time `json:"date"`
}

// AnswerGranted adds a right to answer a form in the agent's place. With the same grant again, it records a use of the
// right. The grant's target is the form's resolver, its message the form, and its facet limits time and uses. The
// bearer of the secret with this SHA-256 digest may use it. It ends with By, the token by which it was made.
type AnswerGranted struct {
	Grant    capabilities.Grant `json:"grant"`
	Outcomes []string           `json:"outcomes"` // decisions of an approval, or answer and decline
	Revision uint64             `json:"revision"` // of the question
	Digest   []byte             `json:"digest"`
	Used     uint32             `json:"used,omitempty"`
	Last     string             `json:"last,omitempty"` // the mark of the last use: equal for equal answers
	By       TokenRef           `json:"by,omitzero"`
}

// TokenMade adds a token. The bearer of the secret with this SHA-256 digest acts for the agent, within the scopes,
// until the time; zero is without end. A Session is for a browser: it is valid only in a cookie, with the key that has
// the digest Page. It ends if it is not used. The token ends with By, the token by which it was made.
type TokenMade struct {
	Token   capabilities.ID   `json:"token"`
	Digest  []byte            `json:"digest"`
	Scopes  []string          `json:"scopes"`
	Until   capabilities.Time `json:"until,omitzero"`
	Note    string            `json:"note,omitempty"` // for people
	Session bool              `json:"session,omitempty"`
	Page    []byte            `json:"page,omitempty"`
	By      TokenRef          `json:"by,omitzero"`
}

// TokenRef identifies a token of an agent.
type TokenRef struct {
	Agent capabilities.ID `json:"agent"`
	Token capabilities.ID `json:"token"`
}

// TokenRevoked ends a token.
type TokenRevoked struct {
	Token capabilities.ID `json:"token"`
}

// TokenRenewed records the use of a session, and gives it a new secret. Former is the digest of the secret that was
// shown, which stays valid until the next renewal. Without a digest the secrets stay.
type TokenRenewed struct {
	Token  capabilities.ID `json:"token"`
	Digest []byte          `json:"digest,omitempty"`
	Former []byte          `json:"former,omitempty"`
}
