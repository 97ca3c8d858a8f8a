package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLibraryExampleAgentRuns runs the library's example, an agent that was not written for Parley.
func TestLibraryExampleAgentRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("it is built first, and takes its time")
	}
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "example")
	if out, err := exec.Command("go", "build", "-o", binary, "github.com/coder/acp-go-sdk/example/agent").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	state, folder := nodeTest(t), t.TempDir()
	parley := func(want int, args ...string) string {
		t.Helper()
		out, errs, exit := runTest(t.Context(), state, nil, args...)
		if exit != want {
			t.Fatalf("parley %s: exit %d, want %d: %s%s", strings.Join(args, " "), exit, want, out, errs)
		}
		return out
	}
	const asks = `"example" asked to call "edit" (input: {"rawInput":{"content":"{\"database\": {\"host\": \"new-host\"}}","path":"/home/user/project/config.json"},"title":"Modifying critical configuration file"})`
	before := parley(exitPermission, "run", "--runtime", "acp", "--name", "example", "--folder", folder, "--prompt", "improve it", "--", binary)
	if !strings.Contains(before, "Let me start by reading some files") || strings.Contains(before, "Perfect") {
		t.Errorf("it said %q", before)
	}
	if listed := parley(0, "permit", "ls"); !strings.Contains(listed, asks) {
		t.Errorf("it asks: %s", listed)
	}
	parley(0, "permit", "allow", "example")
	parley(0, "wait", "example")
	if said := parley(0, "logs", "example"); !strings.HasPrefix(said, strings.TrimSuffix(before, "\n")) || !strings.Contains(said, "Perfect! I've successfully updated the configuration.") {
		t.Errorf("allowed, it said %q", said)
	}

	parley(exitPermission, "prompt", "example", "and once more")
	parley(0, "permit", "deny", "example", "--message", "not now")
	parley(0, "wait", "example")
	said := parley(0, "logs", "example")
	if !strings.Contains(said, "I understand you prefer not to make that change.") || strings.Count(said, "Perfect!") != 1 {
		t.Errorf("denied, it said %q", said)
	}
	told := strings.ReplaceAll(parley(0, "logs", "example", "--json"), `\"`, `"`)
	for _, want := range []string{`"stream":"notice"`, `"toolCallId":"call_1"`, `"title":"Reading project files"`, `"status":"completed"`} {
		if !strings.Contains(told, want) {
			t.Errorf("the timeline has no %s: %s", want, told)
		}
	}

	parley(exitPermission, "prompt", "example", "and again")
	parley(0, "interrupt", "example")
	if left := parley(0, "permit", "ls"); left != "" {
		t.Errorf("it still asks: %s", left)
	}
	if status := parley(0, "wait", "example"); status != "example: idle\n" {
		t.Errorf("it is %s", status)
	}
}
