package gateway

import (
	"context"
	"net/http"
	"strings"

	"parley/gateway/api"
	"parley/gateway/ws"
)

type principalKey struct{}

// as returns the context of a request by a principal.
func as(ctx context.Context, p api.Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// caller returns the principal of a request. A request without one came from the node's host, on
// the node's own socket.
func (s *Server) caller(ctx context.Context) api.Principal {
	if p, ok := ctx.Value(principalKey{}).(api.Principal); ok {
		return p
	}
	return s.backend.Local()
}

// account returns the account of a request.
func (s *Server) account(ctx context.Context) api.Account { return s.caller(ctx).Account() }

// tokenOf returns the token of a request, or "".
func tokenOf(r *http.Request) string {
	if r.Header.Get("Authorization") != "" {
		return api.BearerOf(r.Header.Get("Authorization"))
	}
	for protocol := range strings.SplitSeq(r.Header.Get("Sec-WebSocket-Protocol"), ",") {
		if bearer, ok := strings.CutPrefix(strings.TrimSpace(protocol), ws.BearerProtocol); ok {
			return bearer
		}
	}
	return ""
}

// authenticate returns the principal of a request by its token, or else by the session whose key was in its address. It
// refuses with UNAUTHENTICATED.
func (s *Server) authenticate(r *http.Request, key string) (api.Principal, error) {
	if token := tokenOf(r); token != "" || key == "" {
		return s.backend.Identify(r.Context(), token)
	}
	return s.sessions.identify(r, key)
}
