package actors

import (
	"context"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/actors/peers"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
)

// TestAGrantWithoutItsParentHoldsUpNoOther has a guest of b give on what b's host gave it of a folder of a. Meanwhile a's host has revoked what
// b had, so what b's host gave is refused, and the home never learns of that from which the guest's grant derives. Mail from b to a goes on,
// and so do b's grants and revocations of another reference to the folder.
func TestAGrantWithoutItsParentHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	a, b := openClusterNode(t, "a", false), openClusterNode(t, "b", true)
	connectHosts(t, b, a)
	makeFolder(t, a.Host(), "notes")
	adoptReference(t, b.Host(), send(t, a.Host(), "b", "@notes").Message, "notes", "notes")
	adoptReference(t, b.Host(), send(t, a.Host(), "b", "@notes").Message, "notes", "kept")
	fae, bob := guest(t, b.Node, "fae"), guest(t, b.Node, "bob")
	grants, err := a.Host().Names().Grants(t.Context(), view.GrantFilter{})
	if err != nil {
		t.Fatal(err)
	}
	setMode(disconnected, b)
	awaitUnreachable(t, b, a)

	asked := requestNamed(t, fae, "HOST", "notes")
	resolve(t, b.Host(), asked.Form, "notes", capabilities.Facet{})
	needs := requestNamed(t, bob, "HOST", "notes")
	if err := b.Host().Forward(t.Context(), capabilities.FormID(needs.Form), "fae"); err != nil {
		t.Fatal(err)
	}
	resolve(t, fae, needs.Form, "notes", capabilities.Facet{})
	for _, g := range grants { // the first one that b was given
		if g.Kind == capabilities.KindFolder {
			if err := a.Host().Names().Revoke(t.Context(), g.ID); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	setMode(forwarding, b)

	awaitMessage(t, a.Host(), send(t, b.Host(), "a", "does this arrive?").Message)
	eventually.Holds(t, "nothing of the guest's is sent again and again", func() bool { return hasDelivered(t, fae) })
	if _, err := writeNotes(t, bob, "notes", "evil"); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("a use by what derives from a refused grant is refused with %v", err)
	}
	if _, err := writeNotes(t, b.Host(), "kept", "kept"); err != nil {
		t.Error("the reference that was not revoked:", err)
	}
}

func makeFolder(t *testing.T, host *Agent, name string) {
	t.Helper()
	made := events.ResourceMade{Kind: capabilities.KindFolder, Folder: t.TempDir()}
	if _, err := ResourcesOf(host).Make(t.Context(), NewResource{Name: name, Made: made}, false); err != nil {
		t.Fatal(err)
	}
}

// writeNotes writes a file of a folder that an agent holds.
func writeNotes(t *testing.T, a *Agent, name, path string) (view.Use, error) {
	t.Helper()
	u, err := ResourcesOf(a).Use(t.Context(), Used{Name: name, Verb: "write", Wait: eventually.Patience, Input: map[string]capabilities.Value{
		"path": capabilities.String(path), "content": capabilities.String("x"),
	}})
	if err == nil && u.Error != nil {
		err = u.Error
	}
	return u, err
}

// TestInventedParentsHoldUpNoMail has a hostile node say that a grant of a folder derives from one that nobody knows, and send a message behind
// it, in one window.
func TestInventedParentsHoldUpNoMail(t *testing.T) {
	t.Parallel()
	n := openVictim(t)
	m := newHostilePeer(t, n, "hostile")
	makeFolder(t, n.Host(), "notes")
	fae, folder := guest(t, n, "fae"), resourceNamed(t, n, "notes")
	via := m.receiveGrant("fae")
	grant := &events.CapabilityMinted{Grant: capabilities.Grant{ID: m.newID(), Parent: m.newID(), Target: folder, Kind: capabilities.KindFolder, By: m.host, To: m.newID(), Name: "notes"}}
	packet := func(number uint64, items ...peers.Item) []peers.Ack {
		return exchange[peers.AckPacket](m, peers.KindMail, peers.MailPacket{Epoch: 7, Number: number, Items: items}).Acks
	}
	packet(1, m.item(events.OutboxMint, m.host, folder, grant))
	m.wantAccepted(packet(2, m.item(events.OutboxCopy, m.host, fae.id, m.message(fae.id, via)))[0])
}

// TestManyUsesOfAHostAreNotLost has b's host use a folder of a more often at once than a receives packets of a node, while others wait for
// decisions.
func TestManyUsesOfAHostAreNotLost(t *testing.T) {
	t.Parallel()
	a, b := openClusterNode(t, "a", false), openClusterNode(t, "b", true)
	connectHosts(t, b, a)
	makeFolder(t, a.Host(), "notes")
	if err := a.Host().Names().Copy(t.Context(), "notes", "asked", capabilities.Facet{Ask: true}); err != nil {
		t.Fatal(err)
	}
	adoptReference(t, b.Host(), send(t, a.Host(), "b", "@notes").Message, "notes", "notes")
	adoptReference(t, b.Host(), send(t, a.Host(), "b", "@asked").Message, "asked", "asked")
	if _, err := writeNotes(t, b.Host(), "notes", "mine"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var waiting, all sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	for range usesOfHosts {
		waiting.Go(func() {
			_, _ = ResourcesOf(b.Host()).Use(ctx, Used{Name: "asked", Verb: "list", Wait: eventually.Patience})
		})
	}
	defer all.Wait()
	for range 16 {
		all.Go(func() {
			for i := range 4 {
				u, err := ResourcesOf(b.Host()).Use(ctx, Used{Name: "notes", Verb: "list", Wait: eventually.Patience})
				if err != nil || u.State != view.UseDone {
					t.Errorf("use %d: %+v %v", i, u, err)
					return
				}
			}
		})
	}
}

// TestWaitingUsesOfAGuestHoldUpNoOther has a guest of b keep as many uses waiting for a's decision as it can. Mail from b to a goes on, and so
// do uses of b's host.
func TestWaitingUsesOfAGuestHoldUpNoOther(t *testing.T) {
	t.Parallel()
	a, b := openClusterNode(t, "a", false), openClusterNode(t, "b", true)
	connectHosts(t, b, a)
	makeFolder(t, a.Host(), "notes")
	if err := a.Host().Names().Copy(t.Context(), "notes", "asked", capabilities.Facet{Ask: true}); err != nil {
		t.Fatal(err)
	}
	adoptReference(t, b.Host(), send(t, a.Host(), "b", "@notes").Message, "notes", "notes")
	adoptReference(t, b.Host(), send(t, a.Host(), "b", "@asked").Message, "asked", "asked")
	fae := guest(t, b.Node, "fae")
	resolve(t, b.Host(), requestNamed(t, fae, "HOST", "asked").Form, "asked", capabilities.Facet{})
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	for range 16 {
		all.Go(func() {
			for ctx.Err() == nil { // it may be refused at once
				_, _ = ResourcesOf(fae).Use(ctx, Used{Name: "asked", Verb: "list", Wait: eventually.Patience})
			}
		})
	}
	eventually.Holds(t, "uses of the guest wait", func() bool {
		in, err := a.Host().Mail().Inbox(t.Context(), view.MessageFilter{Pending: true})
		if err != nil {
			t.Fatal(err)
		}
		return len(in.Messages) >= usesElsewhereOfOne
	})
	began := time.Now()
	for i := range 20 {
		if _, err := writeNotes(t, b.Host(), "notes", "mine"); err != nil {
			t.Fatalf("use %d of another: %v", i, err)
		}
		awaitMessage(t, a.Host(), send(t, b.Host(), "a", "does this arrive?").Message)
	}
	if took := time.Since(began); took > longestUseWait {
		t.Errorf("20 uses and messages took %s", took)
	}
}
