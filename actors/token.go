package actors

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// NewToken says what a token is to be good for. No scopes are read, ask and answer, and reveal unless it is the node's
// host's; no time is for ever.
type NewToken struct {
	Scopes []string          `json:"scopes,omitempty"`
	Until  capabilities.Time `json:"until,omitzero"`
	Note   string            `json:"note,omitempty"`
}

// Token is a token by which an agent acts.
type Token struct {
	view.Token

	ref   events.TokenRef // the token itself
	end   capabilities.Time
	depth int    // how many it comes from
	due   bool   // a session is to have another secret
	shown []byte // the digest of the secret that was shown
}

// May reports whether the token is good for a scope.
func (t *Token) May(scope string) bool { return slices.Contains(t.Scopes, scope) }

// A token's text is ply_ and the ULIDs of its agent and of itself, then its secret. A session's begins otherwise, and
// passes for nothing else.
const (
	tokenPrefix   = "ply_"
	sessionPrefix = "pls_"
	tokenHead     = len(tokenPrefix) + 2*ulid.EncodedSize
)

// maxTokenDepth is how many tokens one may come from.
const maxTokenDepth = 4

// MakeToken makes a token for the agent. If the agent acts by a token itself, the new one is good for no more and no
// longer, and ends with that.
func (a *Agent) MakeToken(ctx context.Context, t NewToken) (view.Token, error) {
	made, _, err := a.makeToken(ctx, mailbox.MakeToken{Scopes: t.Scopes, Until: t.Until, Note: t.Note}, tokenPrefix)
	return made.Token, err
}

func (a *Agent) makeToken(ctx context.Context, c mailbox.MakeToken, prefix string) (made Token, secret string, err error) {
	if t := a.by; t != nil {
		if t.depth >= maxTokenDepth {
			return Token{}, "", parley.Refuse(parley.TooLarge, "the token comes from %d others already", maxTokenDepth).
				WithHint("make one on the node itself")
		}
		if _, _, err := a.node.standing(ctx, t.ref); err != nil {
			return Token{}, "", err
		}
		c.By, c.Within = t.ref, mailbox.TokenBounds{Scopes: t.Scopes, Until: t.end}
	}
	secret = rand.Text()
	c.Digest = digest(secret)
	evs, err := call(ctx, a, decide{c})
	if err != nil {
		return Token{}, secret, err
	}
	now := a.node.now()
	made = shownToken(a.id, mailbox.Token{TokenMade: *evs[0].(*events.TokenMade), Made: now, Used: now, Turned: now}, now)
	made.Text = prefix + a.id.ULID.String() + made.ID.ULID.String() + secret
	return made, secret, nil
}

// shownToken returns an agent's token as the agent sees it.
func shownToken(agent capabilities.ID, t mailbox.Token, now capabilities.Time) Token {
	shown := Token{
		Token: view.Token{ID: t.Token, Session: t.Session, Scopes: t.Scopes, Made: t.Made, Until: t.End(), Note: t.Note, By: t.By.Token},
		ref:   events.TokenRef{Agent: agent, Token: t.Token}, end: t.Until, due: t.IsDue(now, true),
	}
	if t.Session {
		shown.Used = t.Used
	}
	return shown
}

// Tokens lists the agent's tokens and sessions that are good, oldest first.
func (a *Agent) Tokens(ctx context.Context) ([]view.Token, error) {
	type made struct {
		view.Token
		by events.TokenRef
	}
	all, err := query(ctx, a, func(s *mailbox.State, now capabilities.Time) ([]made, error) {
		var all []made
		for _, t := range s.Tokens(now) {
			all = append(all, made{shownToken(a.id, t, now).Token, t.By})
		}
		return all, nil
	})
	good := []view.Token{}
	for _, t := range all {
		if !t.by.Token.IsZero() {
			if _, _, ended := a.node.standing(ctx, t.by); ended != nil {
				continue
			}
		}
		good = append(good, t.Token)
	}
	return good, err
}

// RevokeToken ends a token or session, and what was made by it.
func (a *Agent) RevokeToken(ctx context.Context, id capabilities.ID) error {
	return a.do(ctx, mailbox.RevokeToken{Token: id})
}

// Authenticate gives the agent that a token is for, acting by it, and the token. It refuses with UNAUTHENTICATED. A
// session is no token.
func (n *Node) Authenticate(ctx context.Context, text string) (*Agent, Token, error) {
	return n.authenticate(ctx, tokenPrefix, text, nil)
}

func (n *Node) authenticate(ctx context.Context, prefix, text string, page []byte) (*Agent, Token, error) {
	agent, token, secret, ok := n.parseToken(prefix, text)
	if ok {
		_, ok = n.journal.Mailbox(agent)
	}
	if !ok {
		return nil, Token{}, parley.Refuse(parley.Unauthenticated, "the token is not good")
	}
	shown := digest(secret)
	known, err := query(ctx, &Agent{node: n, id: agent}, func(s *mailbox.State, now capabilities.Time) (mailbox.Token, error) {
		return s.CheckToken(token, shown, page, now)
	})
	if err != nil {
		return nil, Token{}, err
	}
	t := shownToken(agent, known, n.now())
	if _, t.depth, err = n.standing(ctx, known.By); err != nil {
		return nil, Token{}, err
	}
	t.shown = shown
	return &Agent{node: n, id: agent, by: &t}, t, nil
}

// standing gives a token, and how many it comes from, itself among them: none for no token. It refuses with
// UNAUTHENTICATED if one of them is not good any more.
func (n *Node) standing(ctx context.Context, ref events.TokenRef) (token mailbox.Token, depth int, err error) {
	for ; !ref.Token.IsZero(); depth++ {
		if _, there := n.journal.Mailbox(ref.Agent); !there || depth > maxTokenDepth {
			return token, depth, parley.Refuse(parley.Unauthenticated, "the token is not good")
		}
		t, err := query(ctx, &Agent{node: n, id: ref.Agent}, func(s *mailbox.State, now capabilities.Time) (mailbox.Token, error) {
			return s.StandingToken(ref.Token, now)
		})
		if err != nil {
			return token, depth, err
		}
		if depth == 0 {
			token = t
		}
		ref = t.By
	}
	return token, depth, nil
}

func (n *Node) parseToken(prefix, text string) (agent, token capabilities.ID, secret string, ok bool) {
	if !strings.HasPrefix(text, prefix) || len(text) <= tokenHead || len(text) > tokenHead+maxSecret {
		return agent, token, "", false
	}
	agent, err := capabilities.ParseLocalID(text[len(prefix):len(prefix)+ulid.EncodedSize], n.id)
	if err != nil {
		return agent, token, "", false
	}
	token, err = capabilities.ParseLocalID(text[len(prefix)+ulid.EncodedSize:tokenHead], n.id)
	return agent, token, text[tokenHead:], err == nil
}

// IsHost reports whether the agent is the node's host.
func (a *Agent) IsHost() bool { return a.id == a.node.host }
