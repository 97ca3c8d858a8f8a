package gateway

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"parley"
	"parley/capabilities"
	"parley/gateway/agui"
	"parley/internal/eventually"
)

// aguiRun runs an agent and calls each with each event, until the stream ends or each returns false.
func (h *testServer) aguiRun(agent, path string, input map[string]any, each func(map[string]any) bool) int {
	h.t.Helper()
	body, err := json.Marshal(input)
	if err != nil {
		h.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, "http://"+h.server.Address()+agui.Path+path, strings.NewReader(string(body)))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+h.tokens[agent])
	r.Header.Set("Accept", "text/event-stream")
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer got.Body.Close()
	lines := bufio.NewScanner(got.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var e map[string]any
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			h.t.Fatal(err)
		}
		if !each(e) {
			break
		}
	}
	return got.StatusCode
}

// runInput returns the input of a run, as clients send it.
func runInput(run, text string, resume ...any) map[string]any {
	in := map[string]any{
		"threadId": "t", "runId": run, "state": map[string]any{}, "tools": []any{}, "context": []any{}, "forwardedProps": map[string]any{},
		"messages": []any{map[string]any{"id": "m", "role": "user", "content": text}},
	}
	if len(resume) > 0 {
		in["resume"] = resume
	}
	return in
}

func TestAGUIRunIsInterruptedAndResumed(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	h.guest("fae")
	h.guest("bob")
	var all []map[string]any
	run := func(agent string, input map[string]any, on func(map[string]any)) (events []map[string]any) {
		t.Helper()
		h.aguiRun(agent, "", input, func(e map[string]any) bool {
			events = append(events, e)
			on(e)
			return true
		})
		all = append(all, events...)
		return events
	}
	nothing := func(map[string]any) {}
	ask := func(e map[string]any) {
		if e["type"] != "RUN_STARTED" {
			return
		}
		eventually.Holds(t, "the form waits", func() bool { n, err := h.node.Host().Mail().Counts(t.Context()); return err == nil && n.Pending == 1 })
		if _, err := h.node.Host().Ask(t.Context(), parley.Form{To: "fae", Title: "Which flight?", Description: "I need a day.", Fields: flightFields}); err != nil {
			t.Error(err)
		}
	}
	interruptOf := func(events []map[string]any) map[string]any {
		t.Helper()
		last := events[len(events)-1]
		outcome, _ := last["outcome"].(map[string]any)
		interrupts, _ := outcome["interrupts"].([]any)
		if last["type"] != "RUN_FINISHED" || outcome["type"] != "interrupt" || len(interrupts) != 1 {
			t.Fatalf("the run ended with %v", last)
		}
		return interrupts[0].(map[string]any) //nolint:forcetypeassert // an interrupt is an object
	}
	first := interruptOf(run("fae", runInput("r1", "Book a flight"), ask))
	if again := interruptOf(run("fae", runInput("r1", "Book a flight"), nothing)); again["id"] != first["id"] {
		t.Errorf("the same run is interrupted by %v and %v", first["id"], again["id"])
	}
	schema, _ := first["responseSchema"].(map[string]any)
	if required, _ := schema["required"].([]any); len(required) != 2 || first["reason"] != agui.Reason || first["message"] != "Which flight?\n\nI need a day." {
		t.Errorf("the interrupt is %v", first)
	}
	resume := func(status string, payload any) map[string]any {
		return map[string]any{"interruptId": first["id"], "status": status, "payload": payload}
	}
	wrong := interruptOf(run("fae", runInput("r2", "", resume("resolved", map[string]any{"day": "tomorrow", "seats": 2})), nothing))
	if text, _ := wrong["message"].(string); wrong["id"] != first["id"] || !strings.Contains(text, "not accepted") {
		t.Errorf("after a wrong answer: %v", wrong)
	}
	for _, x := range []struct {
		agent string
		with  map[string]any
		code  string
	}{
		{"bob", resume("resolved", map[string]any{}), "NO_SUCH_MESSAGE"},
		{"fae", map[string]any{"interruptId": "none", "status": "resolved"}, "INVALID_ARGUMENT"},
		{"fae", resume("maybe", nil), "INVALID_ARGUMENT"},
	} {
		got := run(x.agent, runInput("r3", "", x.with), nothing)
		if last := got[len(got)-1]; last["type"] != "RUN_ERROR" || last["code"] != x.code {
			t.Errorf("%s with %v: %v", x.agent, x.with, last)
		}
	}
	h.close()
	h.open(nil)
	right := runInput("r4", "", resume("resolved", map[string]any{"day": "2026-12-01", "seats": 2}))
	h.aguiRun("fae", "", right, func(map[string]any) bool {
		eventually.Holds(t, "the answer is taken", func() bool {
			_, counts := h.post("count_messages", "Bearer "+h.tokens["fae"], `{}`)
			return strings.Contains(counts, `"pending":0`)
		})
		return false // the connection is lost
	})
	done := run("fae", right, func(e map[string]any) {
		if e["type"] == "RUN_STARTED" {
			answerLast(t, h.node.Host(), "answer", "Booked.")
		}
	})
	types := ""
	for _, e := range done {
		types += e["type"].(string) + " " //nolint:forcetypeassert // a type is a text
	}
	if types != "RUN_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END RUN_FINISHED " || done[2]["delta"] != "Booked." {
		t.Errorf("the run was %v", done)
	}
	checkAGUI(t, all)
}

// aguiClient runs an agent by the protocol's own client, resumes the run once it is interrupted, and prints what it has.
const aguiClient = `const [folder, url, token] = process.argv.slice(1);
const {HttpAgent} = require(folder + "/client");
(async () => {
  const agent = new HttpAgent({url, threadId: "t1", headers: {Authorization: "Bearer " + token}});
  agent.messages = [{id: "m1", role: "user", content: "Book a flight"}];
  await agent.runAgent({runId: "r1"});
  const [interrupt] = agent.pendingInterrupts;
  const {result, newMessages} = await agent.runAgent({runId: "r2", resume: [{interruptId: interrupt.id, status: "resolved", payload: {day: "2026-12-01", seats: 2}}]});
  console.log(JSON.stringify({question: interrupt.message, required: interrupt.responseSchema.required, left: agent.pendingInterrupts.length, result, said: newMessages.map(m => m.content)}));
})().catch(e => { console.error(e); process.exit(1); });`

func TestAGUIsOwnClientIsInterruptedAndResumes(t *testing.T) {
	t.Parallel()
	packages := os.Getenv("PARLEY_AGUI")
	if packages == "" {
		t.Skip("PARLEY_AGUI is not the folder @ag-ui of npm install @ag-ui/client")
	}
	h := openTestServer(t)
	h.guest("fae")
	run := exec.CommandContext(t.Context(), "node", "-e", aguiClient, packages, "http://"+h.server.Address()+agui.Path, h.tokens["fae"])
	var out, failed strings.Builder
	run.Stdout, run.Stderr = &out, &failed
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- run.Wait() }()
	waits := func(pending int) func() bool {
		return func() bool {
			select {
			case err := <-ended:
				t.Fatalf("the client has ended: %v %s", err, failed.String())
			default:
			}
			n, err := h.node.Host().Mail().Counts(t.Context())
			return err == nil && n.Pending == pending
		}
	}
	eventually.Holds(t, "the form waits", waits(1))
	asked, err := h.node.Host().Ask(t.Context(), parley.Form{To: "fae", Description: "Which flight?", Fields: flightFields})
	if err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the question is answered", func() bool {
		m, err := h.node.Host().Message(t.Context(), capabilities.FormID(asked.Form))
		return waits(1)() && err == nil && m.Outcome != nil
	})
	answerLast(t, h.node.Host(), "answer", "Booked.")
	if err := <-ended; err != nil {
		t.Fatalf("%v: %s", err, failed.String())
	}
	const want = `{"question":"Which flight?","required":["day","seats"],"left":0,"result":{"answer":"Booked."},"said":["Booked."]}`
	if got := strings.TrimSpace(out.String()); got != want {
		t.Errorf("the client has %s, want %s", got, want)
	}
}

// checkAGUI parses events by the schemas of the protocol's own packages, if PARLEY_AGUI is their folder.
func checkAGUI(t *testing.T, all []map[string]any) {
	t.Helper()
	packages := os.Getenv("PARLEY_AGUI")
	if packages == "" {
		return
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "events.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	script := `const {EventSchemas} = require(process.argv[1] + "/dist/schemas.js");
for (const e of JSON.parse(require("fs").readFileSync(process.argv[2]))) EventSchemas.parse(e);`
	if out, err := exec.CommandContext(t.Context(), "node", "-e", script, packages+"/core", file).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func TestAGUIRefusesWhatIsNoRun(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	h.guest("fae")
	long := runInput("r", "x")
	long["threadId"] = strings.Repeat("x", 100)
	for _, x := range []struct {
		name, agent, path string
		input             map[string]any
		status            int
		code              any
	}{
		{"no token", "nobody", "", runInput("r", "x"), 401, nil},
		{"no IDs", "fae", "", map[string]any{}, 400, nil},
		{"a long ID", "fae", "", long, 400, nil},
		{"several interrupts", "fae", "", runInput("r", "", map[string]any{}, map[string]any{}), 400, nil},
		{"no text", "fae", "", runInput("r", ""), 200, "INVALID_ARGUMENT"},
		{"an unknown agent", "fae", "/nobody", runInput("r", "x"), 200, "UNKNOWN_RECIPIENT"},
	} {
		var last map[string]any
		status := h.aguiRun(x.agent, x.path, x.input, func(e map[string]any) bool { last = e; return true })
		if status != x.status || last["code"] != x.code {
			t.Errorf("%s: %d %v", x.name, status, last)
		}
	}
}
