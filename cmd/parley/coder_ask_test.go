package main

import (
	"strings"
	"testing"

	"parley/cmd/parley/modeltest"
)

// TestClaudeCodesCallMadeAgainJoinsItsThread asks back about a call of Claude Code, which is held: it is denied with the question. The model reads that as
// mail, replies by Parley's tool, and makes the call again with another input. The new approval is in the thread, and what was asked
// and replied stands above its call.
func TestClaudeCodesCallMadeAgainJoinsItsThread(t *testing.T) {
	t.Parallel()
	const prompt = "Make a file"
	for _, variable := range byDay(t, 1, newestClaude, olderClaude) {
		t.Run(variable, func(t *testing.T) {
			t.Parallel()
			c := newClaudeOf(t, variable, modeltest.Script{Prompt: prompt, Turns: []modeltest.Turn{
				{Calls: []modeltest.Call{bash("touch one.txt")}},
				{Calls: []modeltest.Call{readMail}},
				{Calls: []modeltest.Call{{Tool: "mcp__parley__send_message", Input: map[string]any{"replyTo": "a1", "text": "in the folder out"}}}},
				{Calls: []modeltest.Call{bash("mkdir out && touch out/one.txt")}},
				{Text: "I am done"},
			}})
			state := c.setUp(t, "claude-code")
			attend(t, state)
			run := func(args ...string) string {
				t.Helper()
				out, errs, exit := runTest(t.Context(), state, nil, args...)
				if exit != 0 {
					t.Fatalf("%s: %s", args, errs)
				}
				return out
			}
			end := c.background(t, "-p", prompt, "--permission-mode", "bypassPermissions")
			first := awaitCall(t, state, "touch one.txt")
			run("reply", first, "in which folder?")
			again := awaitCall(t, state, "mkdir out")
			shown := run("show", again)
			question, reply, call := strings.Index(shown, "in which folder?"), strings.Index(shown, "in the folder out"), strings.Index(shown, "$ mkdir out")
			if question < 0 || reply < question || call < reply {
				t.Errorf("question at %d, reply at %d, call at %d of\n%s", question, reply, call, shown)
			}
			if found := run("search", "--thread", first, "--order", "oldest"); strings.Count(found, "\n") != 4 {
				t.Errorf("the thread has\n%s", found)
			}
			decide(t, state, "allow", again)
			end()
			results := c.model.Results(prompt)
			if len(results) != 4 || !strings.Contains(results[0].Text, "asks before deciding") || !strings.Contains(results[1].Text, "in which folder?") {
				t.Errorf("the model has read %q", results)
			}
			if isThere(c.project, "one.txt") || !isThere(c.project, "out/one.txt") {
				t.Error("another call ran than the one that was allowed")
			}
		})
	}
}
