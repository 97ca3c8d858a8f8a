package peers

import (
	"context"
	"testing"

	"github.com/oklog/ulid/v2"

	"parley"
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
	if n.full {
		err = parley.Refuse(parley.QuotaExceeded, "no room")
	}
	d.Decided(err)
	d.Done(0, err)
}

// TestRefusedCopyStaysRefused sends a refused copy again, as after a lost ack, when there is room.
func TestRefusedCopyStaysRefused(t *testing.T) {
	d, fake := open(t, &fakeLink{call: unreachable})
	n := &fullNode{fakeNode: fake, full: true}
	d.node = n
	from := capabilities.ID{ULID: ulid.ULID{1}, Node: other}
	message := func(id byte) Item {
		item := mailbox.OutboxItem{Kind: events.OutboxCopy, To: capabilities.ID{ULID: ulid.ULID{2}, Node: d.o.ID}}
		i, err := PackItem(item, from, []events.Event{&events.MessagePosted{Message: capabilities.ID{ULID: ulid.ULID{id}, Node: other}, From: from, To: item.To}})
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	send := func(items ...Item) []Ack { return d.Peer(other).AcceptMail(t.Context(), MailPacket{Items: items}) }
	if acks := send(message(1)); acks[0].Status != AckRefused {
		t.Fatalf("%+v", acks)
	}
	n.full = false
	if acks := send(message(2), message(1)); acks[0].Status != AckAccepted || acks[1].Status != AckRefused || acks[1].Code != string(parley.QuotaExceeded) {
		t.Fatalf("%+v", acks)
	}
	n.full = true
	for i := range maxRefusals + 10 { // the number that is remembered is bounded
		d.Peer(other).refusals.add(&Delivery{To: capabilities.ID{ULID: ulid.ULID{15: byte(i), 14: byte(i >> 8)}}, Command: mailbox.RemoteDelivery{
			AcceptDelivery: mailbox.AcceptDelivery{Posted: &events.MessagePosted{}},
		}}, Ack{Code: string(parley.QuotaExceeded)})
	}
	if r := &d.Peer(other).refusals; len(r.acks) != maxRefusals || len(r.oldest) != maxRefusals {
		t.Fatalf("%d refusals are remembered", len(r.acks))
	}
}
