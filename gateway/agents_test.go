package gateway

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
	"parley/mailbox"
)

// These tests check each guarantee for agents over WebSocket.

// worker makes an agent that runs a shell script for each message.
func (h *testServer) worker(name, title, script string, change ...func(*actors.NewAgent)) *actors.Agent {
	h.t.Helper()
	m := actors.NewAgent{
		Kind: events.Guest, Name: name, Title: title, Wait: true,
		Program: &events.ProgramSet{Runtime: "exec", Command: []string{"sh", "-c", script}, Folder: h.t.TempDir()},
	}
	for _, c := range change {
		c(&m)
	}
	a, err := h.node.Host().Make(h.t.Context(), m)
	if err != nil {
		h.t.Fatal(err)
	}
	return a
}

// ask sends a request and returns its response.
func (k *wsClient) ask(operation, members string) map[string]any {
	k.t.Helper()
	k.send(fmt.Sprintf(`{"type":"%s_request","requestId":"%s-1"%s}`, operation, operation, members))
	f := k.answer()
	if f["type"] != operation+"_response" || f["requestId"] != operation+"-1" {
		k.t.Fatalf("%s: got %v", operation, f)
	}
	return f
}

// answer returns the next response, and skips the frames about questions that a host's client also receives.
func (k *wsClient) answer() map[string]any {
	k.t.Helper()
	for {
		if f := k.receiveMembers(); f["requestId"] != nil && f["type"] != "approval_request" {
			return f
		}
	}
}

func lifecycle(f map[string]any) any {
	agent, _ := f["agent"].(map[string]any)
	return agent["status"]
}

func errorCode(f map[string]any) any {
	e, _ := f["error"].(map[string]any)
	return e["code"]
}

func TestAgentsAreResolvedByTheNode(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	build := h.worker("builder", "The builder", "true")
	h.worker("twin-1", "Twin", "true")
	h.worker("twin-2", "Twin", "true")
	h.worker("named", "builder", "true") // its title is another agent's name
	k := h.dial("host")
	id := build.ID().ULID.String()
	for which, want := range map[string]string{
		build.ID().String(): id, id: id, id[:25]: id, strings.ToLower(id[:25]): id, "The builder": id, "builder": id,
	} {
		f := k.ask("fetch_agent", fmt.Sprintf(`,"agentId":%q`, which))
		agent, _ := f["agent"].(map[string]any)
		if got, _ := agent["id"].(string); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %v", which, f)
		}
	}
	for which, code := range map[string]string{"Twin": "AMBIGUOUS", id[:2]: "AMBIGUOUS", "the builder": "AGENT_NOT_FOUND", "nobody": "AGENT_NOT_FOUND"} {
		f := k.ask("fetch_agent", fmt.Sprintf(`,"agentId":%q`, which))
		if errorCode(f) != code || f["agent"] != nil {
			t.Errorf("%s: got %v, want %s", which, f, code)
		}
		if words := fmt.Sprint(f["error"]); which == "Twin" && (!strings.Contains(words, "twin-1") || !strings.Contains(words, "twin-2")) {
			t.Errorf("the candidates are not said: %s", words)
		}
		if f := k.ask("send_agent_message", fmt.Sprintf(`,"agentId":%q,"text":"x"`, which)); f["accepted"] != false || errorCode(f) != code {
			t.Errorf("a message to %s: got %v, want %s", which, f, code)
		}
		for _, operation := range []string{"wait_for_finish", "stop_agent", "archive_agent"} {
			k.send(fmt.Sprintf(`{"type":"%s_request","requestId":"r","agentId":%q}`, operation, which))
			if f := k.receiveMembers(); f["type"] != "error" || f["code"] != code || f["requestId"] != "r" {
				t.Errorf("%s of %s: got %v, want %s", operation, which, f, code)
			}
		}
	}
	if f := k.ask("fetch_agent", `,"agentId":""`); errorCode(f) != "INVALID_ARGUMENT" {
		t.Errorf("got %v", f)
	}
}

func TestAgentsFindOnlyAgentsTheyHold(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	h.guest("fae")
	secret := h.worker("secret", "Secret", "true")
	k := h.dial("fae")
	for _, which := range []string{"secret", "Secret", secret.ID().String(), secret.ID().ULID.String()[:25]} {
		if f := k.ask("fetch_agent", fmt.Sprintf(`,"agentId":%q`, which)); errorCode(f) != "AGENT_NOT_FOUND" {
			t.Errorf("%s: got %v", which, f)
		}
	}
	if list := k.ask("fetch_agents", "")["agents"].([]any); len(list) != 2 { // itself and its host
		t.Errorf("got %v", list)
	}
}

func TestFetchAgentsFilters(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	labelled := func(labels map[string]string) func(*actors.NewAgent) {
		return func(m *actors.NewAgent) { m.Labels = labels }
	}
	h.worker("a", "", "true", labelled(map[string]string{"ui": "true", "team": "web"}))
	h.worker("b", "", "true", labelled(map[string]string{"ui": "true"}))
	h.worker("c", "", "true", labelled(map[string]string{"ui": "false"}))
	k := h.dial("host")
	for filter, want := range map[string]string{
		`{"labels":{"ui":"true"}}`:                        "[a b]",
		`{"labels":{"ui":"true","team":"web"}}`:           "[a]",
		`{"labels":{"ui":"maybe"}}`:                       "[]",
		`{"labels":{"ui":"true"},"statuses":["running"]}`: "[]",
		`{"labels":{"ui":"true"},"statuses":["idle"]}`:    "[a b]",
		`{}`: "[HOST a b c]",
	} {
		f := k.ask("fetch_agents", `,"filter":`+filter)
		names := []string{}
		for _, a := range f["agents"].([]any) {
			names = append(names, a.(map[string]any)["name"].(string))
		}
		if fmt.Sprint(names) != want {
			t.Errorf("%s: got %v, want %s", filter, names, want)
		}
	}
}

// waitFile returns the path of a file that a script waits for, and a function that creates it.
func waitFile(t *testing.T) (path string, open func()) {
	path = filepath.Join(t.TempDir(), "open")
	return path, func() {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func waitForFile(path string) string { return "until [ -e '" + path + "' ]; do sleep 0.01; done" }

func TestAcceptedMeansDurableAndRunning(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	path, open := waitFile(t)
	h.worker("w", "", waitForFile(path))
	k := h.dial("host")
	f := k.ask("send_agent_message", `,"agentId":"w","text":"go @there","messageId":"one"`)
	if f["accepted"] != true || f["error"] != nil {
		t.Fatalf("got %v", f)
	}
	if f := k.ask("fetch_agent", `,"agentId":"w"`); lifecycle(f) != "running" {
		t.Fatalf("accepted, and then %v", f)
	}
	again := k.ask("send_agent_message", `,"agentId":"w","text":"go @there","messageId":"one"`)
	if again["accepted"] != true || again["message"] != f["message"] {
		t.Errorf("a repeat: got %v, first %v", again, f)
	}
	more := k.ask("send_agent_message", `,"agentId":"w","text":"then this"`)
	if more["accepted"] != true || more["queued"] != true {
		t.Errorf("a message to one that runs: %v", more)
	}
	open()
	if f := k.ask("wait_for_finish", `,"agentId":"w"`); f["status"] != "idle" {
		t.Errorf("got %v", f)
	}
	runs := 0
	for _, e := range logOf(t, h, "w") {
		if strings.Contains(e, "RunStarted") {
			runs++
		}
	}
	if runs != 2 {
		t.Errorf("%d runs for two messages", runs)
	}
}

// logOf returns the types of the events of an agent that the host holds.
func logOf(t *testing.T, h *testServer, name string) []string {
	t.Helper()
	a, err := h.node.ActAs(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	logged, err := a.Log(t.Context(), 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	types := make([]string, len(logged.Entries))
	for i, e := range logged.Entries {
		types[i] = e.Type
	}
	return types
}

func TestPromptThatCannotRunIsRefused(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	h.worker("w", "", "", func(m *actors.NewAgent) { m.Program.Command = []string{"no-such-program-here"} })
	k := h.dial("host")
	f := k.ask("send_agent_message", `,"agentId":"w","text":"go"`)
	if f["accepted"] != false || errorCode(f) == nil {
		t.Fatalf("got %v", f)
	}
	if f := k.ask("fetch_agent", `,"agentId":"w"`); lifecycle(f) != "error" {
		t.Errorf("then it is %v", f)
	}
	f = k.ask("wait_for_finish", `,"agentId":"w"`)
	final, _ := f["final"].(map[string]any)
	if why, _ := f["error"].(string); f["status"] != "error" || why == "" || why != final["error"] {
		t.Errorf("got %v", f)
	}
}

func TestAgentsAreListedByPage(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	for _, name := range []string{"a", "b", "c"} {
		h.guest(name)
	}
	k := h.dial("host")
	var seen []any
	cursor := ""
	for more := true; more; {
		f := k.ask("fetch_agents", fmt.Sprintf(`,"page":{"limit":3%s}`, cursor))
		agents, _ := f["agents"].([]any)
		info, _ := f["pageInfo"].(map[string]any)
		if before, _ := info["prevCursor"].(string); cursor != "" && cursor != fmt.Sprintf(`,"cursor":%q`, before) || cursor == "" && before != "" {
			t.Errorf("the page of the cursor %s has %q", cursor, before)
		}
		if more, _ = info["hasMore"].(bool); more != (info["nextCursor"] != nil) || len(agents) > 3 || more && len(agents) != 3 {
			t.Fatalf("got %v", f)
		}
		seen = append(seen, agents...)
		cursor = fmt.Sprintf(`,"cursor":%q`, info["nextCursor"])
	}
	if f := k.ask("fetch_agents", ""); len(seen) != 4 || len(f["agents"].([]any)) != 4 || f["pageInfo"] != nil {
		t.Errorf("pages have %v, all are %v", seen, f)
	}
	for _, wrong := range []string{`"page":{"limit":0}`, `"page":{"limit":-1}`, `"page":{"limit":1},"limit":2`, `"page":{"limit":"1"}`} {
		k.send(`{"type":"fetch_agents_request","requestId":"wrong",` + wrong + `}`)
		if f := k.answer(); f["code"] != "INVALID_ARGUMENT" {
			t.Errorf("%s: got %v", wrong, f)
		}
	}
}

func TestWaitForFinish(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	path, open := waitFile(t)
	h.worker("well", "", waitForFile(path))
	h.worker("ill", "", waitForFile(path)+"; echo broken >&2; exit 3")
	h.worker("asks", "", "read prompt; "+waitForFile(path)+`; printf '{"type":"approval","id":"a","tool":"shell","input":{"command":"ls"}}\n'; read decision`)
	k, other := h.dial("host"), h.dial("host")
	for _, name := range []string{"well", "ill", "asks"} {
		if f := k.ask("wait_for_finish", `,"agentId":"`+name+`"`); f["status"] != "idle" {
			t.Errorf("%s has not run: %v", name, f)
		}
		if f := k.ask("send_agent_message", `,"agentId":"`+name+`","text":"go"`); f["accepted"] != true {
			t.Fatalf("got %v", f)
		}
		if f := k.ask("wait_for_finish", `,"agentId":"`+name+`","timeoutMs":20`); f["status"] != "timeout" || f["final"].(map[string]any)["status"] != "running" {
			t.Errorf("%s runs: %v", name, f)
		}
		other.send(fmt.Sprintf(`{"type":"wait_for_finish_request","requestId":%q,"agentId":%q}`, name, name))
	}
	open()
	ends := map[string]string{}
	for range 3 {
		f := other.answer()
		if f["type"] != "wait_for_finish_response" {
			t.Fatalf("got %v", f)
		}
		ends[f["requestId"].(string)] = fmt.Sprint(f["status"], " ", f["final"].(map[string]any)["error"])
	}
	if ends["well"] != "idle <nil>" || !strings.HasPrefix(ends["ill"], "error the program ended: exit status 3") || ends["asks"] != "permission <nil>" {
		t.Errorf("got %v", ends)
	}
	for name, want := range map[string]string{"well": "idle", "ill": "error", "asks": "permission"} {
		if f := k.ask("wait_for_finish", `,"agentId":"`+name+`"`); f["status"] != want {
			t.Errorf("%s has finished: %v", name, f)
		}
	}
	f := k.ask("fetch_agent", `,"agentId":"asks"`)
	pending := f["agent"].(map[string]any)["pendingPermissions"].([]any)
	if lifecycle(f) != "running" || len(pending) != 1 || pending[0].(map[string]any)["tool"] != "shell" {
		t.Errorf("got %v", f)
	}
}

func TestAgentUpdates(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	fae := h.guest("fae")
	h.worker("w", "", "true", func(m *actors.NewAgent) { m.Labels = map[string]string{"ui": "true"} })
	k, one := h.dial("host"), h.dial("host")
	k.send(`{"type":"subscribe_agent_updates","requestId":"r","subscriptionId":"ui","filter":{"labels":{"ui":"true"}}}`)
	want(t, k.receive(), `"type":"subscribed"`, `"requestId":"r"`)
	want(t, k.receive(), `"type":"agent_update"`, `"subscriptionId":"ui"`, `"kind":"upsert"`, `"name":"w"`, `"status":"idle"`)
	one.send(`{"type":"subscribe_agent_updates","subscriptionId":"s","filter":{"agentId":"fae"}}`)
	want(t, one.receive(), `"kind":"upsert"`, `"name":"fae"`)

	conn := h.dial("host")
	if f := conn.ask("send_agent_message", `,"agentId":"w","text":"go"`); f["accepted"] != true {
		t.Fatalf("got %v", f)
	}
	for done := false; !done; {
		f := k.receiveMembers()
		agent := f["agent"].(map[string]any)
		done = agent["status"] == "idle" && agent["queued"] == 0.0 // the status is also idle before the message's run begins
		if f["type"] != "agent_update" || f["subscriptionId"] != "ui" || agent["name"] != "w" {
			t.Fatalf("got %v", f)
		}
	}
	h.dial("fae").ask("set_status", `,"status":"running"`)
	want(t, one.receive(), `"name":"fae"`, `"status":"running"`)
	if err := fae.Describe(t.Context(), nil, map[string]string{"ui": "true"}); err != nil {
		t.Fatal(err)
	}
	want(t, k.receive(), `"kind":"upsert"`, `"name":"fae"`)
	want(t, one.receive(), `"name":"fae"`)
	conn.ask("archive_agent", `,"agentId":"w"`)
	want(t, k.receive(), `"kind":"remove"`, `"name":"w"`, `"status":"closed"`)
	if f := conn.ask("send_agent_message", `,"agentId":"w","text":"go"`); f["accepted"] != false || errorCode(f) != "AGENT_ARCHIVED" {
		t.Errorf("got %v", f)
	}
}

func TestMarkFollowsFirstAgentUpdates(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	h.worker("w", "", "true")
	for filter, names := range map[string][]string{`{}`: {"HOST", "w"}, `{"labels":{"ui":"true"}}`: nil} {
		k := h.dial("host")
		k.send(`{"type":"subscribe_agent_updates","subscriptionId":"s","mark":true,"filter":` + filter + `}`)
		for _, name := range names {
			want(t, k.receive(), `"type":"agent_update"`, `"name":"`+name+`"`)
		}
		want(t, k.receive(), `"type":"agents_told"`, `"subscriptionId":"s"`)
	}
}

func TestStoppedAgentSendsNoForms(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	h.worker("w", "", `printf '{"type":"ask","id":"q","prompt":"Go on?"}\n'; read answer; sleep 600`)
	k := h.dial("host")
	if f := k.ask("send_agent_message", `,"agentId":"w","text":"go"`); f["accepted"] != true {
		t.Fatalf("got %v", f)
	}
	question := func() (asked view.Message) {
		eventually.Holds(t, "it asks", func() bool {
			in, err := h.node.Host().Mail().Inbox(t.Context(), view.MessageFilter{All: true})
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(in.Messages, func(m view.Message) bool { return m.Type == "form" })
			if i >= 0 {
				asked = in.Messages[i]
			}
			return i >= 0
		})
		return asked
	}
	question()
	k.ask("stop_agent", `,"agentId":"w"`)
	if m := question(); m.Outcome == nil || m.Outcome.Status != view.StatusCancelled {
		t.Errorf("what it asked is %+v", m.Outcome)
	}
	if f := k.ask("wait_for_finish", `,"agentId":"w"`); f["status"] != "idle" {
		t.Errorf("got %v", f)
	}
}

func TestRestartInterruptsRunsAndKeepsQueue(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	path, open := waitFile(t)
	h.worker("w", "", `read prompt; case "$prompt" in *first*) printf '{"type":"approval","id":"a","tool":"shell","input":{"command":"rm"}}\n'; read decision;; *) `+waitForFile(path)+`;; esac`)
	h.worker("alone", "", "sleep 600")
	k := h.dial("host")
	for _, text := range []string{"first", "second"} {
		if f := k.ask("send_agent_message", `,"agentId":"w","text":"`+text+`"`); f["accepted"] != true {
			t.Fatalf("got %v", f)
		}
	}
	if f := k.ask("send_agent_message", `,"agentId":"alone","text":"go"`); f["accepted"] != true {
		t.Fatalf("got %v", f)
	}
	if f := k.ask("wait_for_finish", `,"agentId":"w"`); f["status"] != "permission" {
		t.Fatalf("got %v", f)
	}
	h.close()
	h.open(nil)
	k = h.dial("host")
	f := k.ask("fetch_agent", `,"agentId":"alone"`)
	if agent := f["agent"].(map[string]any); agent["status"] != "error" || agent["error"] != "interrupted" {
		t.Errorf("got %v", agent)
	}
	f = k.ask("fetch_agent", `,"agentId":"w"`) // it runs for the second message, and its question is still open
	agent := f["agent"].(map[string]any)
	if agent["status"] != "running" || len(agent["pendingPermissions"].([]any)) != 1 {
		t.Errorf("got %v", agent)
	}
	open()
	if f := k.ask("wait_for_finish", `,"agentId":"w"`); f["status"] != "permission" {
		t.Errorf("got %v", f)
	}
	in, err := h.node.Host().Mail().Inbox(t.Context(), view.MessageFilter{Pending: true})
	if err != nil || len(in.Messages) != 1 {
		t.Fatalf("got %v, %v", in.Messages, err)
	}
}

func TestPendingCallsAreShownToControllers(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	fae, bob := h.guest("fae"), h.guest("bob")
	if _, err := h.node.Host().Send(t.Context(), "bob", "meet @fae"); err != nil {
		t.Fatal(err)
	}
	if err := bob.Adopt(t.Context(), capabilities.FormNumber(0), "fae", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := fae.Approve(t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: "shell", Input: `{"command":"secret"}`}}); err != nil {
		t.Fatal(err)
	}
	for who, sees := range map[string]bool{"bob": false, "host": true, "fae": true} {
		which := "fae"
		if who == "fae" {
			which = "SELF"
		}
		f, err := json.Marshal(h.dial(who).ask("fetch_agent", `,"agentId":"`+which+`"`))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(f), "secret"); got != sees {
			t.Errorf("%s sees the call: %v in %s", who, got, f)
		}
	}
	k := h.dial("bob")
	for _, operation := range []string{"stop_agent", "read_output"} {
		k.send(`{"type":"` + operation + `_request","requestId":"r","agentId":"fae"}`)
		if f := k.receiveMembers(); f["code"] != "NOT_PERMITTED" {
			t.Errorf("%s: got %v", operation, f)
		}
	}
}
