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
