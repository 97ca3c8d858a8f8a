package persistence

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley"
)

// TestStartOnUnwritableJournalIsRefusedAtOnce opens a journal whose server may not write into its folder, as in one of another user. The
// server says so and never becomes ready: who waited for that saw a start that hangs.
func TestStartOnUnwritableJournalIsRefusedAtOnce(t *testing.T) {
	o := testOptions(t)
	j := open(t, o)
	make(writer).write(t, j, 1, 1)
	closeJournal(t, j)
	folder := filepath.Join(journalFolder(o.Folder), serverFolder)
	if err := syscall.Mount(folder, folder, "", syscall.MS_BIND, ""); err != nil {
		t.Skipf("NOT TESTED: cannot mount: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(folder, syscall.MNT_DETACH) })
	if err := syscall.Mount("", folder, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	_, err := Open(t.Context(), o)
	wantCode(t, err, parley.ReadOnly)
	if took := time.Since(began); took > serverStart/2 || parley.AsError(err).Hint == "" || !strings.Contains(err.Error(), "not writable") {
		t.Errorf("after %v: %v", took, err)
	}
}
