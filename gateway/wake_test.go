package gateway

import (
	"context"
	"fmt"
	"testing"

	"parley/gateway/api"
	"parley/gateway/client"
	"parley/internal/eventually"
)

// TestWakeEndsWithClientAndNode has a process wait for the moment at which its session is to be woken. The node sees that
// it ends, though its request has a body, and a stop of the node does not wait for another one.
func TestWakeEndsWithClientAndNode(t *testing.T) {
	t.Parallel()
	_, s := serveLimited(t, api.Limits{"calls.host": 1})
	host := s.backend.Local().Account()
	waits := func() bool {
		if host.Take(api.KindCalls, 1) != nil {
			return true
		}
		host.Give(api.KindCalls, 1)
		return false
	}
	ask := func() (end func()) {
		conn, err := client.Dial(t.Context(), s.socketPath)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: parley\r\nContent-Length: 2\r\n\r\n{}", api.WakePath); err != nil {
			t.Fatal(err)
		}
		eventually.Holds(t, "the process waits", waits)
		return func() { _ = conn.Close() }
	}
	end := ask()
	end()
	eventually.Within(t, wakeTime/2, "the node sees that the process has gone", func() bool { return !waits() })
	defer ask()()
	ctx, cancel := context.WithTimeout(t.Context(), wakeTime/2)
	defer cancel()
	if err := s.Drain(ctx); err != nil {
		t.Error(err)
	}
	if waits() {
		t.Error("the process waits at a node that has stopped")
	}
}
