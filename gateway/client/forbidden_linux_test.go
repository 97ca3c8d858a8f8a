package client

import (
	"io/fs"
	"net"
	"os"
	"syscall"
	"testing"

	"parley"
)

// TestForbiddenSocketSaysWhoMayOpenIt has a user who may not open the node's socket told what to do.
func TestForbiddenSocketSaysWhoMayOpenIt(t *testing.T) {
	err := unsent(&net.OpError{Op: "dial", Net: "unix", Err: &os.SyscallError{Syscall: "connect", Err: syscall.EACCES}})
	e := parley.AsError(err)
	if e.Code != parley.NotPermitted || e.Hint == "" {
		t.Errorf("%v, hint %q", err, e.Hint)
	}
	if parley.CodeOf(unsent(fs.ErrNotExist)) == parley.NotPermitted {
		t.Error("a socket that is not there is not forbidden")
	}
}
