package sim

import (
	"slices"

	"parley/capabilities"
)

// fault takes a step that breaks something, or mends it.
func (w *world) fault(k kind, n *node, d *draw) {
	switch k {
	case stepLose:
		if len(w.packets) > 0 {
			i := d.n(len(w.packets))
			w.packets = slices.Delete(w.packets, i, i+1)
			w.sometimes(packetLost)
		}
	case stepDouble:
		if m, ok := pick(d, w.packets); ok {
			w.packets = append(w.packets, m)
		}
	case stepTimeout:
		if p := n.peers[w.nodes[d.n(len(w.nodes))]]; p != nil {
			var calls []uint64
			for call := range p.calls {
				calls = append(calls, call)
			}
			slices.Sort(calls)
			if call, ok := pick(d, calls); ok {
				p.fail(call)
			}
		}
	case stepGiveUp:
		if len(n.held) > 0 {
			n.giveUp(d.n(len(n.held)))
		}
	case stepCut:
		to := w.nodes[d.n(len(w.nodes))]
		w.cut[[2]*node{n, to}] = true
		if !d.oneIn(3) {
			w.cut[[2]*node{to, n}] = true
		}
		w.trace("the link from %s to %s is cut", n.name, to.name)
	case stepHeal:
		clear(w.cut)
	default:
		w.nodeFault(k, n, d)
	}
}

// nodeFault takes a step that breaks a node, or mends it.
func (w *world) nodeFault(k kind, n *node, d *draw) {
	switch k {
	case stepCrash:
		stored := d.oneIn(2)
		if d.oneIn(2) {
			n = w.withRefusal(n)
		}
		if !n.down {
			n.crash(stored)
		}
	case stepStart:
		n.start()
	case stepFull:
		n.full = true
		w.trace("the disk of %s is full", n.name)
	case stepBadFlush:
		if n.full || n.down {
			return
		}
		n.journal.begin(1 + d.n(6))
		n.full = true
		n.write(d.oneIn(2))
		n.full = false
		n.reopen()
	case stepQuota:
		w.setQuotas(d.n(quotaPeerForms+1), quotaInbox/(1+d.n(8)))
	case stepRefuse:
		w.mailBehindRefusal(n, d)
	case stepSpace:
		n.full = false
		n.reopen()
	case stepClock:
		by := capabilities.Time(d.n(200) - 100)
		if n.skew += by; by < 0 {
			w.sometimes(clockBack)
		}
	case stepSnapshot:
		if b := n.mailboxes[d.n(len(n.mailboxes))]; !n.down {
			n.snapshot(b)
		}
	case stepPanic:
		if b := w.busy(d); b != nil {
			b.crash()
		}
	}
}
