package actors

import (
	"errors"
	"sync/atomic"
	"testing"

	"parley"
	"parley/actors/peers"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
	"parley/mailbox"
)

// endRefused asks a form and cancels it, while a refusal of its copy waits to be recorded with enough other acks.
type endRefused struct{}

func (endRefused) handle(b *mailboxActor) (none, error) {
	evs, err := b.decide(mailbox.RequestForm{Form: parley.Form{To: "HOST", Description: "d", Fields: textField("a")}})
	if err != nil {
		return none{}, err
	}
	form := evs[0].(*events.FormRequested).ID
	b.reg.acks.take(nil, 1)
	b.reg.acks.add(ack{Item: b.state.Outbox.Items()[0], Refused: "QUOTA_EXCEEDED: no room"})
	for i := range ackBatch {
		b.reg.acks.add(ack{Item: mailbox.OutboxItem{Seq: uint64(1000 + i)}})
	}
	_, err = b.decide(mailbox.CancelForm{Form: capabilities.FormID(form)})
	return none{}, err
}

// TestRefusalIsNotRecordedWithTheEndOfItsForm records a refusal, which ends a form, at the time at which its asker ends
// it.
func TestRefusalIsNotRecordedWithTheEndOfItsForm(t *testing.T) {
	n := openWith(t, Options{Folder: t.TempDir()})
	fae := guest(t, n, "fae")
	if _, err := call(t.Context(), fae, endRefused{}); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// collectAfterLoss has an item for another node, and the ack of a lost item that had the same number.
type collectAfterLoss struct{ other capabilities.ID }

func (m collectAfterLoss) handle(b *mailboxActor) (items int, err error) {
	if _, err := b.decide(mailbox.AddPeer{Host: m.other, Name: "other", Theirs: m.other, Ours: b.node.newID(), Stamp: 1}); err != nil {
		return 0, err
	}
	if _, err := b.decide(mailbox.PostMessage{To: "other", Post: parley.Post{Text: "hello"}}); err != nil {
		return 0, err
	}
	lost := b.node.journal.AppendSince(0) // decided before the failure
	b.reg.acks.add(ack{Item: mailbox.OutboxItem{Seq: b.state.Outbox.LastSeq(), Kind: events.OutboxCopy, Subject: b.node.newID(), To: b.reg.id}, After: lost})
	skip := func(taken map[uint64]bool) map[uint64]bool { return taken }
	all, _, err := collectFrom(b, peers.Request{Node: m.other.Node, Skip: skip, Bytes: 1 << 20})
	if n := countItems(b, m.other.Node); n != len(all) {
		return n, errors.New("the items are counted otherwise")
	}
	return len(all), err
}

// TestAckOfLostItemHidesNoOther fails the journal once. The item that is enqueued afterwards has the number of a lost one
// that was acknowledged.
func TestAckOfLostItemHidesNoOther(t *testing.T) {
	var broken atomic.Bool
	n := openWith(t, Options{Folder: t.TempDir(), Failpoint: func(step string) error {
		if broken.Load() && step == "before publish" {
			return errors.New("no space left on device, for the test")
		}
		return nil
	}})
	broken.Store(true)
	if err := n.Host().Names().Store(t.Context(), "x", "1"); err == nil {
		t.Fatal("a failed disk stores a name")
	}
	broken.Store(false)
	eventually.Holds(t, "the node writes again", func() bool { return n.State().Problem == nil })
	other := capabilities.ID{ULID: n.host.ULID, Node: capabilities.NodeOf([32]byte{1})}
	if items, err := call(t.Context(), n.Host(), collectAfterLoss{other}); err != nil || items == 0 {
		t.Fatalf("%d items are sent, %v", items, err)
	}
}
