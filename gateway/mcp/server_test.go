package mcp

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley"
)

func serverTest(t *testing.T) (*Server, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	s, err := newServer(t.Context(), Options{Key: make([]byte, 32), Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return s, &log
}

func TestCallsAreBoundedAndEndWithTheServer(t *testing.T) {
	s, _ := serverTest(t)
	a, b := newGuest("a", 1), newGuest("b", 1)
	if err := s.enter(a); err != nil {
		t.Fatal(err)
	}
	if err := s.enter(a); parley.CodeOf(err) != parley.RateLimited {
		t.Errorf("a second call: %v", err)
	}
	if err := s.enter(b); err != nil {
		t.Errorf("another's call: %v", err)
	}
	s.leave(b)
	s.leave(a)
	if err := s.enter(a); err != nil {
		t.Errorf("once there is room: %v", err)
	}
	s.leave(a)
	s.close()
	if err := s.enter(a); parley.CodeOf(err) != parley.NotRunning {
		t.Errorf("after the end: %v", err)
	}
}

func TestToolPanicFailsOnlyItsCall(t *testing.T) {
	s, log := serverTest(t)
	nobody := func(sdk.Request) (Client, error) { return newGuest("a", 1), nil }
	bad := s.handler(nobody, &sdk.Tool{}, func(context.Context, *call) (any, error) { panic("a secret") })
	r, err := bad(t.Context(), &sdk.CallToolRequest{Params: &sdk.CallToolParamsRaw{Name: "bad"}})
	if err != nil || !r.IsError {
		t.Fatalf("%v %v", r, err)
	}
	text, _ := r.Content[0].(*sdk.TextContent)
	if !strings.Contains(text.Text, `"INTERNAL"`) || strings.Contains(text.Text, "secret") || !strings.Contains(log.String(), "a secret") {
		t.Errorf("%s, and in the log %s", text.Text, log)
	}
	s.close() // close waits for all calls
}
