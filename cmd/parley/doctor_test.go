package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/actors/keys"
	"parley/actors/view"
)

func TestDoctorReportsDiscardedSnapshots(t *testing.T) {
	t.Parallel()
	if found := snapshotFindings([]view.ActorState{{Name: "journal"}, {Name: "scheduler"}}); len(found) != 0 {
		t.Errorf("without any: %+v", found)
	}
	found := snapshotFindings([]view.ActorState{{Name: "journal", Snapshots: 2}, {Name: "scheduler"}})
	if len(found) != 1 || found[0].Result != dubious || found[0].Check != "snapshots" || !strings.HasPrefix(found[0].Detail, "2 unreadable ") {
		t.Errorf("%+v", found)
	}
}

// TestDoctorSaysThatTheLockIsGone takes the lock of a node that runs. Neither the lock nor the socket is said to be what is left of a node,
// and a restart, as it is advised, makes the lock again.
func TestDoctorSaysThatTheLockIsGone(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	n := &clusterNode{folder: state, process: startProcess(t, filepath.Join(t.TempDir(), "log"), "parley", "serve", "--state", state, "--listen", "off")}
	n.must(t, "", "status", "--wait", "60s")
	if err := os.Remove(stateFolder(state).lockPath()); err != nil {
		t.Fatal(err)
	}
	out, _, _ := runTest(t.Context(), state, nil, "doctor")
	want := fmt.Sprintf("warn  lock          process %d runs, and the file %s was removed or replaced", n.cmd.Process.Pid, stateFolder(state).lockPath())
	if !strings.Contains(out, want) || strings.Contains(out, "no node runs") || strings.Contains(out, "crash") || !strings.Contains(out, "ok    socket") {
		t.Errorf("doctor says\n%s", out)
	}
	n.must(t, "", "restart", "--listen", "off")
	if out, _, _ := runTest(t.Context(), state, nil, "doctor"); !strings.Contains(out, "ok    lock          held by process ") {
		t.Errorf("after a restart doctor says\n%s", out)
	}
	n.must(t, "", "stop")
}

// TestLostKeyIsNoFolderWithoutANode takes the key of a node. What reads its log says what is lost, as a start does, and reads it when the
// key is back.
func TestLostKeyIsNoFolderWithoutANode(t *testing.T) {
	t.Parallel()
	a := mailedNode(t)
	key := filepath.Join(a.state, keys.FileName)
	if err := os.Rename(key, key+".aside"); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"verify"}, {"start"}, {"backup", filepath.Join(t.TempDir(), "b")}, {"backup", "--to", t.TempDir()}} {
		_, errs, exit := runTest(t.Context(), a.state, nil, command...)
		if exit != exitRefused || !strings.Contains(errs, "CORRUPT_LOG: the state folder has a journal but no node.key") || !strings.Contains(errs, "hint: put the key back") {
			t.Errorf("%v: exit %d, %s", command, exit, errs)
		}
	}
	if err := os.Rename(key+".aside", key); err != nil {
		t.Fatal(err)
	}
	a.run("verify")
	if _, errs, exit := runTest(t.Context(), t.TempDir(), nil, "verify"); exit != exitNotRunning || !strings.Contains(errs, "there is no node in") {
		t.Errorf("a folder without a node: exit %d, %s", exit, errs)
	}
}
