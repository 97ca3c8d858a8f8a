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

// acks holds the acknowledgements of a mailbox's parcels that its log does not have yet. Adding one starts no actor: the
// mailbox writes them with its next events once there are ackBatch of them, or when the scheduler asks for it. A crash
// loses them. Then the parcels are delivered again, which changes nothing.
type acks struct {
	mu      sync.Mutex
	pending []ack
}

// ack acknowledges a parcel. It counts only if the receiver's append at position after is not lost. Refused is the
// reason of a refusal; "" means that the parcel arrived.
type ack struct {
	parcel  mailbox.OutboxItem
	refused string
	after   persistence.Position
}

// ackBatch is the number of acks that are worth an event. It also bounds the deliveries that a crash repeats.
const ackBatch = 32

func (r *acks) add(rs ...ack) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending = append(r.pending, rs...)
}

// take moves the acks to the end of rs if there are as many as at least.
func (r *acks) take(rs []ack, atLeast int) []ack {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pending) < atLeast {
		return rs
	}
	rs = append(rs, r.pending...)
	clear(r.pending)
	r.pending = r.pending[:0]
	return rs
}

// parcels returns the sequence numbers of the acknowledged parcels.
func (r *acks) parcels() map[uint64]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pending) == 0 {
		return nil
	}
	seqs := make(map[uint64]bool, len(r.pending))
	for _, rc := range r.pending {
		seqs[rc.parcel.Seq] = true
	}
	return seqs
}

func (r *acks) any() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.pending) > 0
}

// leaveAck adds an ack to a mailbox. It starts the actor only if the mailbox is passive or the ack is urgent.
func (r *registry) leaveAck(to capabilities.ID, rc ack) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, awake := r.registrations[to]
	if !awake {
		s = r.registration(to)
	}
	s.acks.add(rc)
	if !awake || rc.isUrgent() {
		r.send(s, delivery{message: recordAcks{}})
	}
}

// isUrgent reports whether a caller or another parcel waits for the ack.
func (rc ack) isUrgent() bool {
	return rc.refused != "" || rc.parcel.Kind == events.OutboxMint || rc.parcel.Kind == events.OutboxForward
}

// notifyRemoteWaiters tells the callers that wait for another node's reply what that reply is.
func (b *mailboxActor) notifyRemoteWaiters(rs []ack) {
	for _, r := range rs {
		handover := r.parcel.Kind == events.OutboxForward
		if !handover && (r.parcel.Kind != events.OutboxAnswer || r.refused == "") {
			continue
		}
		for _, w := range b.node.remoteAcks.take(formKey{b.reg.id, r.parcel.Subject}) {
			var err error
			if code, text, ok := strings.Cut(r.refused, ": "); ok {
				err = refused(code, text)
			}
			b.release(func(lost error) {
				if lost != nil {
					err = lost
				}
				w <- err
			})
		}
	}
}

// recordAcks has a mailbox write its acks.
type recordAcks struct{}

func (recordAcks) handle(b *mailboxActor) { b.recordAcks() }
func (recordAcks) fail(error)             {} // the parcels are delivered again, which changes nothing

// recordAcks writes all pending acks to the log, so that readers see the deliveries.
func (b *mailboxActor) recordAcks() {
	if !b.reg.acks.any() || b.node.journal.Err() != nil {
		return
	}
	if err := b.commit(b.node.now(), nil); err != nil {
		b.node.log.Warn("deliveries not noted", "mailbox", b.reg.id.String(), "error", err)
	}
}

// slowDisk is the length of a flush from which on readers do not wait for it.
const slowDisk = 100 * time.Millisecond

// recordAcksToShow writes all pending acks for a reader, unless the reader would have to wait for a slow disk.
func (b *mailboxActor) recordAcksToShow() {
	if b.node.journal.Flushing() < slowDisk {
		b.recordAcks()
	}
}

// recordAllAcks has every mailbox with pending acks write them, and reports whether there were any. It does nothing
// while the journal has failed.
func (r *registry) recordAllAcks() bool {
	if r.node.journal.Err() != nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	found := false
	for _, s := range r.registrations {
		if s.acks.any() {
			found = true
			r.send(s, delivery{message: recordAcks{}})
		}
	}
	return found
}

// ackEvents returns the events for some acks: one for all that arrived, and one for each refusal.
func (b *mailboxActor) ackEvents(rs []ack, now capabilities.Time) []events.Event {
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
			b.node.log.Warn("delivery not noted", "mailbox", b.reg.id.String(), "error", err)
			continue
		}
		evs = append(evs, e...)
	}
	return evs
}
