package proc

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// TuneCollector sets when the garbage collector begins: when as much has become garbage as a percentage of what lives,
// but at least floor bytes. So a small heap is collected seldom, and a large one takes no more than its share.
func TuneCollector(percent int, floor uint64) {
	c := &collector{percent: percent, floor: floor}
	c.set()
	c.await()
}

type collector struct {
	percent int
	floor   uint64
	now     int // the percentage that is set
}

// collection becomes garbage with each collection.
type collection struct{ of *collector }

// await has the percentage set after the next collection, and after each that follows.
func (c *collector) await() {
	runtime.SetFinalizer(&collection{c}, func(*collection) {
		c.set()
		c.await()
	})
}

// smallestHeap is the size of what lives below which the runtime counts no further.
const smallestHeap = 4 << 20

// set sets the percentage of what lives that the floor is, or the least one. It leaves one that is nearly right, since a
// change stops all goroutines for a moment.
func (c *collector) set() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	want := max(c.percent, int(100*c.floor/max(live[0].Value.Uint64(), smallestHeap)))
	if want > c.now+c.now/10 || want < c.now-c.now/10 {
		debug.SetGCPercent(want)
		c.now = want
	}
}
