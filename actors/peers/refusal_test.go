package peers

import (
	"context"
	"testing"

	"github.com/oklog/ulid/v2"

	"parley"
	"parley/actors/peers/window"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// fullNode refuses mail by a quota as long as it is full.
type fullNode struct {
	*fakeNode
	full bool
}

func (n *fullNode) Accept(_ context.Context, d *Delivery) {
	var err error
	switch {
	case n.full:
		err = parley.Refuse(parley.QuotaExceeded, "no room")
	case d.FollowsRefusal():
		err = ErrDelayed
	}
	d.Decided(err)
	d.Done(err)
}

// TestMailWaitsForARefusal refuses a copy, and gets the mail after it while the ack may still be lost. It is accepted in
// the next window, after the copy if that comes again.
func TestMailWaitsForARefusal(t *testing.T) {
	d, fake := open(t, &fakeLink{call: unreachable})
	n := &fullNode{fakeNode: fake, full: true}
	d.node = n
	message := func(sender, id byte) Item {
		from := capabilities.ID{ULID: ulid.ULID{sender}, Node: other}
		item := mailbox.OutboxItem{Kind: events.OutboxCopy, To: capabilities.ID{ULID: ulid.ULID{2}, Node: d.o.ID}}
		i, err := PackItem(item, from, []events.Event{&events.MessagePosted{Message: capabilities.ID{ULID: ulid.ULID{id}, Node: other}, From: from, To: item.To}})
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	check := func(epoch, number uint64, item Item, want AckStatus) {
		t.Helper()
		acks := d.Peer(other).AcceptMail(t.Context(), MailPacket{Epoch: epoch, Number: number, Items: []Item{item}})
		if acks[0].Status != want {
			t.Errorf("%+v, want status %d", acks[0], want)
		}
	}
	check(1, 1, message(1, 1), AckRefused)
	n.full = false
	check(1, 2, message(3, 2), AckAccepted) // of another sender
	check(1, 3, message(1, 3), AckRetry)
	check(1, 4, message(3, 4), AckRetry) // the window has failed
	check(2, 1, message(1, 1), AckAccepted)
	check(2, 2, message(1, 3), AckAccepted)

	w := &d.Peer(other).receives
	for i := range window.MaxRefused + 10 {
		w.refuse(2, window.Route{From: capabilities.ID{ULID: ulid.ULID{15: byte(i), 14: byte(i >> 8)}}})
	}
	if n, failed := w.rules.Refused(), w.hasFailed(2, 0); n != window.MaxRefused || !failed {
		t.Errorf("a window holds up %d routes, failed: %t", n, failed)
	}
}

// busyNode puts off what a sender sends, as long as it is busy, as a mailbox does with what costs too much for now.
type busyNode struct {
	*fakeNode
	busy byte
}

func (n *busyNode) Accept(_ context.Context, d *Delivery) {
	if !d.Admitted(n.Failures()) {
		d.Done(ErrDelayed)
		return
	}
	var err error
	if n.busy != 0 && d.Sender.ULID[0] == n.busy {
		err = parley.Refuse(parley.RateLimited, "the processor's share is used up")
	}
	d.Decided(err)
	d.Done(err)
}

// TestWhatIsPutOffHoldsUpItsRouteAlone puts off what one mailbox sends, as a guest's forms with costly patterns. Nothing that follows on its
// way is accepted before. Mail of others is, to the same mailbox too, in the same packet and in later ones.
func TestWhatIsPutOffHoldsUpItsRouteAlone(t *testing.T) {
	d, fake := open(t, &fakeLink{call: unreachable})
	n := &busyNode{fakeNode: fake, busy: 1}
	d.node = n
	message := func(sender, to, id byte) Item {
		from := capabilities.ID{ULID: ulid.ULID{sender}, Node: other}
		item := mailbox.OutboxItem{Kind: events.OutboxCopy, To: capabilities.ID{ULID: ulid.ULID{to}, Node: d.o.ID}}
		i, err := PackItem(item, from, []events.Event{&events.MessagePosted{Message: capabilities.ID{ULID: ulid.ULID{id}, Node: other}, From: from, To: item.To}})
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	check := func(epoch, number uint64, want string, items ...Item) {
		t.Helper()
		got := ""
		for _, r := range d.Peer(other).AcceptMail(t.Context(), MailPacket{Epoch: epoch, Number: number, Items: items}) {
			got += map[AckStatus]string{AckAccepted: "A", AckRetry: "r", AckRefused: "x"}[r.Status]
		}
		if got != want {
			t.Errorf("packet %d of epoch %d: %s, want %s", number, epoch, got, want)
		}
	}
	check(1, 1, "ArArA", message(2, 9, 1), message(1, 9, 2), message(2, 9, 3), message(1, 9, 4), message(3, 8, 5))
	n.busy = 0
	check(1, 2, "rAA", message(1, 9, 6), message(2, 9, 7), message(1, 8, 8))
	check(2, 1, "AAA", message(1, 9, 2), message(1, 9, 4), message(1, 9, 6))

	n.busy = 1
	check(0, 0, "rr", message(1, 9, 9), message(2, 9, 10)) // without an epoch there is no order to keep
}
