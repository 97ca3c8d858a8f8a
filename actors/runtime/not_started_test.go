package runtime

import (
	"os"
	"syscall"
	"testing"

	"parley"
)

// TestProgramThatTheSystemHasNoRoomForSaysSo has the system refuse a process, as where the node's user has as many as it may have.
func TestProgramThatTheSystemHasNoRoomForSaysSo(t *testing.T) {
	for _, why := range []error{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE} {
		e := parley.AsError(notStarted(&os.PathError{Op: "fork/exec", Path: "/proc/self/exe", Err: why}))
		if e.Code != parley.QuotaExceeded || e.Hint == "" {
			t.Errorf("%v is %+v", why, e)
		}
	}
	if e := parley.AsError(notStarted(&os.PathError{Op: "fork/exec", Path: "/there/is/none", Err: syscall.ENOENT})); e.Code != parley.InvalidArgument {
		t.Errorf("no such program is %+v", e)
	}
}
