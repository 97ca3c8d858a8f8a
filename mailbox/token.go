package mailbox

import (
	"bytes"
	"slices"
	"time"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// Token lets whoever shows its secret act for the agent. For a session, Used is the time of the last recorded use,
// Turned the time of its last new secret, and Former the digest of the secret before.
type Token struct {
	events.TokenMade
	Made    capabilities.Time
	Used    capabilities.Time
	Renewed capabilities.Time
	Former  []byte
}

const (
	maxTokens = 1024 // of one agent, that are good
	maxNote   = 255

	// SessionIdle is how long a session lasts without being used.
	SessionIdle = 24 * time.Hour

	// SessionTime is how long a session lasts at most.
	SessionTime = 14 * 24 * time.Hour

	// sessionTurn is how long the secret of a session stays: use renews it no more often.
	sessionRenewal = time.Hour
)

// The scopes of tokens.
const (
	ScopeRead   = "read"   // looks, changes nothing
	ScopeAsk    = "ask"    // sends mail, and ends what the agent asked itself
	ScopeAnswer = "answer" // settles what others asked
	ScopeAdmin  = "admin"  // changes what the agent holds or gave, and the node
	ScopeReveal = "reveal" // opens the secrets that the agent was answered with
)

// TokenScopes returns the scopes that a token can have.
func TokenScopes() []string {
	return []string{ScopeRead, ScopeAsk, ScopeAnswer, ScopeAdmin, ScopeReveal}
}

// End returns the time when the token ends if it is not used again; zero if it never does.
func (t Token) End() capabilities.Time {
	if !t.Session {
		return t.Until
	}
	if idle := t.Used.Add(SessionIdle); t.Until == 0 || idle < t.Until {
		return idle
	}
	return t.Until
}

func (t Token) isOver(now capabilities.Time) bool { return t.End() != 0 && t.End() <= now }

// MakeToken makes a token. Without Scopes it has all but admin, and for the node's host not reveal either. A token
// that is made By another has no scope that Within lacks, and ends no later.
type MakeToken struct {
	Digest []byte
	Scopes []string
	Until  capabilities.Time
	Note   string

	Session bool
	Page    []byte // digest of a session's key

	By     events.TokenRef
	Within TokenBounds
}

// TokenBounds limit what a token can be used for.
type TokenBounds struct {
	Scopes []string
	Until  capabilities.Time
}

func (c MakeToken) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	if err := s.checkActive(); err != nil {
		return nil, err
	}
	if c.By.Agent == s.ID { // it may have ended since it was shown
		if _, err := s.StandingToken(c.By.Token, now); err != nil {
			return nil, err
		}
	}
	if err := c.narrow(s.defaultScopes()); err != nil {
		return nil, err
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
	return []events.Event{&events.TokenMade{
		Token: ids(), Digest: c.Digest, Scopes: c.Scopes, Until: c.Until, Note: c.Note, Session: c.Session, Page: c.Page, By: c.By,
	}}, nil
}

// defaultScopes returns the scopes of a token for which none are named. A guest reads the answers to its forms; a
// token of the host opens secrets only if it says so.
func (s *State) defaultScopes() []string {
	scopes := []string{ScopeRead, ScopeAsk, ScopeAnswer}
	if s.Profile.Kind != events.Host {
		scopes = append(scopes, ScopeReveal)
	}
	return scopes
}

// narrow checks a token's scopes and end, and holds them to those of its maker.
func (c *MakeToken) narrow(unnamed []string) error {
	known, made := TokenScopes(), !c.By.Token.IsZero()
	if len(c.Scopes) == 0 {
		c.Scopes = unnamed
		if made {
			c.Scopes = slices.DeleteFunc(slices.Clone(unnamed), func(scope string) bool { return !slices.Contains(c.Within.Scopes, scope) })
		}
	}
	for _, scope := range c.Scopes {
		switch {
		case !slices.Contains(known, scope):
			return parley.Refuse(parley.InvalidArgument, "unknown scope %.40q", scope).WithHint("scopes are ask, answer, read, reveal and admin")
		case made && !slices.Contains(c.Within.Scopes, scope):
			return parley.Refuse(parley.NotPermitted, "a token that is not good for %s makes none that is", scope).
				WithHint("leave the scope out, or make the token on the node itself")
		}
	}
	c.Scopes = slices.Compact(slices.Sorted(slices.Values(c.Scopes)))
	switch end := c.Within.Until; {
	case !made || end == 0:
	case c.Until == 0 || c.Session && c.Until > end:
		c.Until = end
	case c.Until > end:
		return parley.Refuse(parley.NotPermitted, "a token that is good until %s makes none that is good for longer", end).
			WithHint("give an earlier end, or none")
	}
	return nil
}

// RevokeToken ends a token, with the tokens and invitations that were made by it.
type RevokeToken struct{ Token capabilities.ID }

func (c RevokeToken) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if s.token(c.Token) < 0 {
		return nil, parley.Refuse(parley.NotPermitted, "this agent has no token %s", c.Token).WithHint("parley token ls lists them")
	}
	ended := map[capabilities.ID]bool{c.Token: true}
	evs := []events.Event{&events.TokenRevoked{Token: c.Token}}
	for _, t := range s.tokens { // whoever made another is before it
		if t.By.Agent == s.ID && ended[t.By.Token] {
			ended[t.Token] = true
			evs = append(evs, &events.TokenRevoked{Token: t.Token})
		}
	}
	for _, i := range s.peers.invitations {
		if !i.Ended && ended[i.Token] {
			evs = append(evs, &events.InvitationEnded{Invitation: i.Invitation})
		}
	}
	return evs, nil
}

// RenewToken gives a session a new secret. Without Digest it records that the session is used. It does nothing shortly
// after either.
type RenewToken struct {
	Token  capabilities.ID
	Digest []byte
	Shown  []byte // digest of the secret that was shown
}

func (c RenewToken) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	t, err := s.StandingToken(c.Token, now)
	if err != nil || !t.IsDue(now, len(c.Digest) > 0) {
		return nil, err
	}
	return []events.Event{&events.TokenRenewed{Token: c.Token, Digest: c.Digest, Former: c.Shown}}, nil
}

// IsDue reports whether a session in use is to be renewed, with a new secret or without.
func (t Token) IsDue(now capabilities.Time, secret bool) bool {
	last := t.Used
	if secret {
		last = t.Renewed
	}
	return t.Session && last.Add(sessionRenewal) <= now
}

// applyTokenMade enters a token, and forgets those that have ended.
func (s *State) applyTokenMade(e *events.TokenMade, at capabilities.Time) {
	s.tokens = slices.DeleteFunc(s.tokens, func(t Token) bool { return t.isOver(at) })
	made := Token{TokenMade: *e, Made: at, Used: at, Renewed: at}
	if made.Session && len(made.Page) == 0 { // it is of a time when it was good without a key
		return
	}
	made.Scopes = s.scopesOf(e.Scopes)
	s.tokens = append(s.tokens, made)
}

func (s *State) applyTokenRenewed(e *events.TokenRenewed, at capabilities.Time) {
	i := s.token(e.Token)
	if i < 0 {
		return
	}
	t := &s.tokens[i]
	t.Used = at
	if len(e.Digest) > 0 {
		t.Renewed, t.Digest, t.Former = at, e.Digest, e.Former
	}
}

// scopesOf returns today's scopes for those of an event.
func (s *State) scopesOf(scopes []string) []string {
	i := slices.Index(scopes, events.ScopeRevealOfOld)
	if i < 0 {
		return scopes
	}
	now := slices.Delete(slices.Clone(scopes), i, i+1)
	if s.Profile.Kind != events.Host {
		now = append(now, ScopeReveal)
	}
	return now
}

func (s *State) token(id capabilities.ID) int {
	return slices.IndexFunc(s.tokens, func(t Token) bool { return t.Token == id })
}

// Tokens returns the tokens that are valid at a time, oldest first, if the tokens that made them are. The slice is the
// caller's.
func (s *State) Tokens(now capabilities.Time) []Token {
	return slices.DeleteFunc(slices.Clone(s.tokens), func(t Token) bool { return t.isOver(now) })
}

// CheckToken returns the token whose secret has a digest. A session's page key has to have the digest page too. It
// refuses with UNAUTHENTICATED a token that is not valid. It does not look at the token's maker.
func (s *State) CheckToken(id capabilities.ID, digest, page []byte, now capabilities.Time) (Token, error) {
	i := s.token(id)
	if i < 0 {
		return Token{}, errToken()
	}
	t := s.tokens[i]
	shown := bytes.Equal(t.Digest, digest) || len(t.Former) > 0 && bytes.Equal(t.Former, digest) // of digests, time tells nothing of use
	if !shown || t.Session != (page != nil) || !bytes.Equal(t.Page, page) {
		return Token{}, errToken()
	}
	return s.StandingToken(id, now)
}

// StandingToken returns a token. It refuses with UNAUTHENTICATED one that is not valid.
func (s *State) StandingToken(id capabilities.ID, now capabilities.Time) (Token, error) {
	i := s.token(id)
	switch {
	case i < 0:
		return Token{}, errToken()
	case s.tokens[i].isOver(now):
		return Token{}, parley.Refuse(parley.Unauthenticated, "the token was good until %s", s.tokens[i].End())
	case s.Profile.Archived:
		return Token{}, parley.Refuse(parley.Unauthenticated, "the token's agent is archived")
	}
	return s.tokens[i], nil
}

// hasStanding reports whether a token of the agent, and all those that it comes from, are valid. The zero ID is.
func (s *State) hasStanding(id capabilities.ID, now capabilities.Time) bool {
	for !id.IsZero() {
		t, err := s.StandingToken(id, now)
		if err != nil {
			return false
		}
		id = t.By.Token // that of the node's host are all its own
	}
	return true
}

func errToken() error { return parley.Refuse(parley.Unauthenticated, "the token is not good") }
