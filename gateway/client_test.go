package gateway

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"

	"parley/actors"
	"parley/gateway/client"
)

// BenchmarkCall is what the way to a node and back costs, without what the node does.
func BenchmarkCall(b *testing.B) {
	c, server := serveLimited(b, Limits{})
	server.operations["echo"] = nodeOp("echo", scopeRead, func(_ context.Context, _ *Server, r FormRequest) (FormRequest, error) {
		return r, nil
	})
	req := FormRequest{Recipient: "peer", Description: "Configure", Fields: Fields{{Name: "a", Label: "A", Required: true}}}
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

// serveServer runs a node with a server.
func serveServer(tb testing.TB) *Server {
	tb.Helper()
	_, s := serveLimited(tb, Limits{})
	return s
}

// serveLimited runs a node with a server, and gives a client of it, which makes a call once.
func serveLimited(tb testing.TB, limits Limits) (*client.Client, *Server) {
	tb.Helper()
	folder := tb.TempDir()
	node, err := actors.Open(tb.Context(), actors.Options{Folder: folder, Name: "test"})
	if err != nil {
		tb.Fatal(err)
	}
	socket := filepath.Join(folder, "parley.sock")
	server, err := Listen(node, Options{Socket: socket, Listen: "127.0.0.1:0", Version: "test", Limits: limits, Log: slog.New(slog.DiscardHandler)})
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
		ctx := tb.Context() // has ended, so that nothing lingers
		_ = server.Drain(ctx)
		_ = node.Close(ctx)
	})
	return c, server
}
