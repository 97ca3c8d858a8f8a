package gateway

import (
	"context"
	"net/http"
	"strings"

	"parley"
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

// authenticate returns the principal of a request by its token. Without one, it is that of the session whose key was in
// its address. It refuses with UNAUTHENTICATED.
func (s *Server) authenticate(r *http.Request, key string) (api.Principal, error) {
	if token := tokenOf(r); token != "" || key == "" {
		return s.backend.Identify(r.Context(), token)
	}
	return s.sessions.identify(r, key)
}

// oauthPaths is the prefix of the metadata of OAuth, which clients of the Model Context Protocol request after a 401. A
// 404 tells them to use the token that they were given.
const oauthPaths = "/.well-known/oauth-"

// challenge sets the WWW-Authenticate header (RFC 6750) of a response with the status 401. It gives the error only to a
// request that had a token. It names no metadata, because a node has no authorization server.
func challenge(h http.Header, token string, err error) {
	text := `Bearer realm="parley"`
	if token != "" {
		text += `, error="invalid_token", error_description="` + strings.Map(inDescription, parley.AsError(err).Message) + `"`
	}
	h.Set("WWW-Authenticate", text)
}

// inDescription returns a character that error_description may have.
func inDescription(r rune) rune {
	if r < 0x20 || r > 0x7e || r == '"' || r == '\\' {
		return '?'
	}
	return r
}
