package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestNodeWhoseSocketIsLost takes the socket of a running node away, or puts something else in its place. A hook that lets the mode
// decide where no node runs does not let it: a node runs. All commands say so, and how to go on.
func TestNodeWhoseSocketIsLost(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(path string) error{
		"removed": os.Remove,
		"a file": func(path string) error {
			return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o600))
		},
		"a folder": func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
		"a dead socket": func(path string) error {
			err := os.Remove(path)
			l, failed := net.Listen("unix", path)
			if failed != nil {
				return errors.Join(err, failed)
			}
			l.(*net.UnixListener).SetUnlinkOnClose(false)
			return errors.Join(err, l.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state := t.TempDir()
			node := startProcess(t, filepath.Join(state, logFile), "parley", "serve", "--state", state, "--listen", "off")
			if _, errs, exit := runTest(t.Context(), state, nil, "status", "--wait", "60s"); exit != 0 {
				t.Fatal(errs)
			}
			pid := fmt.Sprintf("process %d", node.cmd.Process.Pid)
			if err := lose(stateFolder(state).socket()); err != nil {
				t.Fatal(err)
			}
			for event, entry := range map[string]string{"PreToolUse": "sdk-cli", "PermissionRequest": "cli"} {
				out, errs := hookWhereMode(t, state, event, entry)
				if closed := strings.Contains(out, `"permissionDecision":"deny"`) || entry == "cli" && strings.Contains(errs, "asks at its own prompt"); !closed || !strings.Contains(out+errs, pid) {
					t.Errorf("the hook on %s says %q, %q", event, out, errs)
				}
			}
			commands := []string{"status", "ls", "start"}
			if name == "removed" {
				commands = append(commands, "restart") // it waits for a node that starts
			}
			for _, command := range commands {
				c := exec.CommandContext(t.Context(), "parley", command, "--state", state)
				said, _ := c.CombinedOutput() // the exit status has it
				errs, exit := string(said), c.ProcessState.ExitCode()
				if exit != exitNotRunning || !strings.Contains(errs, pid+" runs on this state folder, and nothing answers on its socket") || !strings.Contains(errs, "hint: if it stays so: parley stop ends it") {
					t.Errorf("%s: %d, %s", command, exit, errs)
				}
			}
			out, _, exit := runTest(t.Context(), state, nil, "doctor")
			if exit == 0 || !strings.Contains(out, pid+" runs on this state folder, and nothing answers") || strings.Contains(out, "no node runs") {
				t.Errorf("doctor: %s", out)
			}
			if out, errs, exit := runTest(t.Context(), state, nil, "stop"); exit != 0 || !strings.Contains(out, "stopped "+pid) {
				t.Errorf("stop: %d, %s%s", exit, out, errs)
			}
			if out, errs := hookWhereMode(t, state, "PreToolUse", "sdk-cli"); strings.Contains(out, "permissionDecision") || !strings.Contains(errs, "no node runs on this state folder; the permission mode") {
				t.Errorf("after the end of the node the hook says %q, %q", out, errs)
			}
			if name == "a folder" {
				return // the next start says that it is in its way
			}
			startProcess(t, filepath.Join(state, logFile), "parley", "serve", "--state", state, "--listen", "off")
			if _, errs, exit := runTest(t.Context(), state, nil, "status", "--wait", "60s"); exit != 0 {
				t.Errorf("the next start: %s", errs)
			}
			if _, err := os.Lstat(stateFolder(state).socket()); errors.Is(err, fs.ErrNotExist) {
				t.Error("the next start has no socket")
			}
		})
	}
}

// hookWhereMode runs a hook with --when-away mode, and returns what it prints.
func hookWhereMode(t *testing.T, state, event, entry string) (out, errs string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "parley", "hook", "claude-code", "--when-away", "mode", "--state", state)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GORACE=atexit_sleep_ms=0", "CLAUDE_CODE_ENTRYPOINT=" + entry}
	c.Stdin = strings.NewReader(hookInput(event, "s", "make it"))
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil {
		t.Error(err, stderr.String())
	}
	return stdout.String(), stderr.String()
}
