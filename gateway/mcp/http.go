package mcp

import (
	"context"
	"crypto/rand"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley"
)

const (
	sessionHeader = "Mcp-Session-Id"
	versionHeader = "Mcp-Protocol-Version"

	sessionTime   = time.Hour // after the last request
	maxSessions   = 512       // of all agents but the host; another replaces the oldest of the agent with most
	agentSessions = 16        // of one agent; another replaces its oldest
)

// HTTP serves clients over HTTP, each for the agent of its token. Clients of 2026-07-28 have no sessions. Older ones do,
// because a server can ask them only over a session.
type HTTP struct {
	server   *Server
	legacy   *sdk.Server
	sessions sessions

	withSessions, withoutSessions http.Handler
}

// NewHTTP makes an HTTP. The caller closes it.
func NewHTTP(o Options) (*HTTP, error) {
	s, err := newServer(context.Background(), o)
	if err != nil {
		return nil, err
	}
	modern, err := s.protocol(agentOf)
	if err != nil {
		return nil, err
	}
	h := &HTTP{server: s, sessions: sessions{most: maxSessions, each: agentSessions}}
	if h.legacy, err = s.protocol(agentOf); err != nil {
		return nil, err
	}
	h.withoutSessions = forAgents(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return modern }, &sdk.StreamableHTTPOptions{
		Stateless: true, MaxRequestBodyBytes: maxMessage, PropagateRequestCancellation: true, DisableLocalhostProtection: true, // the caller checks host names
	}))
	h.withSessions = forAgents(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return h.legacy }, &sdk.StreamableHTTPOptions{
		SessionTimeout: sessionTime, MaxRequestBodyBytes: maxMessage, DisableLocalhostProtection: true,
	}))
	return h, nil
}

// Close ends the sessions and the calls under way, and blocks until they have ended.
func (h *HTTP) Close() {
	h.server.close()
	for s := range h.legacy.Sessions() {
		_ = s.Close() // the session ends despite an error
	}
}

// ServeAgent serves a request with an agent's token. It uses a during the request, and longer while an older client still
// answers a form.
func (h *HTTP) ServeAgent(w http.ResponseWriter, r *http.Request, a Client) error {
	ctx, end := context.WithCancelCause(context.WithoutCancel(r.Context()))
	defer end(errDisconnected)
	defer context.AfterFunc(r.Context(), func() { end(errDisconnected) })()
	r = r.WithContext(context.WithValue(ctx, agentKey{}, a))
	if r.Header.Get(versionHeader) >= inResults {
		h.withoutSessions.ServeHTTP(w, r)
		return nil
	}
	if r.Method == http.MethodPost && r.Header.Get(sessionHeader) == "" {
		return h.begin(w, r, a)
	}
	h.withSessions.ServeHTTP(w, r)
	return nil
}

// begin serves a request that begins a session.
func (h *HTTP) begin(w http.ResponseWriter, r *http.Request, a Client) error {
	if err := h.server.hold(); err != nil {
		return err
	}
	defer h.server.work.Done()
	live := map[string]*sdk.ServerSession{}
	for s := range h.legacy.Sessions() {
		live[s.ID()] = s
	}
	place, oldest, err := h.sessions.begin(a, live)
	if err != nil {
		return err
	}
	if oldest != nil {
		h.server.work.Go(func() { _ = oldest.Close() }) // blocks until the session's calls have ended
	}
	h.withSessions.ServeHTTP(w, r)
	h.sessions.name(place, w.Header().Get(sessionHeader))
	return nil
}

type agentKey struct{}

// forAgents returns a handler that identifies the agent of a request to the SDK, which binds sessions to their agents.
func forAgents(next http.Handler) http.Handler {
	return auth.RequireBearerToken(func(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
		a, ok := ctx.Value(agentKey{}).(Client)
		if !ok {
			return nil, auth.ErrInvalidToken
		}
		return &auth.TokenInfo{UserID: a.Identity(), Extra: map[string]any{"agent": a}}, nil
	}, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(next) // the token was checked before
}

// agentOf returns the agent of a call: that of its own request, not that of the session's first one.
func agentOf(r sdk.Request) (Client, error) {
	if extra := r.GetExtra(); extra != nil && extra.TokenInfo != nil {
		if a, ok := extra.TokenInfo.Extra["agent"].(Client); ok {
			return a, nil
		}
	}
	return nil, parley.Refuse(parley.Unauthenticated, "the call is nobody's")
}

// sessions holds the owners of the sessions, oldest first.
type sessions struct {
	most, each int // of all agents but the host, and of one agent

	mu  sync.Mutex
	all []owned
}

type owned struct {
	session, agent string
	host           bool
}

// unnamed is the prefix of the name of a place whose session has no ID yet.
const unnamed = "new "

// begin takes a place for a session. It may return a session to end: the agent's oldest if the agent has its maximum.
// If all places are taken, it is the oldest of the agent with most. The host's sessions take no place of others.
func (s *sessions) begin(a Client, live map[string]*sdk.ServerSession) (place string, ends *sdk.ServerSession, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(o owned) bool {
		return live[o.session] == nil && !strings.HasPrefix(o.session, unnamed)
	})
	held, guests := map[string]int{}, 0
	for _, o := range s.all {
		held[o.agent]++
		if !o.host {
			guests++
		}
	}
	from := a.Identity()
	if held[from] < s.each {
		from = ""
	}
	if from == "" && !a.IsHost() && guests >= s.most {
		for _, o := range s.all {
			if !o.host && live[o.session] != nil && (from == "" || held[o.agent] > held[from]) {
				from = o.agent
			}
		}
		if from == "" {
			return "", nil, tooManySessions(guests)
		}
	}
	if from != "" {
		i := slices.IndexFunc(s.all, func(o owned) bool { return o.agent == from && live[o.session] != nil })
		if i < 0 {
			return "", nil, tooManySessions(held[from])
		}
		ends = live[s.all[i].session]
		s.all = slices.Delete(s.all, i, i+1)
	}
	place = unnamed + rand.Text()
	s.all = append(s.all, owned{place, a.Identity(), a.IsHost()})
	return place, ends, nil
}

// tooManySessions returns the refusal of a session while n others begin.
func tooManySessions(n int) error {
	return parley.Refuse(parley.RateLimited, "%d sessions begin already", n).WithHint("try again in a moment")
}

// name sets the session of a place; "" frees the place.
func (s *sessions) name(place, session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.all, func(o owned) bool { return o.session == place })
	if session == "" {
		s.all = slices.Delete(s.all, i, i+1)
		return
	}
	s.all[i].session = session
}
