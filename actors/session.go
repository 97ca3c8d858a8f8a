package actors

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// Session is a browser's, as it is when it is made. It is shown in two halves, of which neither is of any use alone:
// Text is for a cookie, and Key stands in the addresses of the pages.
type Session struct {
	Token
	Key string
}

// MakeSession makes a session for the agent. It opens no secrets, ends when it was not used for a day, and after two
// weeks at the latest. If the agent acts by a token, the session is good for no more and no longer than that, and ends
// with it.
func (a *Agent) MakeSession(ctx context.Context, note string) (Session, error) {
	scopes := []string{mailbox.ScopeRead, mailbox.ScopeAsk, mailbox.ScopeAnswer, mailbox.ScopeAdmin}
	if a.by != nil {
		scopes = slices.DeleteFunc(scopes, func(scope string) bool { return !a.by.May(scope) })
	}
	if len(scopes) == 0 {
		return Session{}, parley.Refuse(parley.NotPermitted, "the token is good for nothing that a page does")
	}
	key := rand.Text()
	made, _, err := a.makeToken(ctx, mailbox.MakeToken{
		Scopes: scopes, Until: a.node.now().Add(mailbox.SessionTime), Note: note, Session: true, Page: pageDigest(key),
	}, sessionPrefix)
	return Session{Token: made, Key: key}, err
}

// pageDigest is what is kept of a session's key.
func pageDigest(key string) []byte {
	sum := sha256.Sum256([]byte("page " + key))
	return sum[:]
}

// AuthenticateSession gives the agent that a session is for, acting by it, and the session. It refuses with
// UNAUTHENTICATED.
func (n *Node) AuthenticateSession(ctx context.Context, text, key string) (*Agent, Token, error) {
	return n.authenticate(ctx, sessionPrefix, text, pageDigest(key))
}

// Renew notes that a session is used, and gives its next secret in place of the one that it was shown with, which stays
// good for a while. It gives "" if that is not due.
func (n *Node) Renew(ctx context.Context, t Token) (text string, err error) {
	if !t.due {
		return "", nil
	}
	secret := rand.Text()
	renewed, err := n.renew(ctx, mailbox.RenewToken{Token: t.ID, Digest: digest(secret), Shown: t.shown}, t)
	if err != nil || !renewed {
		return "", err
	}
	return sessionPrefix + t.ref.Agent.ULID.String() + t.ID.ULID.String() + secret, nil
}

// Keep refuses with UNAUTHENTICATED a token that is good no more, whatever became of its secret meanwhile. Of a session it
// notes that it is used.
func (n *Node) Keep(ctx context.Context, t Token) error {
	stands, _, err := n.standing(ctx, t.ref)
	if err != nil || !stands.IsDue(n.now(), false) {
		return err
	}
	_, err = n.renew(ctx, mailbox.RenewToken{Token: t.ID}, t)
	return err
}

// WatchTokens signals a channel with room for one whenever a token may have ended, but for its time, until the function
// that it gives is called.
func (n *Node) WatchTokens(ch chan<- struct{}) (stop func()) {
	n.changed.add(capabilities.ID{}, ch)
	return func() { n.changed.drop(capabilities.ID{}, ch) }
}

// endsToken reports whether a token may have ended with an event.
func endsToken(e events.Event) bool {
	switch e.(type) {
	case *events.TokenRevoked, *events.AgentArchived:
		return true
	}
	return false
}

func (n *Node) renew(ctx context.Context, c mailbox.RenewToken, t Token) (bool, error) {
	evs, err := call(ctx, &Agent{node: n, id: t.ref.Agent}, decide{c})
	return len(evs) > 0, err
}

// Under gives the agent as it acts by a token.
func (a *Agent) Under(t *Token) *Agent { return &Agent{node: a.node, id: a.id, by: t} }

// By gives the token by which the agent acts; a zero ID is none.
func (a *Agent) By() capabilities.ID {
	if a.by == nil {
		return capabilities.ID{}
	}
	return a.by.ID
}

// reveals reports whether the agent may see what is sealed for it.
func (a *Agent) reveals() bool { return a.by == nil || a.by.May(mailbox.ScopeReveal) }
