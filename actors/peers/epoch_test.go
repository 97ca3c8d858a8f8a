package peers

import (
	"math"
	"sync"
	"testing"

	"github.com/oklog/ulid/v2"

	"parley/actors/peers/window"
	"parley/actors/transport"
	"parley/capabilities"
	"parley/internal/eventually"
	"parley/mailbox"
)

// TestMailArrivesAfterTheClockIsSetBack sends mail to a node that has seen packets of the sender's future.
func TestMailArrivesAfterTheClockIsSetBack(t *testing.T) {
	var mu sync.Mutex
	var window receiveWindow
	const future = 1 << 50
	if !window.wait(t.Context(), future, 1, 0) {
		t.Fatal("the first packet waits")
	}
	window.admit(future, 1)
	arrived := 0
	d, n := open(t, &fakeLink{call: func(kind transport.Kind, body []byte) (transport.Kind, any, error) {
		if kind == KindAnnounce {
			return KindNoted, AddressPacket{}, nil
		}
		mail, err := ReadPacket[MailPacket](body)
		if err != nil {
			return 0, nil, err
		}
		acks := make([]Ack, len(mail.Items))
		status := AckRetry
		if window.wait(t.Context(), mail.Epoch, mail.Number, 0) {
			window.admit(mail.Epoch, mail.Number)
			status = AckAccepted
			mu.Lock()
			arrived += len(acks)
			mu.Unlock()
		}
		for i := range acks {
			acks[i].Status = status
		}
		return KindAcks, AckPacket{acks, window.newest()}, nil
	}})
	from := capabilities.ID{ULID: ulid.ULID{15: 1}}
	n.mu.Lock()
	n.items[from] = []Outgoing{{Item: mailbox.OutboxItem{Seq: 1}, Written: Item{Count: 1}}}
	n.mu.Unlock()
	d.Peer(other).Add(from, 1)
	eventually.Holds(t, "the item arrives", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return arrived == 1
	})
}

// TestEpochsOfARestartDiffer begins windows of several starts of a node at the same time of its clock.
func TestEpochsOfARestartDiffer(t *testing.T) {
	epochs := map[uint64]bool{}
	for range 5 {
		d, _ := open(t, &fakeLink{call: unreachable})
		epochs[d.Peer(other).newSendWindow().epoch] = true
	}
	if len(epochs) < 4 {
		t.Errorf("5 starts have %d epochs", len(epochs))
	}
}

// TestEpochsAscendWhateverAPeerClaims has a peer claim the last epoch that there is.
func TestEpochsAscendWhateverAPeerClaims(t *testing.T) {
	d, _ := open(t, &fakeLink{call: unreachable})
	p := d.Peer(other)
	p.raise(math.MaxUint64)
	first, second := p.newSendWindow().epoch, p.newSendWindow().epoch
	if first <= window.MostEpoch || second <= first {
		t.Errorf("the windows have epochs %d and %d", first, second)
	}
}
