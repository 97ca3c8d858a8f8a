package actors

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/actors/peers"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
	"parley/mailbox"
)

// within returns a context for a wait of a test.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
	t.Cleanup(cancel)
	return ctx
}

// TestSenderAwaitsStatesOverNodes sends a message to an agent of another node, whose session is offered and shown it. The
// sender waits for each state, and learns by whom it is known.
func TestSenderAwaitsStatesOverNodes(t *testing.T) {
	t.Parallel()
	a, b := openClusterNode(t, "a", false), openClusterNode(t, "b", true)
	connectHosts(t, b, a)
	sender, recipient := a.Host(), b.Host()
	session := guest(t, b.Node, "session")
	sent, err := sender.Send(t.Context(), "b", "hello")
	if err != nil {
		t.Fatal(err)
	}
	ref := capabilities.FormID(sent.Message)
	await := func(until events.MessageState, how string) {
		t.Helper()
		o, err := sender.Mail().AwaitState(within(t), ref, until, false)
		if err != nil || o.Status != view.StatusOf(until) || o.Form != sent.Message || o.Note != how {
			t.Fatalf("until %s: %+v, %v", until, o, err)
		}
	}
	await(events.Delivered, "")
	found, all, err := recipient.Unoffered(t.Context(), session.id, 5)
	if err != nil || all != 1 || len(found) != 1 || found[0].Text != "hello" || found[0].State != events.Delivered {
		t.Fatalf("%d of %+v, %v", all, found, err)
	}
	numbers, err := recipient.Offer(t.Context(), mailbox.OfferMessages{Reader: session.id, Numbers: []uint64{found[0].Number}, Token: "t1", Moment: "Stop"})
	if err != nil || len(numbers) != 1 {
		t.Fatal(numbers, err)
	}
	await(events.Offered, "Stop")
	if offers, err := recipient.Offers(t.Context(), session.id); err != nil || len(offers) != 1 || offers[0].Token != "t1" || offers[0].At == 0 {
		t.Fatalf("%+v, %v", offers, err)
	}
	if err := recipient.Show(t.Context(), mailbox.ShowMessages{Reader: session.id, Token: "t1", Proof: "an assistant entry follows"}); err != nil {
		t.Fatal(err)
	}
	await(events.Shown, "an assistant entry follows")
	if err := recipient.Handle(t.Context(), mailbox.HandleMessages{Reader: session.id, Numbers: numbers, How: events.WasRead}); err != nil {
		t.Fatal(err)
	}
	await(events.Handled, "read")
	m, err := sender.Message(t.Context(), ref)
	if err != nil || m.State != events.Handled || len(m.Receipts) != 1 || m.Receipts[0].Known != view.KnownByNode || m.Receipts[0].Reader != session.id || m.Receipts[0].By != recipient.id {
		t.Errorf("%+v, %v", m, err)
	}
	m, err = recipient.Message(t.Context(), ref)
	if err != nil || len(m.Receipts) != 3 || m.Unread {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := sender.Mail().AwaitState(t.Context(), ref, "eaten", false); parley.CodeOf(err) != parley.InvalidArgument {
		t.Error(err)
	}
}

// TestStateOfRefusedMessage waits for a message that its recipient refuses, and for one that stays where it is.
func TestStateOfRefusedMessage(t *testing.T) {
	t.Parallel()
	a, b := openClusterNode(t, "a", false), openClusterNode(t, "b", true)
	connectHosts(t, b, a)
	sender, fae := a.Host(), guest(t, b.Node, "fae")
	if _, err := b.Host().Send(t.Context(), "a", "meet @fae"); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the reference arrives", func() bool { return len(numbersIn(t, sender, view.MessageFilter{})) == 1 })
	if err := sender.Adopt(t.Context(), capabilities.FormNumber(0), "fae", "fae"); err != nil {
		t.Fatal(err)
	}
	sent, err := sender.Send(t.Context(), "fae", "hello")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := sender.Mail().AwaitState(ctx, capabilities.FormID(sent.Message), events.Shown, false)
		ended <- err
	}()
	cancel()
	if err := <-ended; parley.CodeOf(err) != parley.Timeout {
		t.Errorf("a wait that is given up: %v", err)
	}
	if err := b.Host().Agents().Archive(t.Context(), fae); err != nil {
		t.Fatal(err)
	}
	lost, err := sender.Send(t.Context(), "fae", "hello?")
	if err != nil {
		t.Fatal(err)
	}
	o, err := sender.Mail().AwaitState(within(t), capabilities.FormID(lost.Message), events.Delivered, false)
	if err != nil || o.Status != view.StatusDeclined || o.Note == "" {
		t.Errorf("%+v, %v", o, err)
	}
}

// TestOverdueMessageIsKnownAfterDowntime sends messages that are to be acknowledged, over a restart in which their time comes.
func TestOverdueMessageIsKnownAfterDowntime(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	var skew atomic.Int64
	clock := func() time.Time { return time.Now().Add(time.Duration(skew.Load())) }
	n := openWith(t, Options{Folder: folder, Clock: clock})
	fae := guest(t, n, "fae")
	by := n.now().Add(time.Hour)
	for _, text := range []string{"first", "second", "third"} {
		if _, err := Post(t.Context(), n.Host(), mailbox.PostMessage{To: "fae", Post: parley.Post{Text: text, Header: parley.Header{AckBy: by}}}); err != nil {
			t.Fatal(err)
		}
	}
	eventually.Holds(t, "they arrive", func() bool { return len(numbersIn(t, fae, view.MessageFilter{})) == 3 })
	if err := fae.Mail().Acknowledge(t.Context(), capabilities.FormNumber(0)); err != nil {
		t.Fatal(err)
	}
	if _, err := fae.Reply(t.Context(), capabilities.FormNumber(1), "yes"); err != nil {
		t.Fatal(err)
	}
	if _, err := fae.Mail().MarkRead(t.Context(), []uint64{2}, false); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the sender knows", func() bool {
		acknowledged := 0
		for _, n := range numbersIn(t, n.Host(), view.MessageFilter{Sent: true}) {
			if m := messageOf(t, fae.node.Host(), n); m.Acknowledged {
				acknowledged++
			}
		}
		return acknowledged == 2
	})
	for _, who := range []*Agent{n.Host(), fae} {
		if late := numbersIn(t, who, view.MessageFilter{Overdue: true}); len(late) != 0 {
			t.Errorf("%v are overdue", late)
		}
	}
	closeNode(t, n)
	skew.Store(int64(2 * time.Hour))
	n = openWith(t, Options{Folder: folder, Clock: clock})
	fae, err := n.ActAs(t.Context(), "fae")
	if err != nil {
		t.Fatal(err)
	}
	for _, who := range []*Agent{n.Host(), fae} {
		late := numbersIn(t, who, view.MessageFilter{Overdue: true})
		if len(late) != 1 {
			t.Fatalf("%v are overdue", late)
		}
		if m := messageOf(t, who, late[0]); !m.Overdue || m.Acknowledged || m.AckBy != by || m.Text != "third" || m.Unread != (who == fae) {
			t.Errorf("%+v", m)
		}
	}
}

func messageOf(t *testing.T, a *Agent, number uint64) view.Message {
	t.Helper()
	m, err := a.Message(t.Context(), capabilities.FormNumber(number))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestPeerCannotForgeReceipts has a node report on messages that were not sent to its agents, as their recipient and as itself.
func TestPeerCannotForgeReceipts(t *testing.T) {
	t.Parallel()
	v := newHostileHarness(t)
	host := v.victim.Host()
	here, err := host.Send(t.Context(), "fae", "for an agent of this node")
	if err != nil {
		t.Fatal(err)
	}
	there, err := host.Send(t.Context(), "hostile", "for the other node")
	if err != nil {
		t.Fatal(err)
	}
	report := func(message, by, reader capabilities.ID, state events.MessageState) *events.ReceiptReported {
		return &events.ReceiptReported{Message: message, By: by, Reader: reader, State: state, How: "seen", Date: v.victim.now().Add(time.Hour)}
	}
	deliver := func(e *events.ReceiptReported) peers.Ack { return v.deliver(events.OutboxReceipt, host.id, e) }
	missing := capabilities.ID{ULID: v.newID().ULID, Node: v.victim.ID()}
	v.checkNoEvents(func() {
		v.wantRefused(deliver(report(here.Message, v.host, v.host, events.Shown)), "NOT_PERMITTED")
		v.wantRefused(deliver(report(here.Message, v.fae.id, v.fae.id, events.Shown)), "NOT_PERMITTED")
		v.wantRefused(deliver(report(there.Message, v.fae.id, v.fae.id, events.Shown)), "NOT_PERMITTED")
		v.wantRefused(deliver(report(there.Message, v.host, v.fae.id, events.Shown)), "NOT_PERMITTED")
		v.wantRefused(deliver(report(there.Message, v.host, v.host, "seen")), "INVALID_ARGUMENT")
		v.wantRefused(deliver(report(missing, v.host, v.host, events.Shown)), "NO_SUCH_MESSAGE")
	})
	v.wantAccepted(deliver(report(there.Message, v.host, v.host, events.Shown)))
	v.checkNoEvents(func() { v.wantAccepted(deliver(report(there.Message, v.host, v.host, events.Offered))) })
	m, err := host.Message(t.Context(), capabilities.FormID(there.Message))
	if err != nil || m.State != events.Shown || len(m.Receipts) != 1 || m.Receipts[0].Known != view.KnownByNode || m.Receipts[0].At > v.victim.now() {
		t.Errorf("%+v, %v", m, err)
	}
	if m, err := host.Message(t.Context(), capabilities.FormID(here.Message)); err != nil || len(m.Receipts) != 0 {
		t.Errorf("%+v, %v", m, err)
	}
	v.checkResponsive()
}
