package client_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/gateway/api"
	"parley/gateway/client"
	"parley/gateway/mux"
	"parley/internal/eventually"
)

// The options of Node's with and without a WebSocket. Versions before 22 have one only with the first.
const (
	withWebSocket    = "--experimental-websocket"
	withoutWebSocket = "--no-experimental-websocket"
)

// overBoth runs a test of a script over a connection for many calls, and over HTTP.
func overBoth(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	for _, way := range [][2]string{{"link", withWebSocket}, {"HTTP", withoutWebSocket}} {
		t.Run(way[0], func(t *testing.T) {
			t.Setenv("NODE_OPTIONS", way[1])
			test(t)
		})
	}
}

// TestTypeScriptUnits runs the tests that need no node.
func TestTypeScriptUnits(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("typescript", "test", "*.test.mjs"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	node, err := exec.LookPath("node")
	if err != nil && os.Getenv("CI") == "" {
		t.Skip("there is no node")
	}
	if out, err := exec.Command(node, append([]string{"--test"}, files...)...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestTypeScriptAgentsShareConnection counts what cycles of two agents put on the wire.
func TestTypeScriptAgentsShareConnection(t *testing.T) {
	t.Setenv("NODE_OPTIONS", withWebSocket)
	h, host, _ := openTest(t)
	pass := openCuttingProxy(t, h.address, "")
	const cycles = 200
	s := startScript(t, "../test/cycles.mjs", pass.url, tokenOf(t, host), fmt.Sprint(cycles), "16", hostToken(t, host))
	if got := strings.Count(s.ends(t), "cycle"); got != cycles {
		t.Errorf("%d cycles, want %d", got, cycles)
	}
	t.Log(strings.TrimSpace(s.stderr.String()))
	if sockets := pass.sockets.Load(); sockets != 1 {
		t.Errorf("%d connections were opened, want 1", sockets)
	}
	for operation, want := range map[string]int{"form": cycles, "respond_form": cycles, "await": 0, "follow": 1} {
		if got := pass.begunOf(operation); got != want {
			t.Errorf("%s was called %d times, want %d", operation, got, want)
		}
	}
	if asked, plain := pass.framesOf(mux.Asked), pass.plain.Load(); asked != cycles || plain > 4 {
		t.Errorf("%d forms were accepted with their outcomes to come, want %d, and %d calls went by HTTP", asked, cycles, plain)
	}
}

// TestTypeScriptCyclesSurviveRestart kills the node in the middle, and later stops it in order.
func TestTypeScriptCyclesSurviveRestart(t *testing.T) {
	overBoth(t, func(t *testing.T) {
		h, host, _ := openTest(t)
		const cycles = 200
		s := startScript(t, "../test/cycles.mjs", h.url(), tokenOf(t, host), fmt.Sprint(cycles), "16", hostToken(t, host))
		for _, end := range []func(){h.kill, h.stop} {
			for range cycles / 4 {
				s.line(t)
			}
			end()
			if err := h.start(); err != nil {
				t.Fatal(err)
			}
		}
		ended := strings.Fields(strings.ReplaceAll(s.ends(t), "cycle ", ""))
		var asked, want []string
		for _, m := range listed(t, host, client.View{All: true}) {
			asked = append(asked, m.Description)
		}
		for i := range cycles {
			want = append(want, fmt.Sprint(i))
		}
		slices.Sort(ended)
		slices.Sort(asked)
		slices.Sort(want)
		if !slices.Equal(ended, want) || !slices.Equal(asked, want) {
			t.Errorf("%d cycles ended, and %d forms were asked, want %d of each, once", len(ended), len(asked), cycles)
		}
	})
}

// TestTypeScriptFollowHasCredit has a script stop reading.
func TestTypeScriptFollowHasCredit(t *testing.T) {
	t.Setenv("NODE_OPTIONS", withWebSocket)
	h, host, fae := openTest(t)
	pass := openCuttingProxy(t, h.address, "")
	say := func(texts ...string) {
		t.Helper()
		for _, text := range texts {
			if _, err := fae.Send(t.Context(), "HOST", client.Post{Text: text}); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := []string{"first", "second"}
	say(want[0])
	goOn := filepath.Join(t.TempDir(), "go on")
	s := startScript(t, "../test/slow.mjs", pass.url, hostToken(t, host), goOn)
	if got := s.line(t); got != want[0] {
		t.Fatalf("got %q", got)
	}
	eventually.Holds(t, "the script follows over the connection", func() bool { return pass.begunOf("follow") > 0 })
	say(want[1])
	if got := s.line(t); got != want[1] {
		t.Fatalf("got %q", got)
	}
	for i := range 100 {
		want = append(want, fmt.Sprint(i))
		say(want[len(want)-1])
	}
	want = append(want, "end")
	say("end")
	const window = 32
	eventually.Holds(t, "all of its credit is used", func() bool { return pass.framesOf(mux.Item) >= window })
	time.Sleep(100 * time.Millisecond)
	if got := pass.framesOf(mux.Item); got != window {
		t.Errorf("%d messages were sent to a script that takes none, want %d", got, window)
	}
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := strings.Fields(s.ends(t)); !slices.Equal(got, want) {
		t.Errorf("it was told %s", got)
	}
}

// TestTypeScriptFallsBackToHTTP has something on the way that knows no WebSockets.
func TestTypeScriptFallsBackToHTTP(t *testing.T) {
	t.Setenv("NODE_OPTIONS", withWebSocket)
	h, host, _ := openTest(t)
	pass := openCuttingProxy(t, h.address, "")
	pass.plainOnly = true
	s := startScript(t, "../test/cycles.mjs", pass.url, tokenOf(t, host), "20", "4", hostToken(t, host))
	if got := strings.Count(s.ends(t), "cycle"); got != 20 {
		t.Errorf("%d cycles, want 20", got)
	}
	if tried := pass.sockets.Load(); tried != 1 {
		t.Errorf("%d connections were tried, want 1", tried)
	}
}

// TestTypeScriptAgentOutlivesConnection revokes the token that opened the connection of two agents.
func TestTypeScriptAgentOutlivesConnection(t *testing.T) {
	t.Setenv("NODE_OPTIONS", withWebSocket)
	h, host, fae := openTest(t)
	pass := openCuttingProxy(t, h.address, "")
	var made struct{ ID, Token string }
	if err := host.Call(t.Context(), "create_token", map[string]any{"as": "fae"}, &made); err != nil {
		t.Fatal(err)
	}
	s := startScript(t, "../test/revoked.mjs", pass.url, made.Token, hostToken(t, host))
	if got := s.line(t); got != "asked" {
		t.Fatalf("got %q", got)
	}
	eventually.Holds(t, "the script follows over the connection", func() bool { return pass.begunOf("follow") > 0 })
	if err := host.Call(t.Context(), "revoke_token", map[string]any{"as": "fae", "token": made.ID}, nil); err != nil {
		t.Fatal(err)
	}
	if got := s.line(t); got != "UNAUTHENTICATED" {
		t.Errorf("the agent without a token is told %q", got)
	}
	if _, err := fae.Send(t.Context(), "HOST", client.Post{Text: "end"}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Fields(s.ends(t)); !slices.Equal(got, []string{"asked", "UNAUTHENTICATED", "end"}) {
		t.Errorf("it is told %s", got)
	}
}

// TestTypeScriptAsksBringTheirOutcomes has a script request a capability and ask for approval.
func TestTypeScriptAsksBringTheirOutcomes(t *testing.T) {
	t.Setenv("NODE_OPTIONS", withWebSocket)
	h, host, _ := openTest(t)
	pass := openCuttingProxy(t, h.address, "")
	s := startScript(t, "../test/asks.mjs", pass.url, tokenOf(t, host))
	if got := s.line(t); got != "asked" {
		t.Fatalf("got %q", got)
	}
	for _, m := range listed(t, host, client.View{Pending: true}) {
		var err error
		if m.Type == "request" {
			_, err = api.Reject.Do(t.Context(), host, api.DeclineRequest{FormRef: api.RefTo(string(m.ID())), Reason: "no"})
		} else {
			_, err = host.Decide(t.Context(), m, "once", "")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := s.ends(t); got != "asked\ndeclined no\ntrue\n" {
		t.Errorf("it said %q", got)
	}
	if n := pass.begunOf("await"); n > 0 {
		t.Errorf("%d calls awaited an outcome", n)
	}
}
