package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/cmd/parley/modeltest"
	"parley/internal/eventually"
)

// The versions of OpenCode that are tested.
const newestOpenCode, olderOpenCode = "PARLEY_OPENCODE", "PARLEY_OPENCODE_OLDER"

// readMailOpenCode is the call by which a model of OpenCode reads mail.
var readMailOpenCode = modeltest.Call{Tool: "parley_read_mail", Input: map[string]any{}}

// startOpenCode is how long OpenCode may take until its first request, on a machine that is busy with other tests.
const startOpenCode = 3 * eventually.Patience

// newOpenCodeOf prepares a run of OpenCode, with the model server as its provider. It asks about commands.
func newOpenCodeOf(t *testing.T, variable string, scripts ...modeltest.Script) *coderTest {
	t.Helper()
	c := newCoderTest(t, variable, scripts...)
	c.env = append(c.env, "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1")
	model := map[string]any{"name": "Test", "tool_call": true, "limit": map[string]any{"context": 200_000, "output": 8_000}}
	c.write(t, filepath.Join(c.home, ".config", "opencode", "opencode.json"), map[string]any{
		"$schema": "https://opencode.ai/config.json", "model": "test/model", "small_model": "test/model", "autoupdate": false, "share": "disabled",
		"permission": map[string]any{"bash": "ask", "parley_send_message": "ask"},
		"provider": map[string]any{"test": map[string]any{
			"npm": "@ai-sdk/anthropic", "name": "Test", "options": map[string]any{"baseURL": c.model.URL + "/v1", "apiKey": "a-key"}, "models": map[string]any{"model": model},
		}},
	})
	return c
}

// openCodeBash is a call of a command.
func openCodeBash(command string) modeltest.Call {
	return modeltest.Call{Tool: "bash", Input: map[string]any{"command": command, "description": "Run it"}}
}

// TestMailWakesOpenCode sends mail to a session in a terminal: as it starts, between two calls, and when it is idle. Its calls are
// asked about in Parley, those of MCP servers with their arguments.
func TestMailWakesOpenCode(t *testing.T) {
	t.Parallel()
	for _, variable := range byDay(t, 1, newestOpenCode, olderOpenCode) {
		t.Run(variable, func(t *testing.T) {
			t.Parallel()
			const prompt = "Wait for mail"
			turns := []modeltest.Turn{
				{Calls: []modeltest.Call{openCodeBash("touch began; until [ -e go ]; do sleep 0.1; done")}},
				{Calls: []modeltest.Call{readMailOpenCode}},
				{Calls: []modeltest.Call{openCodeBash("touch unwanted")}},
				{Calls: []modeltest.Call{{Tool: "parley_send_message", Input: map[string]any{"recipient": "@host", "text": "these are all of the words"}}}},
				{Text: "I am ready"},
			}
			for i := range *mailWakes {
				turns = append(turns, modeltest.Turn{Calls: []modeltest.Call{readMailOpenCode}}, modeltest.Turn{Text: fmt.Sprintf("That was mail %d.", i)})
			}
			c := newOpenCodeOf(t, variable, modeltest.Script{Prompt: prompt, Turns: turns})
			state := c.setUp(t, "opencode")
			attend(t, state)
			terminal := inTerminal(t, c.command(t.Context(), "--prompt", prompt))
			eventually.Within(t, startOpenCode, "it has asked its model", func() bool { return len(c.model.Requests(prompt)) > 0 })
			decide(t, state, "allow", awaitCall(t, state, "touch began"))
			eventually.Holds(t, "the call runs", func() bool { return isThere(c.project, "began") })
			urgent := sendAs(t, state, "OpenCode · project · 1", "the urgent words", "--priority", "urgent")
			c.writeText(t, filepath.Join(c.project, "go"), "")
			decide(t, state, "deny", awaitCall(t, state, "touch unwanted"), "--message", "one file is enough")
			decide(t, state, "allow", awaitCall(t, state, "these are all of the words"))
			terminal.expect(t, "I am ready")
			results := c.model.Results(prompt)
			if len(results) < 4 || !strings.Contains(results[0].Text, "urgent") || !strings.Contains(results[1].Text, "the urgent words") || !strings.Contains(results[2].Text, "one file is enough") {
				t.Errorf("the model has read %q", results)
			}
			if isThere(c.project, "unwanted") {
				t.Error("the command has run, though it was denied")
			}
			awaitShown(t, state, urgent)
			var took []time.Duration
			for i := range *mailWakes {
				before := len(c.model.Requests(prompt))
				at := time.Now()
				message := sendAs(t, state, "OpenCode · project · 1", fmt.Sprintf("these are words %d!", i))
				eventually.Holds(t, "the session is woken", func() bool { return len(c.model.Requests(prompt)) > before })
				took = append(took, c.model.Requests(prompt)[before].At.Sub(at))
				terminal.expect(t, fmt.Sprintf("That was mail %d.", i))
				awaitShown(t, state, message)
			}
			for i := range *mailWakes {
				expectOnce(t, c.lastOf(prompt), fmt.Sprintf("these are words %d!", i))
			}
			slices.Sort(took)
			t.Logf("from idle to the request: median %s, 99th percentile %s, most %s, of %d", took[len(took)/2], took[len(took)*99/100], took[len(took)-1], len(took))
		})
	}
}

// TestMailReachesOpenCode sends mail to the folder of OpenCode without a terminal. Setup takes out what it has entered.
func TestMailReachesOpenCode(t *testing.T) {
	t.Parallel()
	for _, variable := range []string{newestOpenCode} {
		t.Run(variable, func(t *testing.T) {
			t.Parallel()
			const first, second = "Say hello", "Do the work"
			c := newOpenCodeOf(t, variable,
				modeltest.Script{Prompt: first, Turns: []modeltest.Turn{{Text: "Hello"}}},
				modeltest.Script{Prompt: second, Turns: []modeltest.Turn{{Calls: []modeltest.Call{readMailOpenCode}}, {Text: "I am done"}}},
			)
			before := filesIn(t, c.home)
			state := c.setUp(t, "opencode")
			c.print(t, "run", first)
			message := sendAs(t, state, "OpenCode · project", "the first words")
			c.print(t, "run", second)
			expectOnce(t, c.lastOf(second), "the first words")
			awaitShown(t, state, message)
			if out, err := c.parley(t, "setup", "opencode", "--remove", "--state", state).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			config := filepath.Join(c.home, ".config", "opencode")
			after := filesIn(t, config)
			for path, text := range after {
				if strings.Contains(text, "parley_") && strings.HasSuffix(path, "parley.js") {
					t.Errorf("%s is left", path)
				}
			}
			if own := filepath.Join(config, "opencode.json"); after[own] != before[own] {
				t.Errorf("it was %q, and is %q", before[own], after[own])
			}
		})
	}
}
