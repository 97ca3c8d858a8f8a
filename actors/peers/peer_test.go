package peers

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/oklog/ulid/v2"

	"parley/actors/transport"
	"parley/capabilities"
	"parley/internal/eventually"
	"parley/mailbox"
)

var other = capabilities.NodeOf([32]byte{31: 9})

func TestPacketsOfOneNodeAreBounded(t *testing.T) {
	d, _ := open(t, &fakeLink{call: unreachable})
	p := d.Peer(other)
	acks := p.AcceptMail(t.Context(), MailPacket{Items: []Item{{Body: []byte(strings.Repeat("x", maxAccepting))}, {Body: []byte("y")}}})
	if len(acks) != 2 || acks[0].Status != AckRetry {
		t.Errorf("%+v", acks)
	}
	if left := p.accepting.Load(); left != 0 {
		t.Errorf("%d bytes are still being accepted", left)
	}
}

func unreachable(transport.Kind, []byte) (transport.Kind, any, error) {
	return 0, nil, errors.New("nobody is there")
}

// TestItemsArriveInOrderDespiteFailures loses every third packet and every fifth response.
func TestItemsArriveInOrderDespiteFailures(t *testing.T) {
	const items = 3000
	var mu sync.Mutex
	var arrived []int
	packets := 0
	var window receiveWindow
	d, n := open(t, &fakeLink{call: func(kind transport.Kind, body []byte) (transport.Kind, any, error) {
		if kind == KindAnnounce {
			return KindNoted, AddressPacket{}, nil
		}
		mail, err := ReadPacket[MailPacket](body)
		if err != nil {
			return 0, nil, err
		}
		mu.Lock()
		packets++
		number := packets
		mu.Unlock()
		if number%3 == 0 {
			return 0, nil, errors.New("lost")
		}
		acks := make([]Ack, len(mail.Items))
		if !window.wait(t.Context(), mail.Epoch, mail.Number, 0) {
			for i := range acks {
				acks[i].Status = AckRetry
			}
			return KindAcks, AckPacket{acks, window.newest()}, nil
		}
		mu.Lock()
		for i, item := range mail.Items {
			arrived = append(arrived, item.Count)
			acks[i].Status = AckAccepted
		}
		mu.Unlock()
		window.admit(mail.Epoch, mail.Number)
		if number%5 == 0 {
			return 0, nil, errors.New("lost")
		}
		return KindAcks, AckPacket{acks, window.newest()}, nil
	}})
	from := capabilities.ID{ULID: ulid.ULID{15: 1}}
	p := d.Peer(other)
	n.mu.Lock()
	for i := range items {
		n.items[from] = append(n.items[from], Outgoing{Item: mailbox.OutboxItem{Seq: uint64(i + 1)}, Written: Item{Count: i + 1, Body: make([]byte, 1000)}})
	}
	n.mu.Unlock()
	p.Add(from, items)
	eventually.Holds(t, "all have an ack", func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return len(n.items[from]) == 0
	})
	mu.Lock()
	defer mu.Unlock()
	next := 1
	for _, i := range arrived {
		if i > next {
			t.Fatalf("item %d arrives before item %d", i, next)
		}
		if i == next {
			next++
		}
	}
	if next != items+1 {
		t.Errorf("%d of %d arrived", next-1, items)
	}
	if slices.Contains(n.acked, 0) || p.Waiting() != 0 {
		t.Errorf("%d items still wait", p.Waiting())
	}
}
