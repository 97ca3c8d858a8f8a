package mailbox

import (
	"bytes"
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// Token lets who shows its secret act for the agent.
type Token struct {
	events.TokenMade
	Made capabilities.Time
}

const (
	maxTokens = 1024 // of one agent, that are good
	maxNote   = 255
)

// TokenScopes are what a token can be good for.
func TokenScopes() []string { return []string{"read", "ask", "answer", "admin"} }

// MakeToken makes a token. Without scopes it is good for all but administration.
type MakeToken struct {
	Digest []byte
	Scopes []string
	Until  capabilities.Time
	Note   string
}

func (c MakeToken) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	if err := s.checkActive(); err != nil {
		return nil, err
	}
	known := TokenScopes()
	if len(c.Scopes) == 0 {
		c.Scopes = known[:3]
	}
	for _, scope := range c.Scopes {
		if !slices.Contains(known, scope) {
			return nil, parley.Refuse(parley.InvalidArgument, "unknown scope %.40q", scope).WithHint("scopes are ask, answer, read and admin")
		}
	}
	if c.Until != 0 && c.Until <= now {
		return nil, parley.Refuse(parley.InvalidArgument, "the token would have ended at %s", c.Until)
	}
	if err := checkText("a note", c.Note, maxNote); err != nil {
		return nil, err
	}
	if len(s.Tokens(now)) >= maxTokens {
		return nil, parley.Refuse(parley.QuotaExceeded, "the agent has %d tokens already", maxTokens).WithHint("parley token revoke ID ends one")
	}
	scopes := slices.Compact(slices.Sorted(slices.Values(c.Scopes)))
	return []events.Event{&events.TokenMade{Token: ids(), Digest: c.Digest, Scopes: scopes, Until: c.Until, Note: c.Note}}, nil
}

// RevokeToken ends a token.
type RevokeToken struct{ Token capabilities.ID }

func (c RevokeToken) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if s.token(c.Token) < 0 {
		return nil, parley.Refuse(parley.NotPermitted, "this agent has no token %s", c.Token).WithHint("parley token ls lists them")
	}
	return []events.Event{&events.TokenRevoked{Token: c.Token}}, nil
}

func (s *State) token(id capabilities.ID) int {
	return slices.IndexFunc(s.tokens, func(t Token) bool { return t.Token == id })
}

// Tokens returns the tokens that are good at a time, oldest first. The slice is the caller's.
func (s *State) Tokens(now capabilities.Time) []Token {
	return slices.DeleteFunc(slices.Clone(s.tokens), func(t Token) bool { return t.Until != 0 && t.Until <= now })
}

// CheckToken gives the token whose secret has a digest. It refuses with UNAUTHENTICATED one that is not good.
func (s *State) CheckToken(id capabilities.ID, digest []byte, now capabilities.Time) (Token, error) {
	i := s.token(id)
	if i < 0 || !bytes.Equal(s.tokens[i].Digest, digest) { // of digests, time tells nothing of use
		return Token{}, parley.Refuse(parley.Unauthenticated, "the token is not good")
	}
	if t := s.tokens[i]; t.Until != 0 && t.Until <= now {
		return t, parley.Refuse(parley.Unauthenticated, "the token was good until %s", t.Until)
	}
	if s.Profile.Archived {
		return Token{}, parley.Refuse(parley.Unauthenticated, "the token's agent is archived")
	}
	return s.tokens[i], nil
}
