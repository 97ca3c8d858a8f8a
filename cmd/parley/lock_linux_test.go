package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"parley"
)

// TestLockSaysWhatIsTheMatterWithTheDisk takes the lock of a folder whose disk is full, and of one whose file system is read-only.
func TestLockSaysWhatIsTheMatterWithTheDisk(t *testing.T) {
	small := t.TempDir()
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=16k"); err != nil {
		t.Skipf("NOT TESTED: cannot mount a small disk: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(small, syscall.MNT_DETACH) })
	state := stateFolder(filepath.Join(small, "state"))
	l, err := state.lock()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.release(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(small, "filler"), make([]byte, 64<<10), 0o600); err == nil {
		t.Fatal("the disk has room")
	}
	want := func(hint string) {
		t.Helper()
		_, err := state.lock()
		if e := parley.AsError(err); e.Code != parley.ReadOnly || !strings.Contains(e.Hint, hint) {
			t.Errorf("%v, %s", err, e.Hint)
		}
	}
	want("the disk is full")
	if err := syscall.Mount("tmpfs", small, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	want("its file system is read-only")
}
