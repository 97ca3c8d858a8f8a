package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/events"
	"parley/gateway/api"
	"parley/gateway/client"
)

// BenchmarkCall measures a round trip to a node, without work in the node.
func BenchmarkCall(b *testing.B) {
	c, server := serveLimited(b, api.Limits{})
	nodeOp(server, "echo", api.ScopeRead, func(_ context.Context, r api.FormRequest) (api.FormRequest, error) {
		return r, nil
	})
	req := api.FormRequest{Form: parley.Form{To: "peer", Description: "Configure", Fields: []events.Field{{Name: "a", Label: "A", Required: true}}}}
	b.SetParallelism(32)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			var resp struct{ Recipient string }
			if err := c.Call(b.Context(), "echo", req, &resp); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkFetchAgents measures a list of 1,100 agents for a client on the same machine.
func BenchmarkFetchAgents(b *testing.B) {
	client, server := serveLimited(b, api.Limits{})
	for i := range 1100 {
		m := actors.NewAgent{
			Kind: events.Guest, Name: fmt.Sprint("g", i), Title: "One of many", Labels: map[string]string{"ui": "true"}, Wait: true,
			Program: &events.ProgramSet{Runtime: "exec", Command: []string{"true"}},
		}
		if _, err := server.node.Host().Make(b.Context(), m); err != nil {
			b.Fatal(err)
		}
	}
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		var list api.FetchAgentsResponse
		if err := client.Call(b.Context(), "fetch_agents", api.FetchAgentsRequest{}, &list); err != nil || len(list.Agents) != 1101 {
			b.Fatalf("%d agents, %v", len(list.Agents), err)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}

// serveServer runs a node with a server.
func serveServer(tb testing.TB) *Server {
	tb.Helper()
	_, s := serveLimited(tb, api.Limits{})
	return s
}

// serveLimited runs a node with a server, and returns a client that does not repeat calls.
func serveLimited(tb testing.TB, limits api.Limits) (*client.Client, *Server) {
	tb.Helper()
	folder := tb.TempDir()
	node, err := actors.Open(tb.Context(), actors.Options{Folder: folder, Name: "test"})
	if err != nil {
		tb.Fatal(err)
	}
	socket := filepath.Join(folder, "parley.sock")
	server, err := Listen(node, Options{
		Socket: socket, Listen: "127.0.0.1:0", Version: "test", Limits: limits, Bridges: filepath.Join(folder, "bridges.json"), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		tb.Fatal(err)
	}
	server.Serve()
	c, err := client.New(client.Options{Socket: socket, Patience: -1})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		c.Close()
		ctx := tb.Context() // has ended, so that Drain does not wait
		_ = server.Drain(ctx)
		_ = node.Close(ctx)
	})
	return c, server
}

// TestWaitCutByStopCanBeRepeated starts waits while the node stops. Each ends as if its time had passed, or with NOT_RUNNING.
// The client may repeat both.
func TestWaitCutByStopCanBeRepeated(t *testing.T) {
	t.Parallel()
	c, s := serveLimited(t, api.Limits{})
	var form view.Asked
	if err := c.Call(t.Context(), "request", api.CapabilityRequest{Request: parley.Request{To: "@self", Text: "may I?"}}, &form); err != nil {
		t.Fatal(err)
	}
	host := s.node.Host().ID().String()
	s.drain()
	waits := map[string]any{
		"read_output":     api.ReadOutputRequest{AgentID: host, WaitMs: 1000},
		"await":           map[string]any{"number": form.Number},
		"wait_for_finish": api.WaitForFinishRequest{AgentID: host},
	}
	for operation, request := range waits {
		for range 100 {
			if err := c.Call(t.Context(), operation, request, nil); err != nil && parley.CodeOf(err) != parley.NotRunning {
				t.Errorf("%s: %v", operation, err)
				break
			}
		}
	}
}
