package window

import "parley/capabilities"

// Receive admits the packets of a node in the order of their numbers. It admits none of an earlier epoch, and none after
// one that could not be stored. Packets without an epoch have no order. The zero value has seen no packet.
type Receive struct {
	epoch    uint64
	next     uint64 // number of the packet whose turn it is
	failed   bool
	failures uint64         // of the journal, when the epoch began: what was accepted before another may be lost
	refused  map[Route]bool // of which a copy was refused in the epoch
	put      map[Route]bool // of which an item was put off in the epoch
}

// Route is the way from a mailbox of another node to one of this node.
type Route struct{ From, To capabilities.ID }

// MaxRefused bounds the routes that a window holds up.
const MaxRefused = 1024

// Turn says when a packet is admitted.
type Turn uint8

// The turns of a packet.
const (
	Early Turn = iota // packets before it have not come
	Now
	Over // it is of an earlier epoch, comes again, or follows one that could not be stored
)

// Begin begins the window of a first packet of a later epoch, and reports whether it did. Failures is how often the journal
// has failed.
func (r *Receive) Begin(epoch, number, failures uint64) bool {
	if epoch <= r.epoch || number != 1 {
		return false
	}
	*r = Receive{epoch: epoch, next: 1, failures: failures}
	return true
}

// Look returns the turn of a packet. The caller calls Admit once the packet was accepted.
func (r *Receive) Look(epoch, number uint64) Turn {
	switch {
	case epoch == 0:
		return Now
	case epoch < r.epoch, epoch == r.epoch && (r.failed || number < r.next):
		return Over
	case epoch == r.epoch && number == r.next:
		return Now
	}
	return Early
}

// Admit records that a packet was accepted, so that the next may follow. A repeated packet counts once. It reports whether
// the packet counted.
func (r *Receive) Admit(epoch, number uint64) bool {
	counts := epoch == r.epoch && number == r.next && epoch != 0
	if counts {
		r.next++
	}
	return counts
}

// Fail records that part of a packet could not be stored. It reports whether the window of the epoch has failed.
func (r *Receive) Fail(epoch uint64) bool {
	if epoch != r.epoch {
		return false
	}
	r.failed = true
	return true
}

// HasFailed reports whether part of the window was not stored. It also reports true if part may be lost because the
// journal has failed since the epoch began. The window of an earlier epoch has failed too: its refusals are forgotten,
// and its items come again.
func (r *Receive) HasFailed(epoch, failures uint64) bool {
	return epoch != 0 && (epoch < r.epoch || r.failed || r.failures != failures)
}

// Refuse records that a copy was refused. A window with too many routes to hold up fails: Refuse reports that.
func (r *Receive) Refuse(epoch uint64, way Route) bool {
	if epoch != r.epoch || epoch == 0 || r.refused[way] {
		return false
	}
	if len(r.refused) == MaxRefused {
		return r.Fail(epoch)
	}
	if r.refused == nil {
		r.refused = map[Route]bool{}
	}
	r.refused[way] = true
	return false
}

// HasRefused reports whether a copy was refused in the window.
func (r *Receive) HasRefused(epoch uint64, way Route) bool {
	return epoch == r.epoch && r.refused[way]
}

// PutOff records that an item was put off which alone costs too much for now: nothing that follows it on its route is accepted in the epoch.
// It reports false if too many routes are put off, or the packet has no epoch: then the caller calls Fail.
func (r *Receive) PutOff(epoch uint64, way Route) bool {
	if epoch != r.epoch || epoch == 0 || len(r.put) == MaxRefused && !r.put[way] {
		return false
	}
	if r.put == nil {
		r.put = map[Route]bool{}
	}
	r.put[way] = true
	return true
}

// IsPutOff reports whether an item of a route was put off in the epoch.
func (r *Receive) IsPutOff(epoch uint64, way Route) bool { return epoch == r.epoch && r.put[way] }

// Refused returns the number of routes of which a copy was refused in the window.
func (r *Receive) Refused() int { return len(r.refused) }

// Newest returns the newest epoch.
func (r *Receive) Newest() uint64 { return r.epoch }

// DrawnBits is the number of bits of an epoch that are drawn. Without them, a node whose clock was set back while it
// was down would repeat an epoch. The receiver would then admit its packets among those of the earlier window.
const DrawnBits = 20

// MostEpoch bounds what another node may claim. The epochs of a clock are below it for 100 years.
const MostEpoch = 1 << 62

// NextEpoch returns the epoch of a node's next window. The epochs of its windows ascend, also across restarts.
func NextEpoch(last uint64, now capabilities.Time, drawn uint64) uint64 {
	return max(last+1, uint64(now)<<DrawnBits|drawn)
}

// Raise returns the last epoch of a node's windows. The next one has to begin after an epoch that the receiver has
// seen. The node's clock may have been set back since.
func Raise(last, seen uint64) uint64 { return max(last, min(seen, MostEpoch)) }
