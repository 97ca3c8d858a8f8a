package gateway

import (
	"context"
	"net/http"
	"strings"

	"parley"
	"parley/actors"
	"parley/capabilities"
	"parley/gateway/api"
)

// principal is who calls: the agent that its token or session is for, acting by that. Who calls on the node's own socket
// is the node's host, and needs none.
type principal struct {
	agent   *actors.Agent
	token   actors.Token
	account *account
	prefix  string // of the addresses of pages: that of a session has its key
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
func (p *principal) may(o api.Operation) error {
	switch {
	case p == nil:
		return nil
	case !p.token.May(string(o.Scope)):
		return parley.Refuse(parley.NotPermitted, "the token is not good for %s: it lacks the scope %s", o.Name, o.Scope)
	case o.OfNode && !p.agent.IsHost():
		return parley.Refuse(parley.NotPermitted, "%s is for the node's host", o.Name)
	}
	return nil
}

// actingAs gives the agent that a principal acts for. Only the node's host acts for others, which it holds; by a token
// it can do no more as one of them.
func (s *Server) actingAs(ctx context.Context, p *principal, as string) (*actors.Agent, error) {
	if p == nil {
		return s.node.ActAs(ctx, as)
	}
	if as == "" {
		return p.agent, nil
	}
	if !p.agent.IsHost() {
		return nil, parley.Refuse(parley.NotPermitted, "the token is for one agent, which acts for no other")
	}
	if capabilities.Special(as) == capabilities.NameHost {
		return p.agent, nil
	}
	agent, err := s.node.ActAs(ctx, as)
	if err != nil {
		return nil, err
	}
	return agent.Under(&p.token), nil
}

// tokenOf gives the token that a request shows.
func tokenOf(r *http.Request) string {
	if r.Header.Get("Authorization") != "" {
		return bearerOf(r.Header.Get("Authorization"))
	}
	for protocol := range strings.SplitSeq(r.Header.Get("Sec-WebSocket-Protocol"), ",") {
		if bearer, ok := strings.CutPrefix(strings.TrimSpace(protocol), BearerProtocol); ok {
			return bearer
		}
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

// authenticate gives the principal of a request: of the token that it shows, or else of the session whose key stood in
// its address. It refuses with UNAUTHENTICATED.
func (s *Server) authenticate(r *http.Request, key string) (*principal, error) {
	if token := tokenOf(r); token != "" || key == "" {
		return s.identify(r.Context(), token)
	}
	return s.identifySession(r, key)
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
	return &principal{agent: agent, token: t, account: s.ledger.of(agent)}, nil
}
