package main

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"parley"
	"parley/gateway/client"
)

// TestBackupToAFullDiskNamesIt backs up to a disk without room, of a node that runs and of one that does not. The backup's disk is
// named, and not the state folder.
func TestBackupToAFullDiskNamesIt(t *testing.T) {
	small := t.TempDir()
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=16k"); err != nil {
		t.Skipf("NOT TESTED: cannot mount a small disk: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(small, syscall.MNT_DETACH) })
	state := filepath.Join(t.TempDir(), "state")
	n := &clusterNode{folder: state, process: startProcess(t, filepath.Join(t.TempDir(), "log"), "parley", "serve", "--state", state, "--listen", "off")}
	n.must(t, "", "status", "--wait", "30s")
	n.must(t, "", "send", "SELF", strings.Repeat("x", 40_000))
	for _, of := range []string{"a node", "no node"} {
		for _, args := range [][]string{{"--to", filepath.Join(small, "parts")}, {filepath.Join(small, "file")}} {
			_, said, exit := runTest(t.Context(), state, nil, append([]string{"backup"}, args...)...)
			if exit == exitDone || !strings.Contains(said, "READ_ONLY") || !strings.Contains(said, "the backup cannot be written to "+small) || !strings.Contains(said, "full") || strings.Contains(said, "state folder") {
				t.Errorf("%s, %v: exit %d, %s", of, args, exit, said)
			}
		}
		if err := os.WriteFile(filepath.Join(small, "filler"), make([]byte, 64<<10), 0o600); err == nil {
			t.Error("the disk has room")
		}
		_, said, _ := runTest(t.Context(), state, nil, "backup", "--to", filepath.Join(small, "new"))
		if !strings.Contains(said, "the backup cannot be written to "+small) || strings.Contains(said, "state folder") {
			t.Errorf("%s, a new folder: %s", of, said)
		}
		if err := os.Remove(filepath.Join(small, "filler")); err != nil {
			t.Fatal(err)
		}
		if of == "a node" {
			n.must(t, "", "stop")
			<-n.ended
		}
	}
}

// killer is a file of a backup. It ends the node at the first piece that is written.
type killer struct {
	bytes.Buffer
	kill func()
}

func (k *killer) Write(b []byte) (int, error) {
	k.kill()
	return k.Buffer.Write(b)
}

// TestNodeThatDiesDuringABackupIsNamed kills a node in the middle of a backup.
func TestNodeThatDiesDuringABackupIsNamed(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	n := &clusterNode{folder: state, process: startProcess(t, filepath.Join(t.TempDir(), "log"), "parley", "serve", "--state", state, "--listen", "off")}
	n.must(t, "", "status", "--wait", "30s")
	c, err := client.New(client.Options{Socket: stateFolder(state).socket()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 60 { // more than the buffers of a socket hold, of what cannot be made shorter
		random := make([]byte, 30_000)
		_, _ = rand.Read(random) // it never fails
		if _, err := c.Send(t.Context(), "SELF", parley.Post{Text: hex.EncodeToString(random)}); err != nil {
			t.Fatal(err)
		}
	}
	err = c.Backup(t.Context(), &killer{kill: func() {
		_ = n.cmd.Process.Kill() // again is no error
		<-n.ended
	}})
	if e := parley.AsError(err); e.Code != parley.NotRunning || !strings.Contains(e.Message, "the node went away before the backup was whole") {
		t.Errorf("%v", err)
	}
}
