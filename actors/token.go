package actors

import (
	"context"
	"crypto/rand"
	"strings"

	"github.com/oklog/ulid/v2"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// NewToken says what a token is to be good for. No scopes are read, ask and answer; no time is for ever.
type NewToken struct {
	Scopes []string          `json:"scopes,omitempty"`
	Until  capabilities.Time `json:"until,omitzero"`
	Note   string            `json:"note,omitempty"`
}

// Token is a token as its agent sees it. Text is the secret, which is there only when the token is made.
type Token struct {
	ID     capabilities.ID   `json:"id"`
	Text   string            `json:"token,omitempty"`
	Scopes []string          `json:"scopes"`
	Made   capabilities.Time `json:"made"`
	Until  capabilities.Time `json:"until,omitzero"`
	Note   string            `json:"note,omitempty"`
}

// A token's text is ply_ and the ULIDs of its agent and of itself, then its secret.
const (
	tokenPrefix = "ply_"
	tokenHead   = len(tokenPrefix) + 2*ulid.EncodedSize
)

// MakeToken makes a token for the agent.
func (a *Agent) MakeToken(ctx context.Context, t NewToken) (Token, error) {
	secret := rand.Text()
	return visitFor(ctx, a, func(b *box) (Token, error) {
		evs, err := b.decide(mailbox.MakeToken{Digest: digest(secret), Scopes: t.Scopes, Until: t.Until, Note: t.Note})
		if err != nil {
			return Token{}, err
		}
		e := evs[0].(*events.TokenMade)
		made := tokenOf(mailbox.Token{TokenMade: *e, Made: b.node.now()})
		made.Text = tokenPrefix + a.id.ULID.String() + e.Token.ULID.String() + secret
		return made, nil
	})
}

func tokenOf(t mailbox.Token) Token {
	return Token{ID: t.Token, Scopes: t.Scopes, Made: t.Made, Until: t.Until, Note: t.Note}
}

// Tokens lists the agent's tokens that are good, oldest first.
func (a *Agent) Tokens(ctx context.Context) ([]Token, error) {
	return visitFor(ctx, a, func(b *box) ([]Token, error) {
		all := []Token{}
		for _, t := range b.state.Tokens(b.node.now()) {
			all = append(all, tokenOf(t))
		}
		return all, nil
	})
}

// RevokeToken ends a token.
func (a *Agent) RevokeToken(ctx context.Context, id capabilities.ID) error {
	return a.do(ctx, mailbox.RevokeToken{Token: id})
}

// Authenticate gives the agent that a token is for, and the token. It refuses with UNAUTHENTICATED.
func (n *Node) Authenticate(ctx context.Context, text string) (*Agent, Token, error) {
	agent, token, secret, ok := n.parseToken(text)
	if !ok {
		return nil, Token{}, parley.Refuse(parley.Unauthenticated, "the token is not good")
	}
	if _, there := n.journal.Mailbox(agent); !there {
		return nil, Token{}, parley.Refuse(parley.Unauthenticated, "the token is not good")
	}
	a := &Agent{node: n, id: agent}
	t, err := visitFor(ctx, a, func(b *box) (Token, error) {
		t, err := b.state.CheckToken(token, digest(secret), b.node.now())
		return tokenOf(t), err
	})
	if err != nil {
		return nil, Token{}, err
	}
	return a, t, nil
}

func (n *Node) parseToken(text string) (agent, token capabilities.ID, secret string, ok bool) {
	if !strings.HasPrefix(text, tokenPrefix) || len(text) <= tokenHead || len(text) > tokenHead+maxSecret {
		return agent, token, "", false
	}
	agent, err := capabilities.ParseLocalID(text[len(tokenPrefix):len(tokenPrefix)+ulid.EncodedSize], n.id)
	if err != nil {
		return agent, token, "", false
	}
	token, err = capabilities.ParseLocalID(text[len(tokenPrefix)+ulid.EncodedSize:tokenHead], n.id)
	return agent, token, text[tokenHead:], err == nil
}

// IsHost reports whether the agent is the node's host.
func (a *Agent) IsHost() bool { return a.id == a.node.host }
