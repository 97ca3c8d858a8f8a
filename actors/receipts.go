package actors

import (
	"strings"
	"sync"
	"time"

	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/persistence"
)

// receipts are left at a mailbox's seat by those who got its parcels. They wake nobody: the mailbox writes
// them down with what it writes next once there are some, or when the clock comes round. If they are lost
// before that, in a crash, the parcels are delivered again, which changes nothing.
type receipts struct {
	mu   sync.Mutex
	left []receipt
}

// receipt says that a parcel arrived, if the append of who says so is not lost. Refused, if any, is why the
// other would not have it.
type receipt struct {
	parcel  mailbox.OutboxItem
	refused string
	after   persistence.Position
}

// receiptsAtOnce is how many are worth an event. It bounds what is delivered again after a crash, too.
const receiptsAtOnce = 32

func (r *receipts) add(rs ...receipt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = append(r.left, rs...)
}

// take moves the receipts to the end of rs if there are as many as at least.
func (r *receipts) take(rs []receipt, atLeast int) []receipt {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.left) < atLeast {
		return rs
	}
	rs = append(rs, r.left...)
	clear(r.left)
	r.left = r.left[:0]
	return rs
}

// parcels gives the numbers of those that the receipts are for.
func (r *receipts) parcels() map[uint64]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.left) == 0 {
		return nil
	}
	seqs := make(map[uint64]bool, len(r.left))
	for _, rc := range r.left {
		seqs[rc.parcel.Seq] = true
	}
	return seqs
}

func (r *receipts) any() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.left) > 0
}

// receipt leaves one for a mailbox, which is woken only if it is at rest or something hangs on it.
func (r *roster) receipt(to capabilities.ID, rc receipt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, awake := r.seats[to]
	if !awake {
		s = r.seat(to)
	}
	s.receipts.add(rc)
	if !awake || rc.isUrgent() {
		r.send(s, noteReceipts())
	}
}

// isUrgent reports whether somebody waits for the receipt, or other parcels do.
func (rc receipt) isUrgent() bool {
	return rc.refused != "" || rc.parcel.Kind == events.OutboxMint || rc.parcel.Kind == events.OutboxForward
}

// judged tells those who wait for what became of something that they said to another node.
func (b *box) judged(rs []receipt) {
	for _, r := range rs {
		handover := r.parcel.Kind == events.OutboxForward
		if !handover && (r.parcel.Kind != events.OutboxAnswer || r.refused == "") {
			continue
		}
		for _, w := range b.node.waits.takeJudges(place{b.seat.id, r.parcel.Subject}) {
			var err error
			if code, text, ok := strings.Cut(r.refused, ": "); ok {
				err = refused(code, text)
			}
			b.release(func(lost error) {
				if lost != nil {
					err = lost
				}
				w <- result[Outcome]{err: err}
			})
		}
	}
}

// noteReceipts is the visit that has a mailbox write down its receipts.
func noteReceipts() visit {
	return visit{
		run:  (*box).noteReceipts,
		lost: func(error) {}, // the parcels are delivered again, and change nothing
	}
}

// noteReceipts writes down all receipts there are, so that what was delivered is seen to be.
func (b *box) noteReceipts() {
	if !b.seat.receipts.any() || b.node.journal.Err() != nil {
		return
	}
	if err := b.commit(b.node.now(), nil); err != nil {
		b.node.log.Warn("deliveries not noted", "mailbox", b.seat.id.String(), "error", err)
	}
}

// slowDisk is how long a flush takes when nobody who only reads is to wait for it.
const slowDisk = 100 * time.Millisecond

// noteReceiptsToShow writes down all receipts, so that a reader sees what was delivered, unless the reader would have to
// wait for a slow disk.
func (b *box) noteReceiptsToShow() {
	if b.node.journal.Flushing() < slowDisk {
		b.noteReceipts()
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

// noted turns receipts into the events that they amount to: one for what arrived, and one for each refusal.
func (b *box) noted(rs []receipt, now capabilities.Time) []events.Event {
	if len(rs) == 0 {
		return nil
	}
	arrived := mailbox.RecordDelivery{Items: make([]mailbox.OutboxItem, 0, len(rs))}
	var all []mailbox.RecordDelivery
	seen := map[uint64]bool{}
	for _, r := range rs {
		switch {
		case seen[r.parcel.Seq] || b.node.journal.Lost(r.after):
			continue
		case r.refused == "":
			arrived.Items = append(arrived.Items, r.parcel)
		default:
			all = append(all, mailbox.RecordDelivery{Items: []mailbox.OutboxItem{r.parcel}, Refused: r.refused})
		}
		seen[r.parcel.Seq] = true
	}
	var evs []events.Event
	for _, c := range append(all, arrived) {
		e, err := b.state.Decide(c, now, b.node.newID)
		if err != nil {
			b.node.log.Warn("delivery not noted", "mailbox", b.seat.id.String(), "error", err)
			continue
		}
		evs = append(evs, e...)
	}
	return evs
}
