package events

import (
	"github.com/vmihailenco/msgpack/v5"

	"parley/capabilities"
)

// NameBound binds a name to a value, in place of the one before.
type NameBound struct {
	Name  string             `json:"name"`
	Value capabilities.Value `json:"value"`
}

// NameUnbound frees a name.
type NameUnbound struct {
	Name string `json:"name"`
}

// CapabilityGranted adds a grant. It is in the giver's log.
type CapabilityGranted struct {
	Grant capabilities.Grant `json:"grant"`
}

// CapabilityMinted lets the target of a grant be reached by it from another node. It is in the target's log. The
// grant's Parent is the one by which its giver holds the target.
type CapabilityMinted struct {
	Grant capabilities.Grant `json:"grant"`
}

// CapabilityRevoked revokes a grant, with everything derived from it in the same mailbox. It is in the giver's log and
// in the holder's.
type CapabilityRevoked struct {
	Grant capabilities.ID   `json:"grant"`
	By    capabilities.ID   `json:"by"`
	Date  capabilities.Time `json:"date"`
}

// TokenMade lets whoever shows the secret with this digest (SHA-256) act for the agent, within the scopes, until
// the time; zero is for ever. A Session is a browser's: it is good in a cookie alone, beside the key with the digest
// Page, and ends when it is not used. By is the token by which it was made, which it ends with.
type TokenMade struct {
	Token   capabilities.ID   `json:"token"`
	Digest  []byte            `json:"digest"`
	Scopes  []string          `json:"scopes"`
	Until   capabilities.Time `json:"until,omitzero"`
	Note    string            `json:"note,omitempty"` // what it is for
	Session bool              `json:"session,omitempty"`
	Page    []byte            `json:"page,omitempty"`
	By      TokenRef          `json:"by,omitzero"`
}

// TokenRef names a token and the agent whose it is.
type TokenRef struct {
	Agent capabilities.ID `json:"agent"`
	Token capabilities.ID `json:"token"`
}

// TokenRevoked says that a token is good no more.
type TokenRevoked struct {
	Token capabilities.ID `json:"token"`
}

// TokenRenewed says that a session is used, and gives it another secret. Former is that of the one that was shown,
// which stays good until the next. Without a digest the secrets stay.
type TokenRenewed struct {
	Token  capabilities.ID `json:"token"`
	Digest []byte          `json:"digest,omitempty"`
	Former []byte          `json:"former,omitempty"`
}

// ScopeRevealOfOld is a scope of tokens that were made before there was the scope "reveal": that one, but for the
// node's host.
const ScopeRevealOfOld = "reveal of old"

// oldSession is the note of a browser's session in version 1, where it was a token as any other.
const oldSession = "a browser's session"

// tokenAlone lifts version 1, which had neither sessions nor By.
func tokenAlone(payload []byte) ([]byte, error) {
	var old struct {
		_msgpack struct{} `msgpack:",as_array"`
		Token    capabilities.ID
		Digest   []byte
		Scopes   []string
		Until    capabilities.Time
		Note     string
	}
	if err := msgpack.Unmarshal(payload, &old); err != nil {
		return nil, err
	}
	return encodeLifted(&TokenMade{
		Token: old.Token, Digest: old.Digest, Scopes: append(old.Scopes, ScopeRevealOfOld), Until: old.Until, Note: old.Note, Session: old.Note == oldSession,
	})
}
