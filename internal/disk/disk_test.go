package disk_test

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"parley/internal/disk"
	"parley/internal/fault"
)

// TestUnwritableSaysFirstWhatIsTheMatter has the error of a state folder that cannot be written begin its hint with the cause, and advise
// another folder only after it, as that has another node. A file that is another user's is named.
func TestUnwritableSaysFirstWhatIsTheMatter(t *testing.T) {
	at := func(err error) error {
		return fmt.Errorf("write the lock: %w", &fs.PathError{Op: "open", Path: "/state/parley.lock", Err: err})
	}
	for _, c := range []struct {
		err  error
		hint string
	}{
		{at(syscall.ENOSPC), "the disk is full"},
		{at(syscall.EDQUOT), "the disk is full"},
		{at(syscall.EROFS), "its file system is read-only"},
		{at(syscall.EIO), "the disk fails"},
		{at(syscall.EACCES), "the user that runs this may not use that file"},
		{at(syscall.EPERM), "the user that runs this may not use that file"},
		{at(syscall.ENOTDIR), "choose another with --state"},
	} {
		e := disk.Unwritable("/state", c.err)
		if e.Code != fault.ReadOnly || !strings.HasPrefix(e.Hint, c.hint) || !strings.Contains(e.Message, "/state/parley.lock") {
			t.Errorf("%v: %v, %s", c.err, e, e.Hint)
		}
	}
	if hint := disk.Hint(os.ErrNotExist); hint != "" {
		t.Errorf("a file that is not there is no matter of the disk: %s", hint)
	}
}

// TestUnwritableFolderIsNotCalledTheStateFolder has a folder that is another's than the node's named as what it is.
func TestUnwritableFolderIsNotCalledTheStateFolder(t *testing.T) {
	for err, hint := range map[error]string{syscall.ENOSPC: "the disk is full", syscall.ENOTDIR: "choose another with --folder"} {
		e := disk.UnwritableFolder("/bench", "choose another with --folder", &fs.PathError{Op: "mkdir", Path: "/bench", Err: err})
		if e.Message != "the folder /bench cannot be written: "+err.Error() || e.Hint != hint {
			t.Errorf("%v: %v, %s", err, e, e.Hint)
		}
	}
}
