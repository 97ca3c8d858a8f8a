package transport

import (
	"sync"
	"time"

	"parley/capabilities"
)

// Traffic counts packets, with responses, and the bytes of their envelopes.
type Traffic struct {
	PacketsIn  uint64
	PacketsOut uint64
	BytesIn    uint64
	BytesOut   uint64
}

const (
	// maxCounted is how many nodes are counted one by one. Any stranger can be any number of nodes.
	maxCounted = 4096

	refusalPause = time.Second // between two lines about refused packets
)

// counts has the counters of a transport since Open.
type counts struct {
	mu      sync.Mutex
	all     Traffic
	of      map[capabilities.NodeID]*Traffic
	refused uint64
	dropped uint64

	lastSaid time.Time
	unsaid   uint64
}

func newCounts() *counts { return &counts{of: map[capabilities.NodeID]*Traffic{}} }

func (c *counts) sent(to capabilities.NodeID, bytes int) {
	c.add(to, Traffic{PacketsOut: 1, BytesOut: uint64(bytes)})
}

func (c *counts) received(from capabilities.NodeID, bytes int) {
	c.add(from, Traffic{PacketsIn: 1, BytesIn: uint64(bytes)})
}

func (c *counts) add(node capabilities.NodeID, t Traffic) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all.add(t)
	one := c.of[node]
	if one == nil {
		if len(c.of) >= maxCounted {
			return
		}
		one = &Traffic{}
		c.of[node] = one
	}
	one.add(t)
}

func (t *Traffic) add(o Traffic) {
	t.PacketsIn += o.PacketsIn
	t.PacketsOut += o.PacketsOut
	t.BytesIn += o.BytesIn
	t.BytesOut += o.BytesOut
}

func (c *counts) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropped++
}

// refuse counts a refused packet. It reports whether to log it, and the number of refusals that were not logged.
func (c *counts) refuse(now time.Time) (leftOut uint64, say bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused++
	if now.Sub(c.lastSaid) < refusalPause {
		c.unsaid++
		return 0, false
	}
	leftOut, c.unsaid, c.lastSaid = c.unsaid, 0, now
	return leftOut, true
}

// Traffic returns the traffic with a node since Open. Only the first few thousand nodes have a counter.
func (c *counts) Traffic(node capabilities.NodeID) Traffic {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one := c.of[node]; one != nil {
		return *one
	}
	return Traffic{}
}

// Total returns the traffic with all nodes since Open.
func (c *counts) Total() Traffic {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all
}

// Refused returns the number of envelopes that were no genuine packet to this node. Those that were no response to one
// of its own count too.
func (c *counts) Refused() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused
}

// Dropped returns the number of packets for which there was no slot.
func (c *counts) Dropped() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dropped
}
