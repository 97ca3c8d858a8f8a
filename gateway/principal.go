package gateway

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"parley"
	"parley/actors"
)

// principal is who calls: the agent that its token is for, and what the token is good for. Who calls on the
// node's own socket is the node's host, and needs none.
type principal struct {
	agent   *actors.Agent
	scopes  []string
	account *account
}

type principalKey struct{}

// as gives the context of a call by a principal.
func (p *principal) as(ctx context.Context) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// caller gives the principal of a call; nil is the node's host, on its own socket.
func caller(ctx context.Context) *principal {
	p, _ := ctx.Value(principalKey{}).(*principal)
	return p
}

// may refuses with NOT_PERMITTED what a principal's token is not good for.
func (p *principal) may(o operation) error {
	switch {
	case p == nil:
		return nil
	case !slices.Contains(p.scopes, string(o.scope)):
		return parley.Refuse(parley.NotPermitted, "the token is not good for %s: it lacks the scope %s", o.name, o.scope)
	case o.ofNode && !p.agent.IsHost():
		return parley.Refuse(parley.NotPermitted, "%s is for the node's host", o.name)
	}
	return nil
}

// acting gives the agent that a principal acts for. Only the node's host acts for others, which it holds.
func (p *principal) acting(as string) (*actors.Agent, error) {
	if as == "" || p.agent.IsHost() {
		return p.agent, nil
	}
	return nil, parley.Refuse(parley.NotPermitted, "the token is for one agent, which acts for no other")
}

// SessionCookie is the name of the cookie that has a browser's token.
const SessionCookie = "parley_session"

// tokenOf gives the token that a request shows.
func tokenOf(r *http.Request) string {
	if bearer := bearerOf(r.Header.Get("Authorization")); bearer != "" {
		return bearer
	}
	for protocol := range strings.SplitSeq(r.Header.Get("Sec-WebSocket-Protocol"), ",") {
		if bearer, ok := strings.CutPrefix(strings.TrimSpace(protocol), BearerProtocol); ok {
			return bearer
		}
	}
	if c, err := r.Cookie(SessionCookie); err == nil {
		return c.Value
	}
	return ""
}

// bearerOf gives the token in an Authorization header, or "".
func bearerOf(authorization string) string {
	bearer, ok := strings.CutPrefix(authorization, "Bearer ")
	if !ok {
		return ""
	}
	return strings.TrimSpace(bearer)
}

// BearerProtocol, with a token behind it, is the WebSocket subprotocol by which a browser's script shows that.
const BearerProtocol = "parley.bearer."

// authenticate gives the principal of a request. It refuses with UNAUTHENTICATED.
func (s *Server) authenticate(r *http.Request) (*principal, error) {
	return s.identify(r.Context(), tokenOf(r))
}

// identify gives the principal that a token is for. It refuses with UNAUTHENTICATED.
func (s *Server) identify(ctx context.Context, token string) (*principal, error) {
	if token == "" {
		return nil, parley.Refuse(parley.Unauthenticated, "nothing but /healthz answers without a token").
			WithHint("parley token create makes one; parley open signs a browser in")
	}
	agent, t, err := s.node.Authenticate(ctx, token)
	if err != nil {
		return nil, err
	}
	return &principal{agent: agent, scopes: t.Scopes, account: s.ledger.of(agent)}, nil
}
