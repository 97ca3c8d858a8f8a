package mcp

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/internal/eventually"
)

// guest is a Client with a number of places for calls. It performs no operation.
type guest struct {
	lone
	name string
	host bool
}

func newGuest(name string, calls int) *guest {
	return &guest{lone{places: make(chan struct{}, calls)}, name, false}
}

func (g *guest) Identity() string                                 { return g.name }
func (g *guest) IsHost() bool                                     { return g.host }
func (g *guest) Call(context.Context, string, any, any) error     { return nil }
func (g *guest) May(string) error                                 { return nil }
func (g *guest) Link(ctx context.Context, form string) (l string) { return "" }

// TestGuestSessionsTakeNoOthersPlace begins more sessions than there are places. The agent with most sessions loses
// its oldest. The host loses none, and always gets a place.
func TestGuestSessionsTakeNoOthersPlace(t *testing.T) {
	h, err := NewHTTP(Options{Key: make([]byte, 32), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	h.sessions.most, h.sessions.each = 4, 3
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g := newGuest(r.Header.Get("X-Agent"), 1)
		g.host = g.name == "host"
		if err := h.ServeAgent(w, withToken(r), g); err != nil {
			http.Error(w, err.Error(), http.StatusTooManyRequests)
		}
	}))
	defer server.Close()
	ids := map[string]string{}
	begin := func(agent string, n int) {
		t.Helper()
		s, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &sdk.StreamableClientTransport{
			Endpoint: server.URL, HTTPClient: &http.Client{Transport: named(agent)}, DisableStandaloneSSE: true, MaxRetries: -1,
		}, &sdk.ClientSessionOptions{ProtocolVersion: "2025-06-18"})
		if err != nil {
			t.Fatalf("%s: %v", agent, err)
		}
		ids[s.ID()] = fmt.Sprint(agent, n)
	}
	has := func(want string) {
		t.Helper()
		eventually.Holds(t, "the sessions are "+want, func() bool { // the name is set shortly after the client has the session
			got := ""
			h.sessions.mu.Lock()
			defer h.sessions.mu.Unlock()
			for _, o := range h.sessions.all {
				got += ids[o.session] + " "
			}
			return got == want
		})
	}
	begin("host", 1)
	has("host1 ")
	begin("a", 1)
	has("host1 a1 ")
	begin("b", 1)
	has("host1 a1 b1 ")
	begin("a", 2)
	has("host1 a1 b1 a2 ")
	begin("a", 3)
	has("host1 a1 b1 a2 a3 ")
	begin("a", 4) // one agent has three at most
	has("host1 b1 a2 a3 a4 ")
	begin("host", 2) // the host's take no others' places
	has("host1 b1 a2 a3 a4 host2 ")
	begin("c", 1) // all four are taken: a has most
	has("host1 b1 a3 a4 host2 c1 ")
	begin("d", 1)
	has("host1 b1 a4 host2 c1 d1 ")
	begin("e", 1) // all have one: the oldest goes, unless it is the host's
	has("host1 a4 host2 c1 d1 e1 ")
}

// named is a transport that adds the agent to each request.
type named string

func (n named) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Agent", string(n))
	return http.DefaultTransport.RoundTrip(r)
}

// withToken adds the bearer that the SDK requires. The server has checked the real token.
func withToken(r *http.Request) *http.Request {
	r.Header.Set("Authorization", "Bearer x")
	return r
}
