package runtime

import (
	"bufio"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"parley/capabilities"
)

// startLines starts a shell that prints IDs of processes, and returns them. The shell ends with the test.
func startLines(t *testing.T, count int, script string, env ...string) (pid int, pids []int) {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe() // its end is the end of the script
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	for len(pids) < count && lines.Scan() {
		one, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, one)
	}
	if len(pids) != count {
		t.Fatalf("the shell has printed %v", pids)
	}
	return cmd.Process.Pid, pids
}

// TestNotedProcessesAreFound has processes below a noted one in several ways, and others beside it.
func TestNotedProcessesAreFound(t *testing.T) {
	l := NewLauncher(Defaults{})
	guest, other := capabilities.ID{ULID: [16]byte{1}}, capabilities.ID{ULID: [16]byte{2}}
	// A child; a leader of a session with a child that it outlives; and a shell below, which another agent is.
	coder, pids := startLines(t, 4, `sleep 60 & echo $!
setsid sh -c 'sh -c "sleep 60 & echo \$!"; echo $$; exec sleep 60' & 
sh -c 'echo $$; exec sleep 60' & read wait; kill $(jobs -p)`)
	process, err := ProcessOf(coder)
	if err != nil {
		t.Fatal(err)
	}
	beside, _ := startLines(t, 1, `echo $$; read wait`)
	if owner, err := l.Owner(pids[0]); owner.Program || !owner.Agent.IsZero() || err != nil || l.Looks() {
		t.Errorf("before: %v, %v", owner, err)
	}
	l.Note(process, guest)
	l.Note(process, other) // the first counts
	inner, err := ProcessOf(pids[3])
	if err != nil {
		t.Fatal(err)
	}
	l.Note(inner, other) // the outermost counts
	for _, pid := range append(pids, coder) {
		if owner, err := l.Owner(pid); owner.Agent != guest || owner.Program || err != nil {
			t.Errorf("process %d: %v, %v", pid, owner, err)
		}
	}
	_, named := startLines(t, 1, `echo $$; read wait`, "CLAUDE_PID="+strconv.Itoa(coder))
	if owner, err := l.Owner(named[0]); owner.Agent != guest || err != nil {
		t.Errorf("a process that names the noted one: %v, %v", owner, err)
	}
	_, misnamed := startLines(t, 1, `echo $$; read wait`, "CLAUDE_PID="+strconv.Itoa(beside))
	for _, pid := range []int{1, os.Getpid(), os.Getppid(), beside, misnamed[0]} {
		if owner, err := l.Owner(pid); owner.Program || !owner.Agent.IsZero() || err != nil {
			t.Errorf("process %d, which is below none: %v, %v", pid, owner, err)
		}
	}
	l.NoteSession(Session{"s1", guest})
	l.NoteSession(Session{"s1", other}) // the first counts
	for _, name := range []string{"CODEX_THREAD_ID", "CODEX_SESSION_ID", "CLAUDE_CODE_SESSION_ID"} {
		_, orphans := startLines(t, 1, `setsid -f sh -c 'echo $$; sleep 60; :'; read wait`, name+"=s1")
		if owner, err := l.Owner(orphans[0]); owner.Agent != guest || err != nil {
			t.Errorf("a process that names a noted session by %s: %v, %v", name, owner, err)
		}
		_ = syscall.Kill(-orphans[0], syscall.SIGKILL)
		of, _ := startLines(t, 1, `echo $$; read wait`, name+"=s2")
		if owner, err := l.Owner(of); err == nil {
			t.Errorf("a process that names another session by %s: %v", name, owner)
		}
	}
	folder := t.TempDir()
	copyShell(t, folder+"/codex")
	_, pids = startLines(t, 1, `CODEX_THREAD_ID= `+folder+`/codex -c 'CODEX_THREAD_ID=s2 sh -c "echo \$\$; exec sleep 60" & wait' & read wait; kill $!`)
	if owner, err := l.Owner(pids[0]); owner.Program || !owner.Agent.IsZero() || err != nil {
		t.Errorf("a process below an agent that is not noted: %v, %v", owner, err)
	}
	_ = syscall.Kill(pids[0], syscall.SIGKILL)
	reused := NewLauncher(Defaults{})
	reused.Note(Process{PID: coder, Start: "another boot/1"}, guest)
	if owner, err := reused.Owner(named[0]); owner.Program || !owner.Agent.IsZero() || err != nil || len(reused.Noted()) != 0 {
		t.Errorf("below a process with the ID of a noted one: %v, %v", owner, err)
	}
}

// copyShell has a shell run under another name.
func copyShell(t *testing.T, path string) {
	t.Helper()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(sh)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
}

// TestCoderIsTheProcessAbove looks for the coding agent above a hook.
func TestCoderIsTheProcessAbove(t *testing.T) {
	folder := t.TempDir()
	copyShell(t, folder+"/codex")
	const hook = `sh -c "sh -c \"echo \\\$\\\$; exec sleep 60\" || exit 2" & `
	shell, pids := startLines(t, 1, hook+"read wait")
	if p, _, found := Coder(pids[0], 0, "codex"); found {
		t.Errorf("above a hook in a shell: %v", p)
	}
	if p, _, found := Coder(pids[0], shell, "claude-code"); !found || p.PID != shell {
		t.Errorf("the named process: %v, %t", p, found)
	}
	if p, _, found := Coder(pids[0], 1, "claude-code"); found {
		t.Errorf("the first process of all: %v", p)
	}
	if p, _, found := Coder(shell, pids[0], "claude-code"); found {
		t.Errorf("a process below: %v", p)
	}
	_, pids = startLines(t, 2, `cd `+folder+`; ./codex -c 'echo $$; `+hook+` wait' & read wait; kill $!`)
	p, where, found := Coder(pids[1], 0, "codex")
	if !found || p.PID != pids[0] || where != folder {
		t.Errorf("above a hook of Codex: %v in %s, %t; want %d in %s", p, where, found, pids[0], folder)
	}
	if p, _, found := Coder(pids[1], 0, "claude-code"); found {
		t.Errorf("above a hook of another agent: %v", p)
	}
}

// TestProgramsOfCodersAreTheirOwn looks up the file that a coding agent runs. It is noted if nobody else runs it: not for a shell, for what
// runs scripts, or for a link to another's program under the agent's name.
func TestProgramsOfCodersAreTheirOwn(t *testing.T) {
	folder := t.TempDir()
	copyShell(t, folder+"/codex")
	sleep, err := exec.LookPath("sleep")
	if err == nil {
		sleep, err = filepath.EvalSymlinks(sleep)
	}
	if err == nil {
		err = os.Symlink(sleep, folder+"/claude")
	}
	if err != nil {
		t.Fatal(err)
	}
	_, pids := startLines(t, 3, `cd `+folder+`; ./codex -c 'echo $$; sleep 60; true' & sh -c 'echo $$; sleep 60; true' & sh -c 'echo $$; exec ./claude 60' & read wait; kill $(jobs -p)`)
	found := map[string]bool{}
	for _, pid := range pids {
		p, err := ProcessOf(pid)
		if err != nil {
			t.Fatal(err)
		}
		for _, program := range []string{"claude-code", "codex"} {
			found[ProgramOf(p, program)] = true
		}
	}
	if want := map[string]bool{"": true, folder + "/codex": true}; !maps.Equal(found, want) {
		t.Errorf("the programs are %v", found)
	}
	if p := (Process{PID: pids[0], Start: "before"}); ProgramOf(p, "codex") != "" {
		t.Error("a process that has ended has a program")
	}
}
