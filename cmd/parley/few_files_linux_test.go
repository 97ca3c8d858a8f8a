package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestStartRefusesTooFewFiles starts nodes with less files than answer anybody: each way to start one says so, and how many it needs. A
// restart leaves the node that runs. With as many as it needs, a node answers several at once.
func TestStartRefusesTooFewFiles(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "state")
	with := func(files, command string) (string, int) {
		c := exec.CommandContext(t.Context(), "sh", "-c", `ulimit -n "$1"; shift; exec parley "$@"`, "sh", files, command, "--state", state, "--listen", "off")
		said, _ := c.CombinedOutput() // the exit status has it
		return string(said), c.ProcessState.ExitCode()
	}
	refused := func(command string) {
		t.Helper()
		for _, files := range []string{"10", "12", "16", "24", "63"} {
			if said, exit := with(files, command); exit != exitRefused || !strings.Contains(said, "a node needs 64 open files, and this process may have "+files) || !strings.Contains(said, "hint: raise the limit: ulimit -n") {
				t.Errorf("%s with %s files: exit %d, %s", command, files, exit, said)
			}
		}
	}
	refused("serve")
	refused("start")
	if said, exit := with("64", "start"); exit != exitDone {
		t.Fatalf("with 64 files: exit %d, %s", exit, said)
	}
	refused("restart")
	n := &clusterNode{folder: state}
	n.must(t, "", "mkguest", "fae")
	sent := make(chan int)
	for range 8 {
		go func() {
			_, _, exit := runTest(t.Context(), state, nil, "send", "fae", "text")
			sent <- exit
		}()
	}
	for range 8 {
		if exit := <-sent; exit != exitDone {
			t.Errorf("a message of eight at once: exit %d", exit)
		}
	}
	n.must(t, "", "stop")
}
