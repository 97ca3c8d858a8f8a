package proc

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// ReturnMemory gives memory back to the system after a burst of work, until ctx ends. The runtime keeps
// what it took for the heap's last size until the next collection. An idle process does not need one for a long time.
func ReturnMemory(ctx context.Context) {
	tick := time.NewTicker(restPeriod)
	defer tick.Stop()
	var r rest
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if r.isDue(readHeap()) {
			debug.FreeOSMemory()
		}
	}
}

const (
	restPeriod = 15 * time.Second
	restWork   = 16 << 20 // bytes that a process which rests allocates in a period, at most
	restSpare  = 64 << 20 // bytes of the heap that are worth a collection
)

// heap is what the runtime says of the heap, in bytes.
type heap struct {
	allocated uint64 // since the process began
	held      uint64 // of the system
}

func readHeap() heap {
	all := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(all)
	h := heap{allocated: all[0].Value.Uint64()}
	for _, part := range all[1:] {
		h.held += part.Value.Uint64()
	}
	return h
}

// rest tells when a process rests that was busy before.
type rest struct {
	allocated uint64
	quiet     int // periods in which it rested
}

// isDue reports whether memory is to be given back at the end of a period. The first time is when a rest begins. The second is
// when the node has dropped what it keeps ready for a while.
func (r *rest) isDue(h heap) bool {
	work := h.allocated - r.allocated
	if r.allocated = h.allocated; work > restWork {
		r.quiet = 0
		return false
	}
	r.quiet++
	return (r.quiet == 1 || r.quiet == 5) && h.held > restSpare
}
