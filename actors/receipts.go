package actors

import (
	"slices"
	"sync"

	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/persistence"
)

// receipts are left at a mailbox's seat by those who got its parcels. They wake nobody: the mailbox writes
// them down with whatever it writes next, or when the clock comes round. If they are lost before that, in a
// crash, the parcels are delivered again, which changes nothing.
type receipts struct {
	mu   sync.Mutex
	left []receipt
}

// receipt says that a parcel arrived, if the append of who says so is not lost.
type receipt struct {
	mailbox.Delivered
	after persistence.Position
}

func (r *receipts) add(rs ...receipt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = append(r.left, rs...)
}

func (r *receipts) take() []receipt {
	r.mu.Lock()
	defer r.mu.Unlock()
	rs := r.left
	r.left = nil
	return rs
}

func (r *receipts) any() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.left) > 0
}

// receipt leaves one for a mailbox, which is woken only if it is at rest.
func (r *roster) receipt(to capabilities.ID, rc receipt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, awake := r.seats[to]
	if !awake {
		s = r.seat(to)
	}
	s.receipts.add(rc)
	if !awake {
		r.send(s, noteReceipts())
	}
}

// noteReceipts is the visit that has a mailbox write down its receipts.
func noteReceipts() visit {
	return visit{
		run: func(b *box) {
			if err := b.commit(b.node.now(), nil); err != nil {
				b.node.log.Warn("deliveries not noted", "mailbox", b.seat.id.String(), "error", err)
			}
		},
		lost: func(error) {}, // the parcels are delivered again, and change nothing
	}
}

// noteAll has every mailbox with receipts write them down, and reports whether there were any. While the
// journal is failed they stay where they are.
func (r *roster) noteAll() bool {
	if r.node.journal.Err() != nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	found := false
	for _, s := range r.seats {
		if s.receipts.any() {
			found = true
			r.send(s, noteReceipts())
		}
	}
	return found
}

// noted turns receipts into the events that they amount to, once for each parcel.
func (b *box) noted(rs []receipt, now capabilities.Time) []events.Event {
	var evs []events.Event
	for i, r := range rs {
		again := slices.ContainsFunc(rs[:i], func(o receipt) bool { return o.Parcel == r.Parcel })
		if again || b.node.journal.Lost(r.after) {
			continue
		}
		e, err := b.state.Decide(r.Delivered, now, b.node.newID)
		if err != nil {
			b.node.log.Warn("delivery not noted", "mailbox", b.seat.id.String(), "error", err)
			continue
		}
		evs = append(evs, e...)
	}
	return evs
}
