package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/internal/eventually"
)

// freezeEnv has TestFrozenDisk mount and freeze a file system of its own.
const freezeEnv = "PARLEY_FREEZE"

// frozen mounts a file system in a file, and returns its folder with the functions that freeze and thaw it.
func frozen(t *testing.T) (folder string, freeze, thaw func()) {
	t.Helper()
	if os.Getenv(freezeEnv) == "" {
		t.Skip(freezeEnv + " is not set")
	}
	image := filepath.Join(t.TempDir(), "disk")
	folder = t.TempDir()
	for _, command := range [][]string{
		{"truncate", "-s", "256M", image}, {"mkfs.ext4", "-q", "-F", image}, {"mount", "-o", "loop", image, folder}, {"fsfreeze", "--version"},
	} {
		if said, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Skipf("%v: %v %s", command, err, said)
		}
	}
	is := func(state string) func() {
		return func() { _ = exec.Command("fsfreeze", state, folder).Run() } // it may be so already
	}
	freeze, thaw = is("--freeze"), is("--unfreeze")
	t.Cleanup(func() {
		thaw()
		// What the disk held up may still be at it.
		eventually.Holds(t, "the disk is free", func() bool { return exec.Command("umount", folder).Run() == nil })
	})
	return folder, freeze, thaw
}

// TestFrozenDisk freezes the file system of a node's state folder, its log file too, while a message is sent. What is durable
// is read, the disk is named everywhere, and the message is there when the disk goes on.
func TestFrozenDisk(t *testing.T) {
	folder, freeze, thaw := frozen(t)
	n := &clusterNode{folder: filepath.Join(folder, "state")}
	if err := os.Mkdir(n.folder, 0o700); err != nil {
		t.Fatal(err)
	}
	n.process = startProcess(t, filepath.Join(n.folder, logFile), "parley", "serve", "--state", n.folder, "--listen", "off")
	t.Cleanup(thaw) // before the process is killed, which otherwise does not end
	n.must(t, "", "status", "--wait", "30s")
	n.must(t, "", "mkguest", "fae")
	n.must(t, "", "send", "fae", "before")
	n.must(t, "", "approve", "Bash", `{"command":"make x"}`, "--as", "fae", "--no-wait")
	before, sent := n.must(t, "", "inbox", "--as", "fae"), n.must(t, "", "inbox", "--all")
	freeze()
	type result struct {
		said string
		exit int
	}
	done := make(chan result, 1)
	go func() {
		_, said, exit := runTest(context.Background(), n.folder, nil, "send", "fae", "meanwhile")
		done <- result{said, exit}
	}()
	began := time.Now()
	eventually.Holds(t, "the status names the disk", func() bool {
		return strings.Contains(n.must(t, "", "status"), "has not finished a flush for")
	})
	if now := n.must(t, "", "inbox", "--as", "fae"); now != before {
		t.Errorf("fae reads %s, before %s", now, before)
	}
	if now := n.must(t, "", "inbox", "--all"); now != sent {
		t.Errorf("the host reads %s, before %s", now, sent)
	}
	if _, said, exit := runTest(t.Context(), n.folder, nil, "search", "before"); exit != exitTimeout || !strings.Contains(said, "has not finished a flush for") {
		t.Errorf("a search: exit %d, %s", exit, said)
	}
	out, _, _ := runTest(t.Context(), n.folder, nil, "doctor")
	if strings.Count(out, "has not finished a flush for") != 2 {
		t.Errorf("doctor says\n%s", out)
	}
	_, said, exit := runTest(t.Context(), n.folder, strings.NewReader(`[{"name":"a"}]`), "form", "fae", "never", "--fields", "-", "--timeout", "1s")
	if exit != exitTimeout || !strings.Contains(said, "TIMEOUT: it was not accepted within 1s: the disk has not finished a flush for") {
		t.Errorf("a form that is not accepted: exit %d, %s", exit, said)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("all that took %v", took)
	}
	process := exec.CommandContext(t.Context(), "parley", "watch", "--state", n.folder)
	process.Env = append(os.Environ(), "TERM=xterm-256color")
	watch := inTerminal(t, process)
	watch.expect(t, "make x")
	eventually.Holds(t, "watch takes keys", func() bool { // a moment after the call was shown
		watch.press(t, "a")
		return strings.Contains(watch.shown(), "hasnotfinishedaflushfor")
	})
	thaw()
	if r := <-done; r.exit != exitDone || !strings.Contains(r.said, "parley: note: the disk has not finished a flush for ") || !strings.Contains(r.said, "What was asked for may still happen") {
		t.Errorf("the message: exit %d, %s", r.exit, r.said)
	}
	if now := n.must(t, "", "inbox", "--as", "fae"); !strings.Contains(now, "meanwhile") {
		t.Errorf("afterwards fae reads %s", now)
	}
	eventually.Holds(t, "the log says it once", func() bool {
		return strings.Count(n.logged(), "the disk has not finished a flush yet") == 1 && strings.Count(n.logged(), "the disk goes on") == 1
	})
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	<-n.ended
}

// TestDoctorEndsOnAFrozenDisk runs doctor where the file system is frozen, and no node says so. It ends, though its write does not.
func TestDoctorEndsOnAFrozenDisk(t *testing.T) {
	folder, freeze, thaw := frozen(t)
	state := filepath.Join(folder, "state")
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	freeze()
	guard := time.AfterFunc(time.Minute, thaw) // a process that cannot end cannot be killed either
	defer guard.Stop()
	began := time.Now()
	out, err := exec.CommandContext(t.Context(), "parley", "doctor", "--state", state).Output()
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
	if err == nil || !strings.Contains(string(out), "fail  fsync         the disk has not finished a write of 4 KiB within 5s") {
		t.Errorf("%v\n%s", err, out)
	}
	thaw()
}

// TestStartOnAFrozenDiskSaysWhatItWaitsFor starts a node whose file system is frozen. The start says so after some seconds, and ends
// when the disk goes on.
func TestStartOnAFrozenDiskSaysWhatItWaitsFor(t *testing.T) {
	folder, freeze, thaw := frozen(t)
	state := filepath.Join(folder, "state")
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	n := &clusterNode{folder: state, process: startProcess(t, filepath.Join(state, logFile), "parley", "serve", "--state", state, "--listen", "off")}
	n.must(t, "", "status", "--wait", "30s")
	n.must(t, "", "stop")
	<-n.ended
	said := filepath.Join(t.TempDir(), "said")
	freeze()
	start := startProcess(t, said, "parley", "start", "--state", state, "--listen", "off")
	t.Cleanup(thaw)
	eventually.Holds(t, "the start names the disk", func() bool {
		text, err := os.ReadFile(said)
		return err == nil && strings.Contains(string(text), "or the disk of "+state+" hangs")
	})
	thaw()
	<-start.ended
	n.must(t, "", "status", "--wait", "30s")
	n.must(t, "", "stop")
}

// TestWhatWaitsForAFrozenDiskSaysSo freezes the disk of a node that has a file to store, and then that of a backup. Each command says which
// disk it waits for, and is done when that goes on. So does what reads a log without a node.
func TestWhatWaitsForAFrozenDiskSaysSo(t *testing.T) {
	folder, freeze, thaw := frozen(t)
	state, elsewhere := filepath.Join(folder, "state"), t.TempDir()
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	attached := filepath.Join(elsewhere, "attached")
	if err := os.WriteFile(attached, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	start := func(state string) *clusterNode {
		n := &clusterNode{folder: state, process: startProcess(t, filepath.Join(elsewhere, logFile), "parley", "serve", "--state", state, "--listen", "off")}
		t.Cleanup(thaw) // before the process is killed, which otherwise does not end
		n.must(t, "", "status", "--wait", "30s")
		return n
	}
	waits := func(want string, args ...string) {
		t.Helper()
		said := filepath.Join(t.TempDir(), "said")
		freeze()
		c := startProcess(t, said, "parley", args...)
		t.Cleanup(thaw)
		eventually.Holds(t, strings.Join(args, " ")+" says what it waits for", func() bool {
			text, err := os.ReadFile(said)
			select {
			case <-c.ended:
				t.Fatalf("%q did not wait: %s, %v", args, text, err)
			default:
			}
			return err == nil && strings.Contains(string(text), "parley: note: ") && strings.Contains(string(text), want)
		})
		thaw()
		<-c.ended
		if !c.cmd.ProcessState.Success() {
			text, err := os.ReadFile(said)
			t.Errorf("%q: %v, %s, %v", args, c.cmd.ProcessState, text, err)
		}
	}
	n := start(state)
	waits("the disk has not finished a flush for ", "send", "SELF", "a file", "--attach", attached, "--state", state)
	n.must(t, "", "stop")
	<-n.ended
	waits("the disk of "+state+" hangs", "verify", "--state", state)
	other := start(filepath.Join(t.TempDir(), "state"))
	waits("the disk of "+folder+" hangs", "backup", filepath.Join(folder, "file"), "--state", other.folder)
	waits("the disk of "+filepath.Join(folder, "parts")+" hangs", "backup", "--to", filepath.Join(folder, "parts"), "--state", other.folder)
	other.must(t, "", "stop")
	<-other.ended
}
