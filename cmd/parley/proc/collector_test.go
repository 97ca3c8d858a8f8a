package proc

import (
	"runtime"
	"runtime/debug"
	"testing"

	"parley/internal/eventually"
)

func TestCollectorKeepsFloorAndPercent(t *testing.T) {
	before := debug.SetGCPercent(100)
	c := &collector{percent: 100, floor: 64 << 20}
	t.Cleanup(func() {
		c.percent, c.floor = before, 0
		c.set()
	})
	c.set()
	if c.now < 400 {
		t.Errorf("a small heap is collected at %d %%", c.now)
	}
	live := make([]byte, 128<<20)
	eventually.Holds(t, "a large heap is collected at the least percentage", func() bool {
		runtime.GC()
		c.set()
		return c.now == 100
	})
	runtime.KeepAlive(live)
	live = nil
	eventually.Holds(t, "a heap that has shrunk is collected at the floor", func() bool {
		runtime.GC()
		c.set()
		return c.now > 400
	})
}
