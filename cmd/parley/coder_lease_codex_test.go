package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/cmd/parley/modeltest"
)

// TestCodexIsHeldToLeases has Codex, without a sandbox and asking nothing, patch a file that another agent has leased, write it by a command, and
// delete the folder that has it: none of it happens, and the model reads who has it. What is not leased is done.
func TestCodexIsHeldToLeases(t *testing.T) {
	t.Parallel()
	const prompt = "Work in the shell"
	command := func(line string) modeltest.Turn {
		return modeltest.Turn{Calls: []modeltest.Call{{Tool: "exec_command", Input: map[string]any{"cmd": line}}}}
	}
	for _, variable := range byDay(t, 1, newestCodex, olderCodex) {
		t.Run(variable, func(t *testing.T) {
			t.Parallel()
			c := newCodexOf(t, variable, modeltest.Script{Prompt: prompt, Turns: []modeltest.Turn{
				command("echo x > src/checkout/a.go"), command("rm -r src"),
				command("apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: src/checkout/a.go\n+x\n*** End Patch\nEOF\n"), command("echo x > src/other.go"), {Text: "I am done"},
			}})
			if err := os.MkdirAll(filepath.Join(c.project, "src", "checkout"), 0o700); err != nil {
				t.Fatal(err)
			}
			state := c.setUp(t, "codex")
			run := func(args ...string) {
				t.Helper()
				if _, errs, exit := runTest(t.Context(), state, nil, args...); exit != 0 {
					t.Fatalf("%s: %s", args, errs)
				}
			}
			run("mkguest", "bob")
			run("lease", filepath.Join(c.project, "src/checkout/**"), "--ttl", "10m", "--as", "bob")
			c.print(t, "--dangerously-bypass-hook-trust", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", prompt)
			if !isThere(c.project, "src/checkout") || isThere(c.project, "src/checkout/a.go") {
				t.Error("what was leased is changed")
			}
			if !isThere(c.project, "src/other.go") {
				t.Error("what is not leased is not written")
			}
			for i, r := range c.model.Results(prompt) {
				if refused := strings.Contains(r.Text, "is leased by bob until"); refused != (i < 3) {
					t.Errorf("after call %d the model reads %q", i, r.Text)
				}
			}
		})
	}
}
