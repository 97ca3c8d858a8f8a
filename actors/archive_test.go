package actors

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/internal/eventually"
	"parley/persistence/archive/store"
)

// postLong posts mail until the journal has one more file or two.
func postLong(tb testing.TB, n *Node, to string) {
	tb.Helper()
	text := strings.Repeat("a line of a long message\n", 5000)
	for i := range 50 {
		if _, err := n.Host().Send(tb.Context(), to, fmt.Sprint(i, text)); err != nil {
			tb.Fatal(err)
		}
	}
}

// archiveAll archives as much as can be.
func archiveAll(tb testing.TB, n *Node) view.Archive {
	tb.Helper()
	a, err := n.Archive(tb.Context(), n.now().Add(time.Hour))
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

// askedBefore are forms that were settled before an archiving.
type askedBefore map[string]view.Asked // by key

func settleForms(tb testing.TB, n *Node, g *Agent, forms int) askedBefore {
	tb.Helper()
	before := askedBefore{}
	for i := range forms {
		key := fmt.Sprint("key", i)
		asked := ask(tb, g, Ask{Key: key})
		if _, err := n.Host().Answer(tb.Context(), Answer{Form: capabilities.FormID(asked.Form), Values: text("a", key)}); err != nil {
			tb.Fatal(err)
		}
		before[key] = asked
	}
	return before
}

// check checks that the forms are as they were, and that their keys still name them.
func (before askedBefore) check(tb testing.TB, n *Node) {
	tb.Helper()
	g, err := n.ActAs(tb.Context(), "old")
	if err != nil {
		tb.Fatal(err)
	}
	for key, asked := range before {
		for _, a := range []*Agent{n.Host(), g} {
			m, err := a.Message(tb.Context(), capabilities.FormID(asked.Form))
			if err != nil || m.Outcome == nil || m.Outcome.Values.Text() != fmt.Sprintf(`{"a":%q}`, key) {
				tb.Errorf("the form of %s is %+v, %v", key, m, err)
			}
		}
		again := ask(tb, g, Ask{Key: key})
		if again.Form != asked.Form {
			tb.Errorf("the key %s is of form %s, was %s", key, again.Form, asked.Form)
		}
	}
	if _, err := n.Verify(tb.Context()); err != nil {
		tb.Errorf("verify: %v", err)
	}
}

func TestArchiveWhileCallersAskAndAnswer(t *testing.T) {
	folder := t.TempDir()
	n := openNode(t, folder)
	old := guest(t, n, "old")
	before := settleForms(t, n, old, 20)
	postLong(t, n, "old")

	const callers = 8
	var (
		calls  sync.WaitGroup
		cycles atomic.Int64
		ended  atomic.Bool
	)
	for i := range callers {
		g := guest(t, n, fmt.Sprint("guest", i))
		calls.Go(func() {
			for done := 0; done < 5 || !ended.Load(); done++ {
				if err := cycle(n.Host(), g); err != nil {
					t.Error(err)
					return
				}
				cycles.Add(1)
			}
		})
	}
	first := archiveAll(t, n)
	postLong(t, n, "old")
	second := archiveAll(t, n)
	ended.Store(true)
	calls.Wait()
	if first.New == 0 || second.New == 0 || second.Last <= first.Last || len(second.Segments) <= len(first.Segments) {
		t.Fatalf("archived %+v, then %+v", first, second)
	}
	check := func() {
		t.Helper()
		before.check(t, n)
		answered := 0
		for m, err := range n.Host().Mail().All(t.Context(), view.MessageFilter{All: true}) {
			if err != nil {
				t.Fatal(err)
			}
			if m.Outcome != nil && m.Outcome.Status == view.StatusAnswered {
				answered++
			}
		}
		if want := int(cycles.Load()) + len(before); answered != want {
			t.Errorf("%d forms are answered, want %d", answered, want)
		}
		if got := n.Archived(); got.Last != second.Last || got.Bytes != second.Bytes {
			t.Errorf("the archive is %+v, was %+v", got, second)
		}
		if s := n.State().Journal; s.Archived != second.Last || s.ArchiveBytes != uint64(second.Bytes) {
			t.Errorf("the state has %+v", s)
		}
	}
	check()
	closeNode(t, n)
	for _, lost := range []string{"", "index"} {
		if lost != "" {
			if err := os.Remove(filepath.Join(folder, lost)); err != nil {
				t.Fatal(err)
			}
		}
		n = openNode(t, folder)
		check()
		closeNode(t, n)
	}
}

func TestSegmentsMoveAwayAndBack(t *testing.T) {
	folder, elsewhere := t.TempDir(), t.TempDir()
	n := openNode(t, folder)
	before := settleForms(t, n, guest(t, n, "old"), 3)
	postLong(t, n, "old")
	a := archiveAll(t, n)
	to, err := store.Open(elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.MoveSegments(t.Context(), to, []uint64{a.Last + 1}); parley.CodeOf(err) != parley.InvalidArgument {
		t.Errorf("an unknown segment: %v", err)
	}
	moved, err := n.MoveSegments(t.Context(), to, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range moved.Segments {
		if s.Here {
			t.Errorf("segment %d is still here", s.First)
		}
	}
	closeNode(t, n)
	n = openNode(t, folder)
	var form capabilities.ID
	for _, asked := range before {
		form = asked.Form
	}
	if _, err := n.Host().Message(t.Context(), capabilities.FormID(form)); parley.CodeOf(err) != parley.Archived {
		t.Errorf("a form that is elsewhere: %v", err)
	}
	if err := cycle(n.Host(), guest(t, n, "new")); err != nil {
		t.Errorf("new mail: %v", err)
	}
	if _, err := n.Verify(t.Context()); err != nil {
		t.Errorf("verify without segments: %v", err)
	}
	copies, err := filepath.Glob(filepath.Join(elsewhere, "*", "*"))
	if err != nil || len(copies) != len(a.Segments) {
		t.Fatalf("copied %q, %v", copies, err)
	}
	whole, err := os.ReadFile(copies[0])
	if err != nil {
		t.Fatal(err)
	}
	damaged := append([]byte{}, whole...)
	damaged[len(damaged)/3] ^= 1
	for _, wrong := range [][]byte{damaged, whole[:len(whole)-1], append(whole[:len(whole):len(whole)], 0)} {
		if err := os.WriteFile(copies[0], wrong, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := n.FetchSegments(t.Context(), to, nil); err == nil || n.Archived().Segments[0].Here {
			t.Errorf("a damaged copy came back: %v", err)
		}
	}
	if err := os.WriteFile(copies[0], whole, 0o600); err != nil {
		t.Fatal(err)
	}
	back, err := n.FetchSegments(t.Context(), to, []uint64{1})
	if err != nil || !back.Segments[0].Here {
		t.Fatalf("brought back: %+v, %v", back, err)
	}
	if _, err := n.FetchSegments(t.Context(), to, nil); err != nil {
		t.Fatal(err)
	}
	before.check(t, n)
	if _, err := os.Stat(filepath.Join(folder, "archive", "fetched.tmp")); !os.IsNotExist(err) {
		t.Errorf("left: %v", err)
	}
}

func TestRetentionArchivesByItself(t *testing.T) {
	n, err := Open(t.Context(), Options{Folder: t.TempDir(), Retention: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer closeNode(t, n)
	before := settleForms(t, n, guest(t, n, "old"), 3)
	postLong(t, n, "old")
	postLong(t, n, "old")
	a := &archiver{node: n}
	a.keepRetention()
	if a.next.Before(time.Now()) {
		t.Error("it looks again at once")
	}
	eventually.Holds(t, "the journal is archived", func() bool { return n.Archived().Last > 0 })
	before.check(t, n)
}

// BenchmarkArchive archives the journal of a host with settled forms, FORMS of them or 10,000. It reports the journal's
// size after archiving in hundredths of its size before, and the bytes of the archive that a form takes.
func BenchmarkArchive(b *testing.B) {
	forms := 10_000
	if text := os.Getenv("FORMS"); text != "" {
		forms, _ = strconv.Atoi(text)
	}
	const callers = 64
	for range b.N {
		b.StopTimer()
		n := openNode(b, b.TempDir())
		guests := make([]*Agent, callers)
		for i := range guests {
			guests[i] = guest(b, n, fmt.Sprint("guest", i))
		}
		var asking sync.WaitGroup
		for i, g := range guests {
			asking.Go(func() {
				for f := i; f < forms; f += callers {
					if err := cycle(n.Host(), g); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		asking.Wait()
		before := n.State().Journal.Bytes
		b.StartTimer()
		start := time.Now()
		a := archiveAll(b, n)
		took := time.Since(start)
		b.StopTimer()
		after, events := n.State().Journal, n.journal.Stats().Events
		share := float64(a.Last) / float64(after.Commits)
		b.ReportMetric(100*float64(after.Bytes)/float64(before), "%-left")
		b.ReportMetric(float64(a.Bytes)/(float64(forms)*share), "segment-B/form")
		b.ReportMetric(float64(a.Checkpoint)/float64(forms), "state-B/form")
		b.ReportMetric(float64(events)/took.Seconds(), "events/s")
		closeNode(b, n)
	}
}
