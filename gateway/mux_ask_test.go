package gateway

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"parley/gateway/mux"
	"parley/internal/eventually"
)

// TestAnOutcomeComesOnTheAsksOwnID has two agents ask and answer on one connection, in maps and in JSON.
func TestAnOutcomeComesOnTheAsksOwnID(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	h.guest("fae")
	k := h.muxDial("fae")
	k.send(mux.Frame{Kind: mux.SignIn, ID: 1, Body: jsonBody(`{"token":%q}`, h.tokens["host"])})
	k.wants(mux.Result, 1, `"agent":1`)
	for i, body := range []func(string, ...any) []byte{jsonBody, func(f string, args ...any) []byte { return mapBody(t, f, args...) }} {
		ask, answer, again := uint64(10*i+2), uint64(10*i+3), uint64(10*i+4)
		k.send(mux.Frame{Kind: mux.Ask, ID: ask, Body: body(formText, fmt.Sprint(i))})
		form := formOf(t, k.wants(mux.Asked, ask))
		k.send(mux.Frame{Kind: mux.Call, ID: answer, Agent: 1, Operation: "respond_form", Body: body(`{"id":%q,"values":{"a":"yes"}}`, form)})
		got := map[uint64]string{}
		for range 2 {
			f, text := k.receive()
			if f.Kind != mux.Result || mux.NewReader(f.Body).IsJSON() != (i == 0) {
				t.Errorf("frame %d: %s", f.Kind, text)
			}
			got[f.ID] = text
		}
		if !strings.Contains(got[ask], `"a":"yes"`) || !strings.Contains(got[answer], `"answered"`) {
			t.Errorf("%v", got)
		}
		k.send(mux.Frame{Kind: mux.Ask, ID: again, Body: body(formText, fmt.Sprint(i))}) // the same form
		k.wants(mux.Result, again, form, `"a":"yes"`)
	}
	k.send(mux.Frame{Kind: mux.Call, ID: 90, Operation: "list_messages", Body: mapBody(t, `{"all":true}`)}, // one on a goroutine
		mux.Frame{Kind: mux.SignOut, ID: 91, Agent: 1})
	for range 2 {
		k.receive()
	}
	k.send(mux.Frame{Kind: mux.Call, ID: 92, Agent: 1, Operation: "list_messages", Body: jsonBody(`{}`)})
	k.wants(mux.Refusal, 92, "UNAUTHENTICATED")
}

// TestSlotsOfSignInsAreReused signs agents in and out more often than a connection has slots. The number of an agent whose token
// has ended is nobody's until its client gives it back.
func TestSlotsOfSignInsAreReused(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	fae := h.guest("fae")
	k := h.muxDial("host")
	signIn := func(id uint64) string {
		k.send(mux.Frame{Kind: mux.SignIn, ID: id, Body: jsonBody(`{"token":%q}`, h.tokens["fae"])})
		return k.wants(mux.Result, id)
	}
	for i := range uint64(30) {
		for _, want := range []string{`{"agent":1}`, `{"agent":2}`} {
			if got := signIn(4 * i); got != want {
				t.Fatalf("%s, want %s", got, want)
			}
		}
		k.send(mux.Frame{Kind: mux.SignOut, ID: 4*i + 1, Agent: 2}, mux.Frame{Kind: mux.SignOut, ID: 4*i + 2, Agent: 2}, mux.Frame{Kind: mux.SignOut, ID: 4*i + 3, Agent: 1})
		for range 3 {
			k.receive()
		}
	}
	signIn(200)
	revokeAll(t, fae)
	k.send(mux.Frame{Kind: mux.Call, ID: 201, Agent: 1, Operation: "list_messages", Body: jsonBody(`{}`)})
	k.wants(mux.Refusal, 201, "UNAUTHENTICATED")
	k.send(mux.Frame{Kind: mux.SignIn, ID: 202, Body: jsonBody(`{"token":%q}`, h.tokens["host"])})
	k.wants(mux.Result, 202, `{"agent":2}`)
	k.send(mux.Frame{Kind: mux.SignOut, ID: 203, Agent: 1})
	k.wants(mux.Result, 203)
	k.send(mux.Frame{Kind: mux.SignIn, ID: 204, Body: jsonBody(`{"token":%q}`, h.tokens["host"])})
	k.wants(mux.Result, 204, `{"agent":1}`)
}

// TestRequestsAndApprovalsBringTheirOutcomes asks by both on one connection, and by an operation that asks nothing.
func TestRequestsAndApprovalsBringTheirOutcomes(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	h.guest("fae")
	k := h.muxDial("fae")
	k.send(mux.Frame{Kind: mux.SignIn, ID: 1, Body: jsonBody(`{"token":%q}`, h.tokens["host"])})
	k.wants(mux.Result, 1, `"agent":1`)
	for i, ask := range []struct{ operation, body, settle, by, outcome string }{
		{"request", `{"recipient":"HOST","text":"a key","key":"r"}`, "reject", `{"id":%q,"reason":"no"}`, `"declined"`},
		{"approve", `{"tool":"shell","input":{"command":"ls"},"key":"a"}`, "respond_form", `{"id":%q,"values":{"decision":"once"}}`, `"allowed":true`},
	} {
		id := uint64(10 * (i + 1))
		asks := mux.Frame{Kind: mux.AskBy, ID: id, Operation: ask.operation, Body: jsonBody("%s", ask.body)}
		k.send(asks)
		form := formOf(t, k.wants(mux.Asked, id))
		k.send(mux.Frame{Kind: mux.Call, ID: id + 1, Agent: 1, Operation: ask.settle, Body: jsonBody(ask.by, form)})
		got := map[uint64]string{}
		for range 2 {
			f, text := k.receive()
			got[f.ID] = text
		}
		if !strings.Contains(got[id], ask.outcome) || !strings.Contains(got[id], form) {
			t.Errorf("%s: %v", ask.operation, got)
		}
		asks.ID = id + 2
		k.send(asks) // the same
		k.wants(mux.Result, id+2, form, `"outcome"`)
	}
	k.send(mux.Frame{Kind: mux.AskBy, ID: 90, Operation: "approve", Body: jsonBody(`{"tool":"shell","input":{},"key":"b","attended":true}`)})
	k.wants(mux.Result, 90, `"unattended":true`)
	k.send(mux.Frame{Kind: mux.AskBy, ID: 91, Operation: "send", Body: jsonBody(`{"recipient":"HOST","text":"x"}`)})
	k.wants(mux.Refusal, 91, "INVALID_ARGUMENT")
	k.send(mux.Frame{Kind: mux.AskBy, ID: 92, Operation: "approve", Body: jsonBody(`{"tool":"shell"}`)})
	k.wants(mux.Refusal, 92, "INVALID_ARGUMENT")
}

// TestWaitsOfAConnectionEnd ends them by their client, by their time, by the connection, and by the node.
func TestWaitsOfAConnectionEnd(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	h.guest("fae")
	k := h.muxDial("fae")
	k.send(mux.Frame{Kind: mux.Ask, ID: 1, Body: jsonBody(formText, "1")})
	form := formOf(t, k.wants(mux.Asked, 1))
	k.send(mux.Frame{Kind: mux.Call, ID: 2, Operation: "await", Body: jsonBody(`{"id":%q,"waitMs":60}`, form)})
	k.wants(mux.Result, 2, `"open"`)
	k.send(mux.Frame{Kind: mux.Cancel, ID: 1}, mux.Frame{Kind: mux.Call, ID: 3, Operation: "await", Body: jsonBody(`{"id":%q}`, form)})
	waits := func() int64 {
		for _, l := range h.server.backend.Limits() {
			if l.Name == "waits" && l.For == "agents" {
				return l.Now
			}
		}
		return -1
	}
	eventually.Holds(t, "one waits", func() bool { return waits() == 1 })
	other := h.muxDial("fae")
	other.send(mux.Frame{Kind: mux.Ask, ID: 1, Body: jsonBody(formText, "1")})
	other.wants(mux.Asked, 1, form)
	eventually.Holds(t, "two wait", func() bool { return waits() == 2 })
	_ = other.conn.CloseNow()
	eventually.Holds(t, "one waits again", func() bool { return waits() == 1 })
	k.send(mux.Frame{Kind: mux.Ask, ID: 4, Body: jsonBody(formText, "1")})
	k.wants(mux.Asked, 4, form)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		h.close()
	}()
	want := map[uint64]string{0: fmt.Sprint(mux.Going, " NOT_RUNNING"), 3: fmt.Sprint(mux.Result, " open"), 4: fmt.Sprint(mux.Refusal, " NOT_RUNNING")}
	for range 3 {
		f, text := k.receive()
		kind, word, _ := strings.Cut(want[f.ID], " ")
		if fmt.Sprint(f.Kind) != kind || !strings.Contains(text, word) {
			t.Errorf("frame %d of %d: %s", f.Kind, f.ID, text)
		}
		delete(want, f.ID)
	}
	if code := k.end(); code != websocket.StatusGoingAway {
		t.Errorf("the connection ends with %v", code)
	}
	<-closed
	if n := waits(); n != 0 {
		t.Errorf("%d wait", n)
	}
}
