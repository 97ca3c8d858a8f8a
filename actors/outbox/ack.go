package outbox

import (
	"slices"

	"parley/events"
	"parley/mailbox"
)

// Ack acknowledges an item. It counts only if the receiver's append at position After is not lost. Refused is the reason of
// a refusal; "" means that the item arrived.
type Ack[P ~uint64] struct {
	Item    mailbox.OutboxItem
	Refused string
	After   P
}

// IsUrgent reports whether a caller or another item waits for the ack.
func (a Ack[P]) IsUrgent() bool {
	return a.isRefusal() || a.Item.Kind == events.OutboxMint || a.Item.Kind == events.OutboxRevocation || a.Item.Kind == events.OutboxForward
}

func (a Ack[P]) isRefusal() bool { return a.Refused != "" }

// Acks holds the acks of a mailbox's items that its log does not have yet. A crash loses them. Then the items are delivered
// again, which changes nothing. The zero value has none.
type Acks[P ~uint64] struct{ pending []Ack[P] }

// Add adds acks.
func (s *Acks[P]) Add(some ...Ack[P]) { s.pending = append(s.pending, some...) }

// Len returns the number of acks.
func (s *Acks[P]) Len() int { return len(s.pending) }

// Take moves the acks to the end of into if there are as many as at least.
func (s *Acks[P]) Take(into []Ack[P], atLeast int) []Ack[P] {
	if len(s.pending) < atLeast {
		return into
	}
	into = append(into, s.pending...)
	clear(s.pending)
	s.pending = s.pending[:0]
	return into
}

// Seqs returns the sequence numbers of the acknowledged items. An ack that is lost does not count: its item is lost too,
// and another may have its number.
func (s *Acks[P]) Seqs(lost func(P) bool) map[uint64]bool {
	if len(s.pending) == 0 {
		return nil
	}
	seqs := make(map[uint64]bool, len(s.pending))
	for _, a := range s.pending {
		if !lost(a.After) {
			seqs[a.Item.Seq] = true
		}
	}
	return seqs
}

// HasRefusedCopy reports whether a copy was refused.
func (s *Acks[P]) HasRefusedCopy() bool {
	return slices.ContainsFunc(s.pending, func(a Ack[P]) bool { return a.isRefusal() && a.Item.Kind == events.OutboxCopy })
}

// Split returns the acks that are no refusals, and the refusals. A refusal may end a form that other events of the same
// commit end, so it is recorded without them.
func Split[P ~uint64](all []Ack[P]) (arrived, refused []Ack[P]) {
	if !slices.ContainsFunc(all, Ack[P].isRefusal) {
		return all, nil
	}
	for _, a := range all {
		if a.isRefusal() {
			refused = append(refused, a)
		} else {
			arrived = append(arrived, a)
		}
	}
	return arrived, refused
}

// Records returns the commands that record acks: one for each refusal, and then one for all that arrived. Each item counts
// once, and those that are lost do not.
func Records[P ~uint64](acks []Ack[P], lost func(P) bool) []mailbox.RecordDelivery {
	if len(acks) == 0 {
		return nil
	}
	arrived := mailbox.RecordDelivery{Items: make([]mailbox.OutboxItem, 0, len(acks))}
	var all []mailbox.RecordDelivery
	seen := make(map[uint64]bool, len(acks))
	for _, a := range acks {
		switch {
		case seen[a.Item.Seq] || lost(a.After):
			continue
		case a.isRefusal():
			all = append(all, mailbox.RecordDelivery{Items: []mailbox.OutboxItem{a.Item}, Refused: a.Refused})
		default:
			arrived.Items = append(arrived.Items, a.Item)
		}
		seen[a.Item.Seq] = true
	}
	return append(all, arrived)
}
