package persistence

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"parley/capabilities"
	"parley/events"
)

// TestMilestonesFindEveryStep compares searches by milestones with all steps.
func TestMilestonesFindEveryStep(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var e entry
	var all []step
	for commit := uint64(1); len(all) < 20_000; commit += uint64(1 + random.IntN(300)) {
		for n := random.IntN(8) / 7; n >= 0; n-- { // at times two in one commit
			s := step{commit: commit, first: e.version + 1, count: uint64(1 + random.IntN(3))}
			e.addStep(s.commit, s.count)
			all = append(all, s)
		}
	}
	long := e.trail()
	if len(long.marks) < 50 {
		t.Fatalf("%d milestones for %d bytes", len(long.marks), len(long.steps))
	}
	if got := slices.Collect(long.from(0)); !slices.Equal(got, all) {
		t.Fatal("the steps differ")
	}
	holder := func(version uint64) uint64 {
		i := sort.Search(len(all), func(i int) bool { return version < all[i].first+all[i].count })
		return all[i].commit
	}
	for range 2_000 {
		first := 1 + random.Uint64N(e.version)
		last := min(e.version, first+random.Uint64N(20))
		var want []uint64
		for v := first; v <= last; v++ {
			want = append(want, holder(v))
		}
		if got := long.between(first, last); !slices.Equal(got, slices.Compact(want)) {
			t.Fatalf("versions %d to %d: got %v, want %v", first, last, got, want)
		}
	}
	for n := 1; n < 200; n += 7 {
		versions := make([]uint64, n)
		for i := range versions {
			versions[i] = 1 + random.Uint64N(e.version)
		}
		slices.Sort(versions)
		versions = slices.Compact(versions)
		var want []uint64
		for _, v := range versions {
			want = append(want, holder(v))
		}
		if got := long.with(versions); !slices.Equal(got, slices.Compact(want)) {
			t.Fatalf("versions %v: got %v, want %v", versions, got, want)
		}
	}
	if got := long.with([]uint64{e.version + 1}); got != nil {
		t.Fatalf("an unknown version is in %v", got)
	}
}

// BenchmarkFindVersion finds commits of one mailbox with 10^4 to 10^6 of them.
func BenchmarkFindVersion(b *testing.B) {
	for _, size := range []struct {
		name  string
		steps int
	}{{"commits=1e4", 1e4}, {"commits=1e5", 1e5}, {"commits=1e6", 1e6}} {
		var e entry
		for n := range uint64(size.steps) {
			e.addStep(1+n*3, 1)
		}
		random := rand.New(rand.NewPCG(1, 2))
		b.Run(size.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				e.trail().with([]uint64{1 + random.Uint64N(e.version)})
			}
		})
	}
}

// TestNotesAreInTheLog writes notes, and opens the journal again after a regular and after an unclean end.
func TestNotesAreInTheLog(t *testing.T) {
	o := testOptions(t)
	j := open(t, o)
	w := make(writer)
	note := func(nth int, text string) {
		t.Helper()
		s := w.section(t, nth, 1)
		s.Note = text
		if err := await(t, j, j.Append(s, w.section(t, 9, 1))); err != nil {
			t.Fatal(err)
		}
	}
	holds := func(nth int, want string) {
		t.Helper()
		if m, _ := j.Mailbox(mailboxID(nth)); m.Note != want || m.Version != w[nth] {
			t.Fatalf("mailbox %d is %+v, want the note %q", nth, m, want)
		}
	}
	note(3, "three")
	note(1, "one")
	note(1, "")
	note(2, "two")
	holds(1, "one")
	closeJournal(t, j)
	j = open(t, o)
	holds(1, "one")
	holds(2, "two")
	if err := j.indexes.saveIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	note(1, "another")
	closed := copyJournal(t, o) // with the index as it is before the close
	closeJournal(t, j)
	j = open(t, closed)
	holds(1, "another")
	holds(2, "two")
	holds(9, "")
	var ids []capabilities.ID
	for id := range j.Mailboxes() {
		ids = append(ids, id)
	}
	if want := []capabilities.ID{mailboxID(1), mailboxID(2), mailboxID(3), mailboxID(9)}; !slices.Equal(ids, want) {
		t.Fatalf("got %v, want %v", ids, want)
	}
	for id := range j.MailboxesAfter(mailboxID(2).ULID) {
		if id != mailboxID(3) {
			t.Fatalf("%v comes after 2", id)
		}
		break
	}
	for range 3 * mailboxesAtOnce { // more than one part
		n := 100 + len(w)
		if err := await(t, j, j.Append(w.section(t, n, 1))); err != nil {
			t.Fatal(err)
		}
	}
	count := 0
	for range j.Mailboxes() {
		count++
	}
	if count != len(w) {
		t.Fatalf("%d mailboxes, want %d", count, len(w))
	}
}

// TestTableFindsWhatWasPut puts IDs that count up, and others.
func TestTableFindsWhatWasPut(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var found table
	want := map[ulid.ULID]*entry{}
	for n := range 20_000 {
		id := ulid.ULID{5: byte(n >> 16), 14: byte(n >> 8), 15: byte(n)}
		if n%3 == 0 {
			id = ulid.MustNew(random.Uint64N(1<<40), nil)
		}
		if want[id] != nil || found.get(id) != nil {
			continue
		}
		want[id] = &entry{id: id}
		found.put(want[id])
	}
	for id, e := range want {
		if found.get(id) != e {
			t.Fatalf("%s is %v", id, found.get(id))
		}
	}
	if found.used != len(want) || found.get(ulid.ULID{1: 9}) != nil || len(found.slots) > 4*len(want) {
		t.Fatalf("%d of %d, in %d slots", found.used, len(want), len(found.slots))
	}
}

// BenchmarkIndexMemory reports the memory of mailboxes with one commit each, as a start finds them in the snapshot.
func BenchmarkIndexMemory(b *testing.B) {
	const count = 1_000_000
	x := newIndex(testNode(1))
	for n := range uint64(count) {
		c := events.Commit{Number: n + 1, Sections: []events.Section{{
			Mailbox: capabilities.ID{ULID: ulid.MustNew(n+1, nil), Node: testNode(1)}, First: 1, Count: 1, Note: "a note of thirty bytes, or so..",
		}}}
		if err := x.add(&c); err != nil {
			b.Fatal(err)
		}
	}
	d := directory{index: x}
	_, c := d.copyIndex()
	var file bytes.Buffer
	if err := c.write(&file, Mark{}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		began := time.Now()
		x, _, err := decodeIndex(testNode(1), file.Bytes())
		took := time.Since(began)
		if err != nil {
			b.Fatal(err)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/count, "B/mailbox")
		b.ReportMetric(float64(file.Len())/count, "file-B/mailbox")
		b.ReportMetric(float64(took.Milliseconds()), "ms/decode")
		runtime.KeepAlive(x)
	}
}
