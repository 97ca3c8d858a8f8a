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

// counts has the counters of a transport.
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
func (t *Transport) Traffic(node capabilities.NodeID) Traffic {
	t.counts.mu.Lock()
	defer t.counts.mu.Unlock()
	if one := t.counts.of[node]; one != nil {
		return *one
	}
	return Traffic{}
}

// Total returns the traffic with all nodes since Open.
func (t *Transport) Total() Traffic {
	t.counts.mu.Lock()
	defer t.counts.mu.Unlock()
	return t.counts.all
}

// Refused returns the number of envelopes that were no genuine packet to this node, or no response to one of its own.
func (t *Transport) Refused() uint64 {
	t.counts.mu.Lock()
	defer t.counts.mu.Unlock()
	return t.counts.refused
}

// Dropped returns the number of packets for which there was no slot.
func (t *Transport) Dropped() uint64 {
	t.counts.mu.Lock()
	defer t.counts.mu.Unlock()
	return t.counts.dropped
}
