package actors

import (
	"runtime"
	"testing"
	"weak"

	"parley/internal/eventually"
)

// TestClosedNodeIsFreed holds that nothing keeps a closed node in memory: programs and tests open many.
func TestClosedNodeIsFreed(t *testing.T) {
	folder := t.TempDir()
	closed := func() weak.Pointer[registry] {
		n, err := Open(t.Context(), Options{Folder: folder})
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		return weak.Make(n.registry)
	}()
	eventually.Holds(t, "the node is freed", func() bool {
		runtime.GC()
		return closed.Value() == nil
	})
}
