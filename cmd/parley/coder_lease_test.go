package main

import (
	"path/filepath"
	"strings"
	"testing"

	"parley/cmd/parley/modeltest"
)

// TestClaudeCodeIsHeldToLeases has Claude Code, in the mode that asks nothing, write a file that another agent has leased: nothing is written
// and nobody is asked, and the model reads who has it. Once that is released the same call is asked about, and written.
func TestClaudeCodeIsHeldToLeases(t *testing.T) {
	t.Parallel()
	const prompt = "Write the file"
	writes := modeltest.Call{Tool: "Write", Input: map[string]any{"file_path": "held.txt", "content": "a"}}
	for _, variable := range []string{newestClaude, olderClaude} {
		t.Run(variable, func(t *testing.T) {
			t.Parallel()
			c := newClaudeOf(t, variable, modeltest.Script{Prompt: prompt, Turns: []modeltest.Turn{
				{Calls: []modeltest.Call{writes}}, {Calls: []modeltest.Call{bash("ls held.txt")}}, {Calls: []modeltest.Call{writes}}, {Text: "I am done"},
			}})
			state := c.setUp(t, "claude-code")
			attend(t, state)
			run := func(args ...string) {
				t.Helper()
				if _, errs, exit := runTest(t.Context(), state, nil, args...); exit != 0 {
					t.Fatalf("%s: %s", args, errs)
				}
			}
			run("mkguest", "bob")
			run("lease", filepath.Join(c.project, "held.*"), "--ttl", "10m", "--as", "bob")
			end := c.background(t, "-p", prompt, "--permission-mode", "bypassPermissions")
			listed := awaitCall(t, state, "ls held.txt")
			if isThere(c.project, "held.txt") {
				t.Error("what was leased is written")
			}
			if results := c.model.Results(prompt); len(results) != 1 || !strings.Contains(results[0].Text, "is leased by bob until") || !strings.Contains(results[0].Text, "Nothing was written") {
				t.Errorf("the model reads %+v", results)
			}
			run("lease", "release", "1", "--as", "bob")
			decide(t, state, "allow", listed)
			decide(t, state, "allow", awaitCall(t, state, "held.txt\",\"content\""))
			end()
			if !isThere(c.project, "held.txt") {
				t.Error("what is not leased any more is not written")
			}
		})
	}
}
