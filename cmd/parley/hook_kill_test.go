package main

import (
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/eventually"
)

// TestApprovalsOfKilledHooksAndNodesEnd kills a node, and one of two hooks that wait. The other lives through it, and is answered.
func TestApprovalsOfKilledHooksAndNodesEnd(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	serve := func() *process {
		p := startProcess(t, filepath.Join(state, logFile), "parley", "serve", "--state", state, "--listen", "off")
		if _, errs, exit := runTest(t.Context(), state, nil, "status", "--wait", "60s"); exit != 0 {
			t.Fatal(errs)
		}
		return p
	}
	open := func() string {
		out, _, _ := runTest(t.Context(), state, nil, "permit", "ls")
		return out
	}
	node := serve()
	dies := startHook(t, state, "PermissionRequest", "a", "make dies")
	lives := startHook(t, state, "PermissionRequest", "b", "make lives")
	awaitCall(t, state, `"make dies"`)
	awaitCall(t, state, `"make lives"`)
	node.kill()
	if err := dies.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	serve()
	awaitCall(t, state, `"make dies"`) // which may live
	eventually.Holds(t, "the approval of the killed hook is withdrawn", func() bool { return !strings.Contains(open(), "make dies") })
	number := awaitCall(t, state, `"make lives"`)
	if _, errs, exit := runTest(t.Context(), state, nil, "permit", "allow", number); exit != 0 {
		t.Fatal(errs)
	}
	if err := lives.command.Wait(); err != nil || !strings.Contains(lives.out.String(), `"behavior":"allow"`) {
		t.Errorf("the hook that lives ends with %v, %s", err, lives.out.String())
	}
}
