package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"parley"
)

// TestWhatTheSystemRefusesIsNotInternal shows errors of the system that no package has given a code: who reads them has to mend a file or
// a disk, and nothing of Parley.
func TestWhatTheSystemRefusesIsNotInternal(t *testing.T) {
	for _, c := range []struct {
		err  error
		code parley.Code
		hint string
	}{
		{&fs.PathError{Op: "open", Path: "/state/node.key", Err: syscall.EACCES}, parley.NotPermitted, "chown"},
		{&fs.PathError{Op: "open", Path: "/state/node.key", Err: syscall.ENOSPC}, parley.ReadOnly, "full"},
		{&fs.PathError{Op: "open", Path: "/state/node.key", Err: syscall.EROFS}, parley.ReadOnly, "read-only"},
		{errors.New("node.key"), parley.Internal, ""},
	} {
		p := &program{began: true}
		e, exit := p.classify(t.Context(), fmt.Errorf("read the key: %w", c.err))
		if e.Code != c.code || exit != exitRefused || !strings.Contains(e.Message, "node.key") || !strings.Contains(e.Hint, c.hint) {
			t.Errorf("%v: %v, %s, exit %d", c.err, e, e.Hint, exit)
		}
		if line := withHint(c.err); !strings.Contains(line, "node.key") || !strings.Contains(line, c.hint) {
			t.Errorf("in doctor: %s", line)
		}
	}
}
