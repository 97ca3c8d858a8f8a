package persistence

import (
	"runtime"
	"runtime/metrics"
	"sync/atomic"
)

// Reading the log leaves several copies of each commit behind: the server's, the client's and the decoder's. The
// runtime lets garbage grow with the heap, so a node that reads all its mailboxes after a start would need more memory
// than it needs to run. A collector has garbage collected earlier while the log is read.
type collector struct{ read atomic.Int64 }

const (
	collectBytes = 2 << 20 // least bytes of the log between two collections
	collectShare = 32      // one collection for each such part of the live heap, so that the work stays in proportion
)

// took counts bytes that were read of the log. It blocks for a collection when one is due.
func (c *collector) took(bytes int) {
	read := c.read.Add(int64(bytes))
	if read < collectBytes || read < int64(liveHeap()/collectShare) || !c.read.CompareAndSwap(read, 0) {
		return
	}
	runtime.GC()
}

// liveHeap returns the bytes of the heap that the last collection found in use.
func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
