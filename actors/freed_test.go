package actors

import (
	"runtime"
	"sync"
	"testing"
	"time"
	"weak"

	"parley/internal/eventually"
)

// forgetTimers makes processors forget the timers that were stopped. They keep them, with what their functions refer to, until their
// time or until there are many, and those of a connection have two minutes.
func forgetTimers() {
	var work sync.WaitGroup
	for range 8 * runtime.GOMAXPROCS(0) {
		work.Go(func() {
			var all [64]*time.Timer
			for i := range all {
				all[i] = time.AfterFunc(time.Hour, func() {})
			}
			for _, timer := range all {
				timer.Stop()
			}
			runtime.Gosched()
		})
	}
	work.Wait()
}

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
		forgetTimers()
		runtime.GC()
		return closed.Value() == nil
	})
}
