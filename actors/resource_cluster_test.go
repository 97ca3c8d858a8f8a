package actors

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
)

// readNotes reads a file of a folder that an agent holds.
func readNotes(t *testing.T, a *Agent, name, path, key string) (view.Use, error) {
	t.Helper()
	u, err := ResourcesOf(a).Use(t.Context(), Used{Name: name, Verb: "read", Key: key, Input: map[string]capabilities.Value{"path": capabilities.String(path)}, Wait: eventually.Patience})
	if err == nil && u.Error != nil {
		err = u.Error
	}
	return u, err
}

// openNotes makes a folder on node a, gives some of it to the host of b, and has that give less of it to c.
func openNotes(t *testing.T, given, less capabilities.Facet) (a, b, c *clusterNode) {
	t.Helper()
	a, b, c = openThreeNodes(t)
	dir := t.TempDir()
	for _, name := range []string{"docs/a", "other"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("hello"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ResourcesOf(a.Host()).Make(t.Context(), NewResource{Name: "all", Made: events.ResourceMade{Kind: capabilities.KindFolder, Folder: dir}}, false); err != nil {
		t.Fatal(err)
	}
	if err := a.Host().Names().Copy(t.Context(), "all", "notes", given); err != nil {
		t.Fatal(err)
	}
	adoptReference(t, b.Host(), send(t, a.Host(), "b", "@notes").Message, "notes", "notes")
	if err := b.Host().Names().Copy(t.Context(), "notes", "less", less); err != nil {
		t.Fatal(err)
	}
	adoptReference(t, c.Host(), send(t, b.Host(), "c", "@less").Message, "less", "notes")
	return a, b, c
}

// TestResourcesAreUsedAcrossNodes has a third node use what the second was given by the first, which decides on each use.
func TestResourcesAreUsedAcrossNodes(t *testing.T) {
	t.Parallel()
	a, b, c := openNotes(t, capabilities.Facet{Uses: 3}, capabilities.Facet{Below: "docs"})
	u, err := readNotes(t, c.Host(), "notes", "docs/a", "k")
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := u.Result.AsRecord(); got["text"].Text() != "hello" {
		t.Errorf("it read %v", u.Result)
	}
	again, err := readNotes(t, c.Host(), "notes", "docs/a", "k")
	if err != nil || again.Use != u.Use {
		t.Errorf("the same key is the use %s (%v), not %s", again.Use, err, u.Use)
	}
	if _, err := readNotes(t, c.Host(), "notes", "other", ""); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("what is not below docs is refused with %v", err)
	}
	for _, user := range []*Agent{b.Host(), c.Host()} {
		if _, err := readNotes(t, user, "notes", "docs/a", ""); err != nil {
			t.Fatal(err)
		}
	}
	for _, user := range []*Agent{b.Host(), c.Host()} {
		if _, err := readNotes(t, user, "notes", "docs/a", ""); parley.CodeOf(err) != parley.NotPermitted {
			t.Errorf("a fourth use of three is refused with %v", err)
		}
	}
	if _, err := readNotes(t, a.Host(), "all", "docs/a", ""); err != nil {
		t.Error("the host's own use:", err)
	}
}

// TestNoUseAfterARevokeOnAnotherNode has the second node revoke what the third uses, at the first.
func TestNoUseAfterARevokeOnAnotherNode(t *testing.T) {
	t.Parallel()
	_, b, c := openNotes(t, capabilities.Facet{}, capabilities.Facet{})
	if _, err := readNotes(t, c.Host(), "notes", "docs/a", ""); err != nil {
		t.Fatal(err)
	}
	grants, err := b.Host().Names().Grants(t.Context(), view.GrantFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range grants {
		if g.Kind == capabilities.KindFolder {
			if err := b.Host().Names().Revoke(t.Context(), g.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := readNotes(t, c.Host(), "notes", "docs/a", ""); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("a use after the revocation is refused with %v", err)
	}
	if _, err := readNotes(t, b.Host(), "notes", "docs/a", ""); err != nil {
		t.Error("the giver's own reference ended with it:", err)
	}
}

// TestARevocationThatItsHomeDoesNotKnowIsNoneYet revokes while the home cannot be reached.
func TestARevocationThatItsHomeDoesNotKnowIsNoneYet(t *testing.T) {
	t.Parallel()
	a, b, _ := openNotes(t, capabilities.Facet{}, capabilities.Facet{})
	grants, err := b.Host().Names().Grants(t.Context(), view.GrantFilter{})
	if err != nil {
		t.Fatal(err)
	}
	closeNode(t, a.Node)
	for _, g := range grants {
		if g.Kind != capabilities.KindFolder {
			continue
		}
		if err := b.Host().Names().Revoke(t.Context(), g.ID); parley.CodeOf(err) != parley.NodeUnreachable {
			t.Errorf("the revocation returns %v", err)
		}
	}
}

// TestTheGiverDecidesOnEachUseOfAnotherNode has the first node's host be asked about the uses of the third.
func TestTheGiverDecidesOnEachUseOfAnotherNode(t *testing.T) {
	t.Parallel()
	a, _, c := openNotes(t, capabilities.Facet{Ask: true, Uses: 1}, capabilities.Facet{})
	for _, decision := range []string{"deny", "once"} {
		type got struct {
			use view.Use
			err error
		}
		done := make(chan got, 1)
		go func() {
			u, err := readNotes(t, c.Host(), "notes", "docs/a", "")
			done <- got{u, err}
		}()
		var asked view.Message
		eventually.Holds(t, "the host is asked", func() bool {
			in, err := a.Host().Mail().Inbox(t.Context(), view.MessageFilter{Pending: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range in.Messages {
				if m.Type == "approval" {
					asked = m
					return true
				}
			}
			return false
		})
		select {
		case g := <-done:
			t.Fatalf("the use went out before it was decided on: %+v", g)
		case <-time.After(10 * time.Millisecond): // it does not go out later either: see below
		}
		if _, err := a.Host().Answer(t.Context(), capabilities.FormNumber(asked.Number), parley.Answer{Values: map[string]capabilities.Value{"decision": capabilities.String(decision)}}); err != nil {
			t.Fatal(err)
		}
		g := <-done
		if decision == "once" && g.err != nil || decision == "deny" && parley.CodeOf(g.err) != parley.Declined {
			t.Errorf("after %s the use is %s: %v", decision, g.use.State, g.err)
		}
	}
	if _, err := readNotes(t, c.Host(), "notes", "docs/a", ""); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("a second use of one is refused with %v", err)
	}
}

// TestUsesAreCountedOnceForAllNodes has two nodes use at once what one grant gives to both: as often as that says, and no more.
func TestUsesAreCountedOnceForAllNodes(t *testing.T) {
	t.Parallel()
	_, b, c := openNotes(t, capabilities.Facet{Uses: 3}, capabilities.Facet{})
	var done atomic.Int32
	var all sync.WaitGroup
	for range 6 {
		for _, user := range []*Agent{b.Host(), c.Host()} {
			all.Go(func() {
				switch _, err := readNotes(t, user, "notes", "docs/a", ""); parley.CodeOf(err) {
				case "":
					done.Add(1)
				case parley.NotPermitted:
				default:
					t.Error(err)
				}
			})
		}
	}
	if all.Wait(); done.Load() != 3 {
		t.Errorf("of 3 uses %d were done", done.Load())
	}
}

// TestARevocationGoesOnAfterACut revokes while the home cannot be reached, and starts the giver's node anew: once the link is back the home
// learns of it without another command, and permits no use after that.
func TestARevocationGoesOnAfterACut(t *testing.T) {
	t.Parallel()
	a, b, c := openNotes(t, capabilities.Facet{}, capabilities.Facet{})
	grants, err := b.Host().Names().Grants(t.Context(), view.GrantFilter{})
	if err != nil {
		t.Fatal(err)
	}
	b.proxy.setMode(disconnected)
	awaitUnreachable(t, b, a)
	for _, g := range grants {
		if g.Kind != capabilities.KindFolder {
			continue
		}
		if err := b.Host().Names().Revoke(t.Context(), g.ID); parley.CodeOf(err) != parley.NodeUnreachable {
			t.Errorf("the revocation returns %v", err)
		}
	}
	closeNode(t, b.Node)
	b.proxy.setMode(forwarding)
	b.open(t)
	eventually.Holds(t, "the home permits no use", func() bool {
		_, err := readNotes(t, c.Host(), "notes", "docs/a", "")
		return parley.CodeOf(err) == parley.NotPermitted
	})
	eventually.Holds(t, "the giver's own reference is good", func() bool {
		_, err := readNotes(t, b.Host(), "notes", "docs/a", "")
		return err == nil
	})
}
