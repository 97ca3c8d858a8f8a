package actors

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/actors/peers"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
)

// writtenItems returns the outbox items of a mailbox for a node, encoded as in packets. It sends nothing.
func writtenItems(tb testing.TB, from *Agent, to *clusterNode) []peers.Item {
	tb.Helper()
	all, err := inspect(tb.Context(), from, func(b *mailboxActor) ([]peers.Item, error) {
		var all []peers.Item
		for _, p := range b.state.Outbox.Items() {
			if p.To.Node != to.id {
				continue
			}
			o, err := writeItem(b, p)
			if err != nil {
				return nil, err
			}
			all = append(all, o.Written)
		}
		return all, nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return all
}

// deliverItems delivers a packet from one node to another without the transport.
func deliverItems(tb testing.TB, from, to *clusterNode, items ...peers.Item) []peers.Ack {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	acks := to.peers.Peer(from.id).AcceptMail(ctx, peers.MailPacket{Items: items})
	if len(acks) != len(items) {
		tb.Fatalf("no acks: %+v", acks)
	}
	return acks
}

// redeliver delivers items again: in order, in reverse, and each on its own. It checks that all are accepted and that no
// mailbox changes.
func redeliver(tb testing.TB, from, to *clusterNode, items []peers.Item, agents ...*Agent) {
	tb.Helper()
	before := mailboxVersions(tb, agents)
	backwards := slices.Clone(items)
	slices.Reverse(backwards)
	acks := append(deliverItems(tb, from, to, items...), deliverItems(tb, from, to, backwards...)...)
	for _, p := range backwards {
		acks = append(acks, deliverItems(tb, from, to, p)...)
	}
	for _, r := range acks {
		if r.Status != peers.AckAccepted {
			tb.Errorf("redelivered: %+v", r)
		}
	}
	if after := mailboxVersions(tb, agents); !slices.Equal(before, after) {
		tb.Errorf("after redelivery, mailboxes changed from %v to %v", before, after)
		for i, a := range agents {
			if l, err := a.Log(tb.Context(), before[i], 10); err != nil || len(l.Entries) > 0 {
				tb.Logf("%s: %+v, %v", a.ID(), l.Entries, err)
			}
		}
	}
}

func mailboxVersions(tb testing.TB, agents []*Agent) []uint64 {
	tb.Helper()
	all := make([]uint64, len(agents))
	for i, a := range agents {
		v, err := inspect(tb.Context(), a, func(b *mailboxActor) (uint64, error) { return b.state.Version, nil })
		if err != nil {
			tb.Fatal(err)
		}
		all[i] = v
	}
	return all
}

// TestRedeliveredMailChangesNothing delivers all items of two disconnected nodes by hand, and delivers them again after
// every further step.
func TestRedeliveredMailChangesNothing(t *testing.T) {
	t.Parallel()
	a, b := openClusterNode(t, "a", false), openClusterNode(t, "b", true)
	connectHosts(t, b, a)
	b.proxy.setMode(disconnected)
	awaitUnreachable(t, a, b)
	fae := guest(t, a.Node, "fae")
	var asked []view.Asked
	for range 3 {
		asked = append(asked, ask(t, a.Host(), parley.Form{To: "b"}))
	}
	granting := send(t, a.Host(), "b", "take @fae")
	mail := writtenItems(t, a.Host(), b)
	if len(mail) != 4 {
		t.Fatalf("%d items", len(mail))
	}
	deliverItems(t, a, b, mail...)
	adoptReference(t, b.Host(), granting.Message, "fae", "fae")
	redeliver(t, a, b, mail, b.Host())

	if o, err := answerWith(b.Host(), asked[0].Form, "mine"); err != nil || o.Status != view.StatusAnswering {
		t.Fatalf("%+v, %v", o, err)
	}
	if o, err := b.Host().Decline(t.Context(), capabilities.FormID(asked[1].Form), 0, "no"); err != nil || o.Status != view.StatusAnswering {
		t.Fatalf("%+v, %v", o, err)
	}
	answers := writtenItems(t, b.Host(), a)
	deliverItems(t, b, a, answers...)
	redeliver(t, b, a, answers, a.Host())
	redeliver(t, a, b, mail, b.Host())

	if _, err := a.Host().Cancel(t.Context(), capabilities.FormID(asked[2].Form), ""); err != nil {
		t.Fatal(err)
	}
	revoke(t, a.Host(), fae)
	outcomes := writtenItems(t, a.Host(), b)
	deliverItems(t, a, b, outcomes...)
	for i, status := range []view.FormStatus{view.StatusAnswered, view.StatusDeclined, view.StatusCancelled} {
		awaitSameOutcome(t, asked[i].Form, status, a.Host(), b.Host())
	}
	if _, err := b.Host().Send(t.Context(), "fae", "still there?"); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("a revoked grant is used: %v", err)
	}
	redeliver(t, a, b, outcomes, b.Host())
	redeliver(t, a, b, mail, b.Host())
	redeliver(t, b, a, answers, a.Host())

	b.proxy.setMode(forwarding)
	eventually.Holds(t, "all items are delivered", func() bool { return hasDelivered(t, a.Host()) && hasDelivered(t, b.Host()) })
	redeliver(t, a, b, append(mail, outcomes...), b.Host())
	redeliver(t, b, a, answers, a.Host())
	if in, err := b.Host().Mail().Inbox(t.Context(), view.MessageFilter{}); err != nil || len(in.Messages) != 4 {
		t.Errorf("%d messages, %v", len(in.Messages), err)
	}
}

// TestRedeliveredForwardsAndGrantsChangeNothing redelivers the items of three nodes: a minted grant, a forward, the copy
// that follows, and the revocation, which takes the form back.
func TestRedeliveredForwardsAndGrantsChangeNothing(t *testing.T) {
	t.Parallel()
	a, b, c := openThreeNodes(t)
	fae := guest(t, c.Node, "fae")
	adoptReference(t, b.Host(), send(t, c.Host(), "b", "@fae").Message, "fae", "fae")
	asked := ask(t, a.Host(), parley.Form{To: "b"})
	awaitMessage(t, b.Host(), asked.Form)
	eventually.Holds(t, "all items are delivered, and their acks recorded", func() bool {
		return hasDelivered(t, a.Host()) && hasDelivered(t, b.Host()) && hasDelivered(t, c.Host())
	})
	for _, s := range []*clusterNode{b, c} {
		s.proxy.setMode(disconnected)
	}
	awaitUnreachable(t, b, a)
	awaitUnreachable(t, b, c)
	awaitUnreachable(t, a, c)
	if err := b.Host().Forward(t.Context(), capabilities.FormID(asked.Form), "fae"); err != nil {
		t.Fatal(err)
	}
	mint, forward := writtenItems(t, b.Host(), c), writtenItems(t, b.Host(), a)
	if len(mint) != 1 || mint[0].Kind != events.OutboxMint || len(forward) != 1 || forward[0].Kind != events.OutboxForward {
		t.Fatalf("%+v, %+v", mint, forward)
	}
	deliverItems(t, b, c, mint...)
	redeliver(t, b, c, mint, fae)
	deliverItems(t, b, a, forward...)
	redeliver(t, b, a, forward, a.Host())
	copies := writtenItems(t, a.Host(), c)
	if r := deliverItems(t, a, c, copies...); r[0].Status != peers.AckAccepted {
		t.Fatalf("%+v", r)
	}
	redeliver(t, a, c, copies, fae)
	revoke(t, b.Host(), fae)
	revocation := writtenItems(t, b.Host(), c)
	deliverItems(t, b, c, revocation...)
	redeliver(t, b, c, append(mint, revocation...), fae, c.Host())
	taken := writtenItems(t, b.Host(), a)
	deliverItems(t, b, a, taken...)
	redeliver(t, b, a, append(taken, forward...), a.Host())
	redeliver(t, a, c, copies, fae)
	if o, err := answerWith(fae, asked.Form, "all the same"); err != nil || o.Status != view.StatusAnswering {
		t.Fatalf("%+v, %v", o, err)
	}
	for _, s := range []*clusterNode{b, c} {
		s.proxy.setMode(forwarding)
	}
	eventually.Holds(t, "the answer is refused", func() bool {
		e, err := fae.Message(t.Context(), capabilities.FormID(asked.Form))
		return err == nil && strings.Contains(e.Refused, "taken back")
	})
	if _, err := answerWith(b.Host(), asked.Form, "my own"); err != nil {
		t.Fatal(err)
	}
	awaitSameOutcome(t, asked.Form, view.StatusAnswered, a.Host(), b.Host(), fae)
	eventually.Holds(t, "all items are delivered", func() bool { return hasDelivered(t, a.Host()) && hasDelivered(t, b.Host()) && hasDelivered(t, fae) })
	redeliver(t, b, a, forward, a.Host())
	e, err := b.Host().Message(t.Context(), capabilities.FormID(asked.Form))
	if err != nil || e.Refused != "" || len(e.ForwardedTo) != 1 {
		t.Errorf("the forwarder's copy: refused %q, forwarded to %v, %v", e.Refused, e.ForwardedTo, err)
	}
}

// TestForwardWithLostAckReachesItsHolder loses the ack of b's forward, which a has recorded, while c, the form's next
// holder, is closed.
func TestForwardWithLostAckReachesItsHolder(t *testing.T) {
	t.Parallel()
	a, b, c := openThreeNodes(t)
	asked := ask(t, a.Host(), parley.Form{To: "b"})
	awaitMessage(t, b.Host(), asked.Form)
	eventually.Holds(t, "all items of b are delivered", func() bool { return hasDelivered(t, b.Host()) })
	b.proxy.setMode(disconnected)
	awaitUnreachable(t, b, a)
	if err := b.Host().Forward(t.Context(), capabilities.FormID(asked.Form), "c"); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "c knows the grant", func() bool { return len(writtenItems(t, b.Host(), c)) == 0 })
	forward := writtenItems(t, b.Host(), a)
	closeNode(t, c.Node)
	if r := deliverItems(t, b, a, forward...); r[0].Status != peers.AckAccepted {
		t.Fatalf("%+v", r)
	}
	b.proxy.setMode(forwarding)
	eventually.Holds(t, "b has the ack", func() bool { return len(writtenItems(t, b.Host(), a)) == 0 })
	c.open(t)
	end := time.Now().Add(15 * time.Second)
	eventually.Holds(t, "all items of a are delivered", func() bool { return hasDelivered(t, a.Host()) || time.Now().After(end) })
	e, err := b.Host().Message(t.Context(), capabilities.FormID(asked.Form))
	if err != nil || e.Refused != "" {
		t.Errorf("the forward was refused: %q, %v", e.Refused, err)
	}
	if _, err := c.Host().Message(t.Context(), capabilities.FormID(asked.Form)); err != nil {
		t.Errorf("c never gets the form: %v", err)
	}
}

// hasDelivered reports whether a mailbox's outbox is empty.
func hasDelivered(tb testing.TB, a *Agent) bool {
	tb.Helper()
	waiting, err := inspect(tb.Context(), a, func(b *mailboxActor) (int, error) {
		b.recordAcks()
		return len(b.state.Outbox.Items()), nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return waiting == 0
}

// revoke revokes all grants of an agent for a target.
func revoke(tb testing.TB, by, target *Agent) {
	tb.Helper()
	grants, err := by.Names().Grants(tb.Context(), view.GrantFilter{})
	if err != nil {
		tb.Fatal(err)
	}
	revoked := []capabilities.ID{}
	for _, g := range grants {
		if g.Target != target.id || g.Revoked != 0 {
			continue
		}
		if err := by.Names().Revoke(tb.Context(), g.ID); err != nil {
			tb.Fatal(err)
		}
		revoked = append(revoked, g.ID)
	}
	if len(revoked) == 0 {
		tb.Fatalf("there is no grant for %s", target.id)
	}
}
