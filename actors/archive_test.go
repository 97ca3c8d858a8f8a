package actors

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
	"parley/persistence"
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
	a, err := n.Archive().MoveBefore(tb.Context(), n.now().Add(time.Hour))
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
		asked := ask(tb, g, parley.Form{Key: key})
		if _, err := n.Host().Answer(tb.Context(), capabilities.FormID(asked.Form), parley.Answer{Values: text("a", key)}); err != nil {
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
		again := ask(tb, g, parley.Form{Key: key})
		if again.Form != asked.Form {
			tb.Errorf("the key %s is of form %s, was %s", key, again.Form, asked.Form)
		}
	}
	if _, err := n.Verify(tb.Context()); err != nil {
		tb.Errorf("verify: %v", err)
	}
}

func TestArchiveWhileCallersAskAndAnswer(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	n := openNode(t, folder)
	old := guest(t, n, "old")
	before := settleForms(t, n, old, 20)
	postLong(t, n, "old")

	const (
		callers = 4
		most    = 50 // cycles of a caller: reading them back costs more than archiving
	)
	var (
		calls  sync.WaitGroup
		cycles atomic.Int64
		ended  atomic.Bool
	)
	for i := range callers {
		g := guest(t, n, fmt.Sprint("guest", i))
		calls.Go(func() {
			for done := 0; done < 5 || done < most && !ended.Load(); done++ {
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
		if got := n.Archive().List(); got.Last != second.Last || got.Bytes != second.Bytes {
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
	t.Parallel()
	folder, elsewhere := t.TempDir(), t.TempDir()
	n := openNode(t, folder)
	before := settleForms(t, n, guest(t, n, "old"), 3)
	postLong(t, n, "old")
	a := archiveAll(t, n)
	to, err := store.Open(elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Archive().Move(t.Context(), to, []uint64{a.Last + 1}); parley.CodeOf(err) != parley.InvalidArgument {
		t.Errorf("an unknown segment: %v", err)
	}
	moved, err := n.Archive().Move(t.Context(), to, nil)
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
	checkListsElsewhere(t, n.Host(), elsewhere, uint64(len(before)))
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
		if _, err := n.Archive().Fetch(t.Context(), to, nil); err == nil || n.Archive().List().Segments[0].Here {
			t.Errorf("a damaged copy came back: %v", err)
		}
	}
	if err := os.WriteFile(copies[0], whole, 0o600); err != nil {
		t.Fatal(err)
	}
	back, err := n.Archive().Fetch(t.Context(), to, []uint64{1})
	if err != nil || !back.Segments[0].Here {
		t.Fatalf("brought back: %+v, %v", back, err)
	}
	if _, err := n.Archive().Fetch(t.Context(), nil, nil); err != nil { // from where they were moved to
		t.Fatal(err)
	}
	before.check(t, n)
	if l, err := n.Host().Log(t.Context(), 0, 1<<20); err != nil || len(l.Missing) > 0 || l.Archived == 0 || l.Entries[0].Version != 1 {
		t.Errorf("the log has %d events and lacks %+v, %v", len(l.Entries), l.Missing, err)
	}
	if _, err := os.Stat(filepath.Join(folder, "archive", "fetched.tmp")); !os.IsNotExist(err) {
		t.Errorf("left: %v", err)
	}
}

// checkListsElsewhere checks that lists and the log of an agent go on past what is elsewhere, and name it. The first
// messages are forms.
func checkListsElsewhere(t *testing.T, a *Agent, place string, forms uint64) {
	t.Helper()
	all := view.MessageFilter{All: true}
	in, err := a.Mail().Inbox(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	archived := 0
	for i, m := range in.Messages {
		if m.Number != uint64(i) {
			t.Errorf("message %d has number %d", i, m.Number)
		}
		if e := m.Archived; e != nil {
			archived++
			isForm := m.Number < forms
			if m.Type != view.TypeArchived || e.Form != isForm || m.Received != isForm || m.Changed == 0 || e.Segment == 0 ||
				e.Place != place || !strings.Contains(e.Hint, place) || m.Date == 0 || m.AnswerNeeded || m.Outcome != nil {
				t.Errorf("message %d is %+v", m.Number, m)
			}
		}
	}
	if archived == 0 || archived == len(in.Messages) || in.Messages[0].Archived == nil || in.Messages[len(in.Messages)-1].Archived != nil {
		t.Errorf("%d of %d messages are elsewhere", archived, len(in.Messages))
	}
	for name, list := range map[string]func() (view.Inbox, error){
		"a page":     func() (view.Inbox, error) { return a.Mail().Page(t.Context(), all, 0, 1<<20) },
		"the last":   func() (view.Inbox, error) { return a.Mail().Last(t.Context(), all, 0, 1<<20) },
		"of changes": func() (view.Inbox, error) { return a.Mail().Since(t.Context(), all, 0) },
	} {
		got, err := list()
		if err != nil || len(got.Messages) == 0 {
			t.Errorf("the list %s has %d messages, %v", name, len(got.Messages), err)
		}
	}
	for _, limit := range []int{1, 3, 1 << 20} {
		next, seen := uint64(1), 0
		for after := uint64(0); ; {
			l, err := a.Log(t.Context(), after, limit)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range l.Missing {
				if m.First != next || m.Last < m.First || m.Segment == 0 || m.Place != place {
					t.Fatalf("version %d is missing in %+v", next, m)
				}
				next = m.Last + 1
			}
			for _, e := range l.Entries {
				if e.Version != next {
					t.Fatalf("version %d is where %d should be", e.Version, next)
				}
				after, next, seen = e.Version, next+1, seen+1
			}
			if len(l.Entries) < limit {
				break
			}
		}
		if end, err := a.Version(t.Context()); seen == 0 || err != nil || next != end+1 {
			t.Errorf("the log ends at %d after %d events, and the mailbox at %d, %v", next-1, seen, end, err)
		}
	}
}

func TestRetentionArchivesByItself(t *testing.T) {
	t.Parallel()
	n, err := Open(t.Context(), Options{Folder: t.TempDir(), Retention: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer closeNode(t, n)
	before := settleForms(t, n, guest(t, n, "old"), 3)
	postLong(t, n, "old")
	postLong(t, n, "old")
	a := &Archive{node: n}
	a.keepRetention()
	if a.next.Before(time.Now()) {
		t.Error("it looks again at once")
	}
	eventually.Holds(t, "the journal is archived", func() bool { return n.Archive().List().Last > 0 })
	before.check(t, n)
}

// BenchmarkArchive archives the journal of a host with settled forms, FORMS of them or 10,000. It reports the journal's
// size after archiving in hundredths of its size before, and the bytes of the archive that a form takes. Then it starts the
// node twice, and visits the host.
func BenchmarkArchive(b *testing.B) {
	forms := 10_000
	if text := os.Getenv("FORMS"); text != "" {
		forms, _ = strconv.Atoi(text)
	}
	const callers = 64
	for range b.N {
		b.StopTimer()
		folder := b.TempDir()
		n := openNode(b, folder)
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
		clear(guests) // they hold the node
		for _, when := range []string{"", "-again"} {
			report := func(name string, fn func() error) {
				b.ReportMetric(float64(measure(b, fn).Microseconds())/1000, name+when)
			}
			report("open-ms", func() (err error) {
				n, err = Open(b.Context(), Options{Folder: folder})
				return err
			})
			report("visit-ms", func() error {
				_, err := n.Host().Version(b.Context())
				return err
			})
			b.ReportMetric(float64(liveHeap())/(1<<20), "live-MiB"+when)
			if profile := os.Getenv("ARCHIVE_PROFILE"); profile != "" {
				writeHeap(b, profile+when)
			}
			g, err := n.ActAs(b.Context(), "guest0")
			if err == nil {
				err = cycle(n.Host(), g)
			}
			if err != nil {
				b.Fatal(err)
			}
			closeNode(b, n)
		}
	}
}

// TestStateForACheckpointIsTheSameInRounds folds the events of mailboxes at once, and in rounds that begin with the state
// of the one before, as archivings do.
func TestStateForACheckpointIsTheSameInRounds(t *testing.T) {
	n := openNode(t, t.TempDir())
	defer closeNode(t, n)
	g := guest(t, n, "old")
	settleForms(t, n, g, 12)
	ask(t, g, parley.Form{Key: "open"})
	for _, a := range []*Agent{n.Host(), g} {
		evs, err := n.journal.Events(t.Context(), a.id, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		fold := func(length int) (state []byte) {
			for some := range slices.Chunk(evs, length) {
				batch := func(yield func([]persistence.Entry, error) bool) { yield(some, nil) }
				if state, err = n.archive.stateAfter(t.Context(), a.id, state, batch); err != nil {
					t.Fatal(err)
				}
			}
			return state
		}
		once := fold(len(evs))
		for _, length := range []int{1, 2, 7} {
			if !bytes.Equal(fold(length), once) {
				t.Errorf("the state after %d events is another in rounds of %d", len(evs), length)
			}
		}
	}
}
