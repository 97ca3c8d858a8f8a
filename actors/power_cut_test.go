package actors

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"parley"
	"parley/actors/keys"
	"parley/actors/view"
	"parley/capabilities"
	"parley/persistence"
	"parley/persistence/disktest"
)

// powerCuts is the number of power failures that TestPowerCutsOfANode makes of one run.
var powerCuts = flag.Int("cuts", 4, "power failures of TestPowerCutsOfANode")

// cutPromise is what a node acknowledged when so many operations of the disk had been done.
type cutPromise struct {
	at    int
	what  string
	check func(t *testing.T, n *Node, left string) error
}

// cutRun is a run of a node on a disk that records.
type cutRun struct {
	t    *testing.T
	disk *disktest.Disk
	id   capabilities.NodeID

	mu       sync.Mutex
	promised []cutPromise
}

func (p *cutRun) promise(what string, check func(t *testing.T, n *Node, left string) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.promised = append(p.promised, cutPromise{p.disk.Position(), what, check})
}

// unindexed has a node in a folder of the disk keep no index for searching. SQLite maps a file of it into memory, and a process
// that reads such memory of a disk that it serves itself can wait for ever: it may stop the process for collecting garbage at
// the same time. The file is a folder with something in it, which can be neither opened nor removed.
func unindexed(t *testing.T, d *disktest.Disk, folder string) {
	t.Helper()
	in := filepath.Join(d.Path(), folder, indexFile)
	err := os.MkdirAll(in, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(in, "none"), nil, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// guestOf returns an agent of a node that was opened again.
func guestOf(t *testing.T, n *Node, name string) (*Agent, error) {
	t.Helper()
	return n.ActAs(t.Context(), name)
}

// work has agents ask, answer, send, give and revoke at once, each call after the one before is acknowledged.
func (p *cutRun) work(n *Node, round int) {
	p.t.Helper()
	var all sync.WaitGroup
	for _, name := range []string{"fae", "bob"} {
		all.Go(func() {
			a, err := guestOf(p.t, n, name)
			if err != nil {
				p.t.Error(err)
				return
			}
			for i := range 3 {
				p.askAndAnswer(n, a, name, fmt.Sprintf("%s %d.%d", name, round, i))
			}
			p.giveAndRevoke(n, a, name)
		})
	}
	all.Wait()
}

func (p *cutRun) askAndAnswer(n *Node, a *Agent, name, key string) {
	asked, err := a.Ask(p.t.Context(), parley.Form{To: "HOST", Description: key, Fields: textField("a"), Key: key})
	if err != nil {
		p.t.Error(err)
		return
	}
	form := capabilities.FormID(asked.Form)
	p.promise("the form "+key, func(t *testing.T, n *Node, _ string) error {
		a, err := guestOf(t, n, name)
		if err != nil {
			return err
		}
		m, err := a.Message(t.Context(), form)
		if err == nil && m.Description != key {
			err = fmt.Errorf("it says %q", m.Description)
		}
		return err
	})
	if _, err := n.Host().Answer(p.t.Context(), form, parley.Answer{Values: text("a", key)}); err != nil {
		p.t.Error(err)
		return
	}
	p.promise("the answer "+key, func(t *testing.T, n *Node, _ string) error {
		a, err := guestOf(t, n, name)
		if err != nil {
			return err
		}
		o, err := a.Await(t.Context(), form)
		if values, _ := o.Values.AsRecord(); err == nil && (o.Status != view.StatusAnswered || values["a"].Text() != key) {
			err = fmt.Errorf("it is %s with %s", o.Status, o.Values.Text())
		}
		return err
	})
}

// giveAndRevoke has the host send an agent a reference to another, and revoke it.
func (p *cutRun) giveAndRevoke(n *Node, a *Agent, name string) {
	sent, err := n.Host().Send(p.t.Context(), name, "take @eve")
	if err != nil {
		p.t.Error(err)
		return
	}
	given := func(t *testing.T, n *Node) (view.Granted, error) {
		all, err := n.Host().Names().Grants(t.Context(), view.GrantFilter{})
		for _, g := range all {
			if g.Message == sent.Message {
				return g, nil
			}
		}
		return view.Granted{}, fmt.Errorf("no grant of %s: %w", sent.Message, err)
	}
	p.promise("the grant to "+name, func(t *testing.T, n *Node, _ string) error {
		_, err := given(t, n)
		return err
	})
	g, err := given(p.t, n)
	if err == nil {
		err = n.Host().Names().Revoke(p.t.Context(), g.ID)
	}
	if err != nil {
		p.t.Error(err)
		return
	}
	p.promise("the revocation of "+name+"'s", func(t *testing.T, n *Node, _ string) error {
		g, err := given(t, n)
		if err == nil && g.Revoked == 0 {
			err = fmt.Errorf("%s is valid", g.ID)
		}
		return err
	})
}

// backUp adds a part to a folder on the disk.
func (p *cutRun) backUp(n *Node) {
	p.t.Helper()
	part, err := persistence.AddPart(filepath.Join(p.disk.Path(), "backup"), p.id, func(after persistence.Mark, to io.Writer) error {
		return n.BackupAfter(p.t.Context(), after, to)
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.promise("the backup", func(_ *testing.T, _ *Node, left string) error {
		parts, err := persistence.Parts(filepath.Join(left, "backup"), p.id)
		if err == nil && (len(parts) == 0 || parts[len(parts)-1].Last.Number < part.Last.Number) {
			err = fmt.Errorf("it has %d parts, want up to commit %d", len(parts), part.Last.Number)
		}
		return err
	})
}

// run does what a node writes: its key, mail, snapshots of mailboxes, backups, an archive, and all of it again.
func (p *cutRun) run() {
	p.t.Helper()
	folder := filepath.Join(p.disk.Path(), "state")
	n := openWith(p.t, Options{Folder: folder})
	p.id = n.ID()
	for _, name := range []string{"fae", "bob", "eve"} {
		guest(p.t, n, name)
		p.promise(name, func(t *testing.T, n *Node, _ string) error { _, err := guestOf(t, n, name); return err })
	}
	p.work(n, 1)
	p.backUp(n)
	closeNode(p.t, n)
	n = openWith(p.t, Options{Folder: folder})
	postLong(p.t, n, "eve")
	p.work(n, 2)
	if a := archiveAll(p.t, n); len(a.Segments) == 0 {
		p.t.Fatal("nothing was archived")
	}
	p.work(n, 3)
	p.backUp(n)
	closeNode(p.t, n)
}

// check opens what a cut has left, twice, and checks that all is there that was acknowledged before it.
func (p *cutRun) check(t *testing.T, at int, left string) {
	t.Helper()
	folder := filepath.Join(left, "state")
	if err := keys.SecureFolder(folder); err != nil {
		t.Fatal(err)
	}
	promised := false
	for range 2 {
		n, err := Open(t.Context(), Options{Folder: folder})
		if err != nil {
			t.Fatalf("open: %v", err)
		}
		for _, q := range p.promised {
			if q.at > at {
				continue
			}
			promised = true
			if err := q.check(t, n, left); err != nil {
				t.Errorf("%s was acknowledged at %d: %v", q.what, q.at, err)
			}
		}
		if promised && n.ID() != p.id {
			t.Error("it is another node")
		}
		if _, err := n.Verify(t.Context()); err != nil {
			t.Errorf("verify: %v", err)
		}
		if _, err := n.Host().Ask(t.Context(), parley.Form{To: "@self", Description: "and now?", Fields: textField("a")}); err != nil {
			t.Errorf("ask: %v", err)
		}
		closeNode(t, n)
	}
}

// TestPowerCutsOfANode runs a node on a disk that records each operation. Each disk that a power failure may leave opens as
// the same node, which has all that it had acknowledged.
func TestPowerCutsOfANode(t *testing.T) {
	t.Parallel()
	p := &cutRun{t: t, disk: disktest.Mount(t)}
	p.disk.Record()
	unindexed(t, p.disk, "state")
	p.run()
	if t.Failed() {
		return
	}
	record := p.disk.Recorded()
	for n := range *powerCuts {
		random := rand.New(rand.NewPCG(17, uint64(n)))
		at := random.IntN(record.Len() + 1)
		left := filepath.Join(t.TempDir(), "cut")
		how, err := record.Cut(at, random, left)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(fmt.Sprint("cut ", n, ", ", how), func(t *testing.T) { p.check(t, at, left) })
		if err := os.RemoveAll(left); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d cuts of %d operations, %d acknowledgements", *powerCuts, record.Len(), len(p.promised))
}

// TestNodeSurvivesReadAndRenameErrors has a disk refuse reads, or renames, while a node closes, opens, works and makes a
// backup. What was acknowledged is there when the disk works again.
func TestNodeSurvivesReadAndRenameErrors(t *testing.T) {
	t.Parallel()
	p := &cutRun{t: t, disk: disktest.Mount(t)}
	p.disk.Record()
	unindexed(t, p.disk, "state")
	o := Options{Folder: filepath.Join(p.disk.Path(), "state")}
	n, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	p.id = n.ID()
	for _, name := range []string{"fae", "bob", "eve"} {
		guest(t, n, name)
	}
	round := 0
	for name, hook := range map[string]func(func(string) error){"reads": p.disk.OnRead, "renames": p.disk.OnRename} {
		failed := 0
		for _, share := range []float64{1, 0.5, 0.1} {
			p.work(n, round)
			round++
			var mu sync.Mutex
			random := rand.New(rand.NewPCG(19, uint64(round)))
			hook(func(string) error {
				mu.Lock()
				defer mu.Unlock()
				if random.Float64() >= share {
					return nil
				}
				failed++
				return syscall.EIO
			})
			_ = n.Close(context.Background()) // what could not be written is derived
			if again, err := Open(t.Context(), o); err == nil {
				_ = again.Backup(t.Context(), io.Discard) // it may fail
				_ = again.Close(context.Background())
			}
			hook(nil)
			if n, err = Open(t.Context(), o); err != nil {
				t.Fatalf("after %s that failed: %v", name, err)
			}
			p.checkAll(n)
		}
		if failed == 0 {
			t.Errorf("no %s failed", name)
		}
	}
	closeNode(t, n)
}

// checkAll checks a node for all that was acknowledged.
func (p *cutRun) checkAll(n *Node) {
	p.t.Helper()
	if n.ID() != p.id {
		p.t.Error("it is another node")
	}
	for _, q := range p.promised {
		if err := q.check(p.t, n, ""); err != nil {
			p.t.Errorf("%s: %v", q.what, err)
		}
	}
	if _, err := n.Verify(p.t.Context()); err != nil {
		p.t.Errorf("verify: %v", err)
	}
}
