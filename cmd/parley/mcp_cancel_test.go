package main

import (
	"context"
	"os"
	"os/exec"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/actors/view"
)

// TestCancelledCallWithdrawsItsForm cancels calls by a notification. A client of 2026-07-28 over HTTP has none: it
// disconnects.
func TestCancelledCallWithdrawsItsForm(t *testing.T) {
	t.Parallel()
	for _, w := range toolTransports() {
		t.Run(w.transport+" "+w.version, func(t *testing.T) {
			t.Parallel()
			h := openModelServer(t)
			m := h.connect(w, nil)
			cancelled := func(more arguments) string {
				t.Helper()
				ctx, cancel := context.WithCancel(t.Context())
				var asking sync.WaitGroup
				asking.Go(func() {
					if got, err := m.call(ctx, "ask_user", portForm(more)); err == nil {
						t.Error(got.raw)
					}
				})
				form := awaitForm(t, h.node.Host()).MessageID.String()
				cancel()
				asking.Wait()
				return form
			}
			form := cancelled(nil)
			if w == (toolTransport{"http", "2026-07-28"}) {
				h.close() // ends the call
				h.open()
				answer(t, h.node.Host(), form, "port", "443")
				return
			}
			if o, err := h.agent("fae").Await(t.Context(), mustRef(form)); err != nil || o.Status != view.StatusCancelled || o.Note != "the client cancelled its call" {
				t.Errorf("%+v %v", o, err)
			}
			answer(t, h.node.Host(), cancelled(arguments{"key": "port"}), "port", "443") // another call may wait for it
		})
	}
}

// TestCancelledElicitationIsWithdrawn cancels a call whose form is shown. The client is told to show it no longer.
func TestCancelledElicitationIsWithdrawn(t *testing.T) {
	t.Parallel()
	h := openModelServer(t)
	shown, gone := make(chan struct{}), make(chan struct{})
	m := h.connect(toolTransport{"stdio", "2025-11-25"}, person(func(ctx context.Context, _ *sdk.ElicitParams) (*sdk.ElicitResult, error) {
		close(shown)
		<-ctx.Done()
		close(gone)
		return nil, ctx.Err()
	}))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-shown
		cancel()
	}()
	if got, err := m.call(ctx, "ask_user", dateForm(nil)); err == nil {
		t.Fatal(got.raw)
	}
	<-gone
}

// TestDisconnectKeepsFormsOpen ends the input of a server during a call. The server ends, and the form stays open.
func TestDisconnectKeepsFormsOpen(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			h := openModelServer(t)
			c := exec.Command("parley", "--state", h.folder, "--as", "fae", "mcp")
			c.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
			in, err := c.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := c.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			m := h.connectTo(&sdk.IOTransport{Reader: out, Writer: in}, version, nil)
			var asking sync.WaitGroup
			asking.Go(func() {
				if got, err := m.call(t.Context(), "ask_user", portForm(nil)); err == nil {
					t.Error(got.raw)
				}
			})
			form := awaitForm(t, h.node.Host()).MessageID.String()
			_ = in.Close() // the client has gone away
			asking.Wait()
			if err := c.Wait(); err != nil {
				t.Error(err)
			}
			answer(t, h.node.Host(), form, "port", "443")
			if got := h.connect(toolTransport{"stdio", version}, nil).use("await_answer", arguments{"handle": form}); got.Status != "answered" {
				t.Error(got.raw)
			}
		})
	}
}
