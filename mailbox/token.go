package mailbox

import (
	"bytes"
	"slices"
	"time"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// Token lets the bearer of its secret act for the agent. For a session, Used is the time of the last recorded use, and
// Renewed that of its newest secret. Former is the digest of the previous secret.
type Token struct {
	events.TokenMade
	Made    capabilities.Time
	Used    capabilities.Time
	Renewed capabilities.Time
	Former  []byte
}

const (
	maxTokens = 1024 // valid ones, of one agent
	maxNote   = 255

	// SessionIdle is the time after which an unused session ends.
	SessionIdle = 24 * time.Hour

	// SessionTime is the longest time that a session lasts.
	SessionTime = 14 * 24 * time.Hour

	// sessionRenewal is the time after which use renews the secret of a session.
	sessionRenewal = time.Hour
)

// The scopes of tokens.
const (
	ScopeRead   = "read"   // reads, and changes nothing
	ScopeAsk    = "ask"    // sends mail, and ends the agent's own forms
	ScopeAnswer = "answer" // settles the forms of others
	ScopeAdmin  = "admin"  // changes names, grants and the node
	ScopeReveal = "reveal" // opens secrets in answers
)

// TokenScopes returns the scopes that a token can have.
func TokenScopes() []string {
	return []string{ScopeRead, ScopeAsk, ScopeAnswer, ScopeAdmin, ScopeReveal}
}

// End returns the time when the token ends if it is not used again; zero if it never ends.
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
	if err := s.Profile.checkActive(); err != nil {
		return nil, err
	}
	if c.By.Agent == s.ID { // that token may have ended meanwhile
		if _, err := s.Tokens.Get(c.By.Token, now); err != nil {
			return nil, err
		}
	}
	if err := c.narrow(s.Tokens.defaultScopes()); err != nil {
		return nil, err
	}
	if err := checkEnd(c.Until, now); err != nil {
		return nil, err
	}
	if err := checkText("a note", c.Note, maxNote); err != nil {
		return nil, err
	}
	if len(s.Tokens.all) >= maxTokens && len(s.Tokens.Valid(now)) >= maxTokens {
		return nil, parley.Refuse(parley.QuotaExceeded, "the agent has %d tokens already", maxTokens).WithHint("parley token revoke ID ends one")
	}
	return []events.Event{&events.TokenMade{
		Token: ids(), Digest: c.Digest, Scopes: c.Scopes, Until: c.Until, Note: c.Note, Session: c.Session, Page: c.Page, By: c.By,
	}}, nil
}

// narrow checks the token's scopes and end, and limits them to those of its maker. Without scopes, the token has the
// given defaults.
func (c *MakeToken) narrow(defaults []string) error {
	known, made := TokenScopes(), !c.By.Token.IsZero()
	if len(c.Scopes) == 0 {
		c.Scopes = defaults
		if made {
			c.Scopes = slices.DeleteFunc(slices.Clone(defaults), func(scope string) bool { return !slices.Contains(c.Within.Scopes, scope) })
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
	if s.Tokens.index(c.Token) < 0 {
		return nil, parley.Refuse(parley.NotPermitted, "this agent has no token %s", c.Token).WithHint("parley token ls lists them")
	}
	ended := map[capabilities.ID]bool{c.Token: true}
	evs := []events.Event{&events.TokenRevoked{Token: c.Token}}
	for _, t := range s.Tokens.all { // a token comes after its maker
		if t.By.Agent == s.ID && ended[t.By.Token] {
			ended[t.Token] = true
			evs = append(evs, &events.TokenRevoked{Token: t.Token})
		}
	}
	for _, i := range s.Peers.invitations {
		if !i.Ended && ended[i.Token] {
			evs = append(evs, &events.InvitationEnded{Invitation: i.Invitation})
		}
	}
	return evs, nil
}

// RenewToken gives a session a new secret. Without Digest it records that the session is used. It has no effect until
// the session is due: see Token.IsDue.
type RenewToken struct {
	Token  capabilities.ID
	Digest []byte
	Shown  []byte // digest of the secret that was shown
}

func (c RenewToken) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	t, err := s.Tokens.Get(c.Token, now)
	if err != nil || !t.IsDue(now, len(c.Digest) > 0) {
		return nil, err
	}
	return []events.Event{&events.TokenRenewed{Token: c.Token, Digest: c.Digest, Former: c.Shown}}, nil
}

// IsDue reports whether a session in use has to be renewed, with a new secret or without.
func (t Token) IsDue(now capabilities.Time, secret bool) bool {
	last := t.Used
	if secret {
		last = t.Renewed
	}
	return t.Session && last.Add(sessionRenewal) <= now
}

// Tokens holds the tokens that were not revoked, oldest first. Some may have ended.
type Tokens struct {
	profile *Profile
	all     []Token
}

// Valid returns the tokens that are valid at a time, oldest first. It does not check the tokens that made them. The
// slice is the caller's.
func (l *Tokens) Valid(now capabilities.Time) []Token {
	return slices.DeleteFunc(slices.Clone(l.all), func(t Token) bool { return t.isOver(now) })
}

// Check returns the token whose secret has a digest. For a session, the digest of its page key has to be page. It
// refuses with UNAUTHENTICATED a token that is not valid. It does not check the token's maker.
func (l *Tokens) Check(id capabilities.ID, digest, page []byte, now capabilities.Time) (Token, error) {
	i := l.index(id)
	if i < 0 {
		return Token{}, errToken()
	}
	t := l.all[i]
	// Digests need no comparison in constant time.
	shown := bytes.Equal(t.Digest, digest) || len(t.Former) > 0 && bytes.Equal(t.Former, digest)
	if !shown || t.Session != (page != nil) || !bytes.Equal(t.Page, page) {
		return Token{}, errToken()
	}
	return l.Get(id, now)
}

// Get returns a token. It refuses with UNAUTHENTICATED a token that is not valid.
func (l *Tokens) Get(id capabilities.ID, now capabilities.Time) (Token, error) {
	i := l.index(id)
	switch {
	case i < 0:
		return Token{}, errToken()
	case l.all[i].isOver(now):
		return Token{}, parley.Refuse(parley.Unauthenticated, "the token was good until %s", l.all[i].End())
	case l.profile.Archived:
		return Token{}, parley.Refuse(parley.Unauthenticated, "the token's agent is archived")
	}
	return l.all[i], nil
}

// isStanding reports whether a token of the agent, and all tokens that it was made by, are valid. The zero ID is.
func (l *Tokens) isStanding(id capabilities.ID, now capabilities.Time) bool {
	for !id.IsZero() {
		t, err := l.Get(id, now)
		if err != nil {
			return false
		}
		id = t.By.Token // of the same agent, since the node's host makes tokens for itself alone
	}
	return true
}

// index returns the index of a token; -1 if it is not there.
func (l *Tokens) index(id capabilities.ID) int {
	return slices.IndexFunc(l.all, func(t Token) bool { return t.Token == id })
}

// add adds a token, and drops those that have ended.
func (l *Tokens) add(e *events.TokenMade, at capabilities.Time) {
	l.all = slices.DeleteFunc(l.all, func(t Token) bool { return t.isOver(at) })
	l.all = append(l.all, Token{TokenMade: *e, Made: at, Used: at, Renewed: at})
}

// renew applies the renewal of a session.
func (l *Tokens) renew(e *events.TokenRenewed, at capabilities.Time) {
	i := l.index(e.Token)
	if i < 0 {
		return
	}
	t := &l.all[i]
	t.Used = at
	if len(e.Digest) > 0 {
		t.Renewed, t.Digest, t.Former = at, e.Digest, e.Former
	}
}

func (l *Tokens) remove(id capabilities.ID) {
	l.all = slices.DeleteFunc(l.all, func(t Token) bool { return t.Token == id })
}

// defaultScopes returns the scopes of a token that is made without any. A guest reads the answers to its forms. A token
// of the host opens secrets only if it names that scope.
func (l *Tokens) defaultScopes() []string {
	scopes := []string{ScopeRead, ScopeAsk, ScopeAnswer}
	if l.profile.Kind != events.Host {
		scopes = append(scopes, ScopeReveal)
	}
	return scopes
}

func errToken() error { return parley.Refuse(parley.Unauthenticated, "the token is not good") }
