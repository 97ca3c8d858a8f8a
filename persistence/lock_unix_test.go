//go:build unix

package persistence

import (
	"syscall"
	"testing"

	"parley/capabilities"
)

// TestClosedLockIsFree closes a high-water mark while a child that has not started its program yet shares its file.
func TestClosedLockIsFree(t *testing.T) {
	folder := t.TempDir()
	var node capabilities.NodeID
	first, err := openHighWater(folder, node)
	if err != nil {
		t.Fatal(err)
	}
	child, err := syscall.Dup(int(first.file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(child) //nolint:errcheck // nothing was written
	if err := first.close(); err != nil {
		t.Fatal(err)
	}
	second, err := openHighWater(folder, node)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.close(); err != nil {
		t.Fatal(err)
	}
}
