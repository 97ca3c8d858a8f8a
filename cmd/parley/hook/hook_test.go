package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/datadriven"

	"parley"
)

// TestHooksFollowTheirAgentsFormat reads the inputs of both agents, and checks each response.
func TestHooksFollowTheirAgentsFormat(t *testing.T) {
	for _, agent := range Agents() {
		datadriven.RunTest(t, filepath.Join("testdata", agent.Name+".txt"), func(t *testing.T, d *datadriven.TestData) string {
			call, err := agent.readCall([]byte(d.Input))
			none := Options{Env: func(string) (string, bool) { return "", false }}
			unanswered := printed(agent, call, agent.settle(call, undecided("why"), none))
			if err != nil {
				return fmt.Sprintf("%v\nundecided: %s\n", err, unanswered)
			}
			allowed := Decision{Decided: true, Allowed: true, Reason: "allowed in Parley"}
			if call.event == Elicitation {
				allowed.Input = `{"colour":"red"}`
			}
			return fmt.Sprintf("%s in %q calls %s with %s\nits own question: %t, has a key: %t\nallowed: %s\ndenied: %s\nundecided: %s\n",
				call.event, call.folder, call.tool, call.input, agent.asksItself(call), call.key(agent) != "",
				printed(agent, call, allowed),
				printed(agent, call, Decision{Decided: true, Reason: "denied in Parley: not <that> && not now"}),
				unanswered)
		})
	}
}

func printed(agent Agent, call toolCall, r Decision) string {
	a := agent.answer(call, r)
	if a == nil {
		return "(nothing)"
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(a); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(b.String())
}

func TestKeyIdentifiesOneCall(t *testing.T) {
	call := toolCall{event: PreToolUse, session: "s", id: "1", tool: "Bash", input: []byte(`{}`)}
	keys := map[string]string{}
	for name, change := range map[string]func(*toolCall){
		"as it is": func(*toolCall) {}, "session": func(c *toolCall) { c.session = "s1" }, "id": func(c *toolCall) { c.id = "2" },
		"tool": func(c *toolCall) { c.tool = "Edit" }, "input": func(c *toolCall) { c.input = []byte(`[]`) },
		"moved": func(c *toolCall) { c.session, c.id = "", "s1" },
	} {
		other := call
		change(&other)
		key := other.key(ClaudeCode())
		if was, ok := keys[key]; ok {
			t.Errorf("%s and %s have one key", name, was)
		}
		keys[key] = name
	}
	if keys[""] != "moved" {
		t.Error("a call of no session has a key")
	}
	if call.key(ClaudeCode()) == call.key(Codex()) {
		t.Error("two agents have one key")
	}
	again := call
	again.event, again.folder = PermissionRequest, "elsewhere"
	if again.key(ClaudeCode()) != call.key(ClaudeCode()) {
		t.Error("the same call has two keys")
	}
}

// TestOnlyAnAnswerDecides checks that no other outcome allows a call.
func TestOnlyAnAnswerDecides(t *testing.T) {
	for outcome, want := range map[string]Decision{
		`{"status":"answered","allowed":true,"values":{"decision":"once"}}`:                    {Decided: true, Allowed: true, Reason: "allowed in Parley"},
		`{"status":"answered","allowed":true,"values":{"decision":"always","reason":"go on"}}`: {Decided: true, Allowed: true, Reason: "allowed in Parley: go on"},
		`{"status":"answered","allowed":true,"values":{"decision":"once"},"editedInput":"{}"}`: {Decided: true, Allowed: true, Reason: "allowed in Parley with another input", Input: "{}"},
		`{"status":"answered","values":{"decision":"once"},"editedInput":"{}"}`:                {Reason: `the decision "once" is none of the host's`},
		`{"status":"answered","values":{"decision":"once"}}`:                                   {Reason: `the decision "once" is none of the host's`},
		`{"status":"answered","values":{"decision":"deny","reason":"not that"}}`:               {Decided: true, Reason: "denied in Parley: not that"},
		`{"status":"answered","values":{"decision":"never"}}`:                                  {Decided: true, Reason: "denied in Parley"},
		`{"status":"declined","note":"ask me tomorrow"}`:                                       {Decided: true, Reason: "declined in Parley: ask me tomorrow"},
		`{"status":"expired"}`:                                {Reason: "the question was expired"},
		`{"status":"cancelled"}`:                              {Reason: "the question was cancelled"},
		`{"status":"open"}`:                                   {Reason: "the question was open"},
		`{"status":"answered","values":{"decision":"maybe"}}`: {Reason: `the decision "maybe" is none of the host's`},
		`{"status":"answered"}`:                               {Reason: `the decision "" is none of the host's`},
	} {
		o, err := readOutcome([]byte(outcome))
		if got := decisionOf(o); err != nil || got != want {
			t.Errorf("%s is %+v, %v, want %+v", outcome, got, err, want)
		}
	}
	if o, err := readOutcome([]byte(`no`)); err == nil {
		t.Errorf("what cannot be read is an outcome: %+v", o)
	}
}

// TestEditedInputIsInResponse checks the responses to an allow with another input. Codex takes none, so it is not offered.
func TestEditedInputIsInResponse(t *testing.T) {
	d := Decision{Decided: true, Allowed: true, Reason: "r", Input: `{"command":"ls <x>"}`}
	for event, want := range map[string]string{
		PreToolUse:        `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","permissionDecisionReason":"r","updatedInput":{"command":"ls \u003cx\u003e"}}}`,
		PermissionRequest: `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow","updatedInput":{"command":"ls \u003cx\u003e"}}}}`,
	} {
		if got, err := json.Marshal(claudeResponse(toolCall{event: event}, d)); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", event, got, err)
		}
	}
	for tool, takes := range map[string]bool{"Bash": true, planTool: false} {
		if got := ClaudeCode().takesInput(toolCall{tool: tool}); got != takes {
			t.Errorf("Claude Code, %s: %v", tool, got)
		}
		if Codex().takesInput(toolCall{tool: tool}) {
			t.Errorf("Codex, %s", tool)
		}
	}
}

// TestWhenAwaySays checks what becomes of calls about which nobody decides, in a terminal and without.
func TestWhenAwaySays(t *testing.T) {
	nobody, tooLarge := away("nobody follows the inbox"), undecided("it is too large")
	for _, test := range []struct {
		event, entry string
		when         Away
		d            Decision
		part         string
		want         string // the permission or behavior; "" for a remark alone
		says         string
	}{
		{PreToolUse, "cli", "", nobody, "", "ask", "asks at its own prompt"},
		{PreToolUse, "claude-vscode", "", nobody, "", "ask", "asks at its own prompt"},
		{PreToolUse, "sdk-cli", "", nobody, "", "deny", "--when-away"},
		{PreToolUse, "cli", Deny, nobody, "", "deny", "--when-away deny"},
		{PreToolUse, "sdk-cli", Deny, nobody, "", "deny", "--when-away deny"},
		{PreToolUse, "sdk-cli", Ask, nobody, "", "ask", "if it has one"},
		{PreToolUse, "cli", Mode, nobody, "", "", "the permission mode of Claude Code decides"},
		{PreToolUse, "sdk-cli", Mode, nobody, "", "", "the permission mode of Claude Code decides"},
		{PreToolUse, "sdk-cli", Mode, tooLarge, "", "deny", "it is too large"},
		{PreToolUse, "cli", Mode, tooLarge, "", "ask", "it is too large"},
		{PreToolUse, "cli", Deny, tooLarge, "", "deny", "denied by Parley (--when-away deny): it is too large"}, // there is a prompt
		{PermissionRequest, "cli", Deny, tooLarge, "", "deny", "denied by Parley (--when-away deny): it is too large"},
		{PreToolUse, "sdk-cli", Defer, nobody, "", "defer", "resumed"},
		{PreToolUse, "sdk-cli", Defer, tooLarge, "", "deny", "it is too large"},
		{PreToolUse, "sdk-cli", Defer, nobody, "sub", "deny", "--when-away"},
		{PreToolUse, "cli", Defer, nobody, "", "ask", "asks at its own prompt"},
		{PermissionRequest, "cli", "", nobody, "", "", "asks at its own prompt"},
		{PermissionRequest, "cli", Deny, nobody, "", "deny", "--when-away deny"},
		{PermissionRequest, "cli", Mode, nobody, "", "", "the permission mode of Claude Code decides"},
	} {
		agent, call := ClaudeCode(), toolCall{event: test.event, tool: "Bash", part: test.part}
		d := agent.settle(call, test.d, Options{WhenAway: test.when, Env: func(string) (string, bool) { return test.entry, true }})
		response := agent.answer(call, d)
		got := ""
		if s := response.Specific; s != nil {
			got = s.Permission
			if s.Decision != nil {
				got = s.Decision.Behavior
			}
		}
		if text := printed(agent, call, d); got != test.want || !strings.Contains(text, test.says) {
			t.Errorf("%+v: %s", test, text)
		}
	}
	if _, err := Codex().ReadAway("defer"); err == nil {
		t.Error("Codex defers calls")
	}
	question := toolCall{event: PreToolUse, tool: askTool}
	if r := ClaudeCode().answer(question, ClaudeCode().settle(question, nobody, Options{WhenAway: Deny})); r != nil {
		t.Errorf("a question that nobody answers is not left: %+v", r)
	}
}

// TestUnreadableRequestsFail checks that a request without an event is answered by a failure, not by silence.
func TestUnreadableRequestsFail(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON": "no", "no event": "{}", "another kind": `{"hook_event_name":"PreToolUse","tool_name":5}`,
		"too large": `{"hook_event_name":"PreToolUse","tool_name":"Write","tool_input":"` + strings.Repeat("x", maxRequest) + `"}`,
	} {
		if r, _, err := ClaudeCode().Run(t.Context(), strings.NewReader(text), Options{}); err == nil || r != nil {
			t.Errorf("%s is answered by %+v", name, r)
		}
	}
}

func TestPartIsTheSubagent(t *testing.T) {
	for _, c := range [][2]string{
		{`"agent_id":"a1","agent_type":"worker"`, "worker a1"}, {`"agent_id":"a1"`, "a1"}, {`"agent_type":"worker"`, ""}, {`"agent_id":""`, ""},
		{`"agent_id":"a1","agent_type":"` + strings.Repeat("ä", 200) + `"`, strings.Repeat("ä", maxPart/2)},
	} {
		call, err := ClaudeCode().readCall([]byte(`{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{},` + c[0] + `}`))
		if err != nil || call.partName() != c[1] {
			t.Errorf("%s is %q, %v", c[0], call.partName(), err)
		}
	}
}

// TestHookWaitsForNodeThatStarts looks for a node while a process has the state folder and its socket is not there yet, and once more
// where that process ends.
func TestHookWaitsForNodeThatStarts(t *testing.T) {
	t.Parallel()
	o, _ := nodeOfMail(t, nil)
	reach, looks := o.Dial, 0
	o.Holder = func() (int, bool, error) { return 7, true, nil }
	o.Dial = func(ctx context.Context) (net.Conn, error) {
		if looks++; looks < 4 {
			return nil, syscall.ECONNREFUSED
		}
		return reach(ctx)
	}
	if done, err := ClaudeCode().Register(t.Context(), o); err != nil || done.Name != "shop" || looks != 4 {
		t.Errorf("a node that starts: %+v, %v, %d looks", done, err, looks)
	}
	o.Dial = func(context.Context) (net.Conn, error) { return nil, fs.ErrNotExist }
	held := 3
	o.Holder = func() (int, bool, error) { held--; return 7, held > 0, nil }
	if _, err := ClaudeCode().Register(t.Context(), o); parley.CodeOf(err) != parley.NotRunning || held > 0 {
		t.Errorf("a node that ends: %v", err)
	}
	o.Holder = func() (int, bool, error) { return 0, false, errors.New("it is a pipe") }
	if _, err := ClaudeCode().Register(t.Context(), o); parley.CodeOf(err) != parley.Timeout || !strings.Contains(err.Error(), "it is a pipe") {
		t.Errorf("a lock that cannot be read: %v", err)
	}
}
