package client

import (
	"context"
	"net/http"

	"parley/gateway/mux"
	"parley/internal/pack"
)

// maxSigned is the number of agents that are signed in on a connection, below the node's own limit. For another one, the agent
// signs out whose last call was the longest ago.
const maxSigned = 1000

// sign is an agent that is signed in on a connection. The lock of that guards it.
type sign struct {
	token string
	p     *pending // that signs it in
	agent uint64   // its number, once it is known
	known bool
	calls int    // under way, or about to be sent
	used  uint64 // ID of the last call, or of the one before
	out   bool   // it has signed out, and its number may be another's
}

// signIn signs the agent of a token in, once, for a call that is about to be sent. It returns nil if the connection has ended.
func (l *link) signIn(ctx context.Context, token string) (*sign, error) {
	l.mu.Lock()
	s := l.signs[token]
	if s == nil {
		if len(l.signs) >= l.most {
			l.signOutOne()
		}
		s = &sign{token: token, p: newPending()}
		l.signs[token] = s
		body := pack.AppendString(pack.AppendString(pack.AppendMap(nil, 1), "token"), token)
		if !l.sendLocked(mux.Frame{Kind: mux.SignIn, Body: body}, s.p) {
			s.p.err = &lost{cause: errLinkEnded}
			close(s.p.first)
		}
	}
	s.calls++
	s.used = l.next
	l.mu.Unlock()
	err := error(nil)
	select {
	case <-s.p.first:
	case <-ctx.Done():
		err = &lost{cause: ctx.Err()}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && s.p.err == nil {
		if err = s.read(); err != nil && l.signs[token] == s {
			delete(l.signs, token)
		}
	}
	if err != nil || s.p.err != nil {
		s.calls--
		return nil, err
	}
	return s, nil
}

// read reads the answer to the sign-in.
func (s *sign) read() error {
	if s.known {
		return nil
	}
	a := s.p.answer
	if a.status != http.StatusOK {
		return refusal(a)
	}
	var in struct {
		Agent uint64 `json:"agent"`
	}
	if err := a.decode("signing in", &in); err != nil {
		return err
	}
	s.agent, s.known = in.Agent, true
	return nil
}

// signOut gives the number of an agent back. Calls that are about to be sent sign in again. The caller holds l.mu.
func (l *link) signOut(s *sign) {
	if s.out || !s.known || l.ended {
		return
	}
	s.out = true
	if l.signs[s.token] == s {
		delete(l.signs, s.token)
	}
	l.next++
	l.queue(mux.Frame{Kind: mux.SignOut, ID: l.next, Agent: s.agent})
}

// signOutOne signs the agent out whose last call was the longest ago, of those without one under way. The caller holds l.mu.
func (l *link) signOutOne() {
	var oldest *sign
	for _, s := range l.signs {
		if s.known && s.calls == 0 && (oldest == nil || s.used < oldest.used) {
			oldest = s
		}
	}
	if oldest != nil {
		l.signOut(oldest)
	}
}
