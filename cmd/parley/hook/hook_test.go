package hook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"parley/cmd/parley/terminal"
)

// TestHooksFollowTheirAgentsFormat reads the inputs of both agents, and checks each response.
func TestHooksFollowTheirAgentsFormat(t *testing.T) {
	for _, agent := range Agents() {
		datadriven.RunTest(t, filepath.Join("testdata", agent.Name+".txt"), func(t *testing.T, d *datadriven.TestData) string {
			call, err := readCall([]byte(d.Input))
			if err != nil {
				return fmt.Sprintf("%v\nundecided: %s\n", err, printed(agent, call.event, undecided("why")))
			}
			return fmt.Sprintf("%s in %q calls %s with %s\nits own question: %t, has a key: %t\nallowed: %s\ndenied: %s\nundecided: %s\n",
				call.event, call.folder, call.tool, call.input, agent.asksItself(call), call.key(agent) != "",
				printed(agent, call.event, Decision{Decided: true, Allowed: true, Reason: "allowed in Parley"}),
				printed(agent, call.event, Decision{Decided: true, Reason: "denied in Parley: not <that> && not now"}),
				printed(agent, call.event, undecided("why")))
		})
	}
}

func printed(agent Agent, event string, r Decision) string {
	a := agent.answer(event, r)
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

func TestAskerNameDependsOnFolder(t *testing.T) {
	a, b, same := ClaudeCode().Asker("/home/a/app"), ClaudeCode().Asker("/home/b/app"), ClaudeCode().Asker("/home/a/app")
	if a.Name == b.Name || a.Name != same.Name || !strings.HasPrefix(a.Name, "claude-code-app-") || a.Title != "Claude Code in /home/a/app" {
		t.Errorf("askers %+v, %+v", a, b)
	}
	if odd := Codex().Asker("/x/\u202ea b\n/" + strings.Repeat("é", 300)); len(odd.Name) > 60 || terminal.Visible(odd.Title) != odd.Title {
		t.Errorf("asker %+v", odd)
	}
	if root := Codex().Asker("/"); !strings.HasPrefix(root.Name, "codex---") {
		t.Errorf("asker %+v", root)
	}
	folder := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(folder, link); err != nil {
		t.Fatal(err)
	}
	if Codex().Asker(folder).Name != Codex().Asker(link).Name {
		t.Error("one folder has two askers")
	}
}

// TestOnlyAnAnswerDecides checks that no other outcome allows a call.
func TestOnlyAnAnswerDecides(t *testing.T) {
	for outcome, want := range map[string]Decision{
		`{"status":"answered","allowed":true,"values":{"decision":"once"}}`:                    {true, true, "allowed in Parley", ""},
		`{"status":"answered","allowed":true,"values":{"decision":"always","reason":"go on"}}`: {true, true, "allowed in Parley: go on", ""},
		`{"status":"answered","allowed":true,"values":{"decision":"once"},"editedInput":"{}"}`: {true, true, "allowed in Parley with another input", "{}"},
		`{"status":"answered","values":{"decision":"once"},"editedInput":"{}"}`:                {false, false, `the decision "once" is none of the host's`, ""},
		`{"status":"answered","values":{"decision":"once"}}`:                                   {false, false, `the decision "once" is none of the host's`, ""},
		`{"status":"answered","values":{"decision":"deny","reason":"not that"}}`:               {true, false, "denied in Parley: not that", ""},
		`{"status":"answered","values":{"decision":"never"}}`:                                  {true, false, "denied in Parley", ""},
		`{"status":"declined","note":"ask me tomorrow"}`:                                       {true, false, "declined in Parley: ask me tomorrow", ""},
		`{"status":"expired"}`:                                {false, false, "the question was expired", ""},
		`{"status":"cancelled"}`:                              {false, false, "the question was cancelled", ""},
		`{"status":"open"}`:                                   {false, false, "the question was open", ""},
		`{"status":"answered","values":{"decision":"maybe"}}`: {false, false, `the decision "maybe" is none of the host's`, ""},
		`{"status":"answered"}`:                               {false, false, `the decision "" is none of the host's`, ""},
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
		if got, err := json.Marshal(claudeResponse(event, d)); err != nil || string(got) != want {
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
