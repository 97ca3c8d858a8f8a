package group

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/oklog/ulid/v2"

	"parley/capabilities"
	"parley/events"
)

func testNode(n byte) capabilities.NodeID { return capabilities.NodeOf([32]byte{31: n}) }

func mailboxID(n int) capabilities.ID {
	return capabilities.ID{ULID: ulid.ULID{15: byte(n)}, Node: testNode(1)}
}

// writer makes sections of mailboxes with consecutive versions. It holds the last version of each.
type writer map[int]uint64

func (w writer) section(nth, count int) events.Section {
	first := w[nth] + 1
	w[nth] += uint64(count)
	return events.Section{Mailbox: mailboxID(nth), First: first, Count: uint32(count), Body: bytes.Repeat([]byte{byte(nth), byte(first)}, 20*count)}
}

// sectionsOf returns the sections of a mailbox with events in a commit.
func sectionsOf(mailbox capabilities.ID, c *events.Commit) (found []Section) {
	for _, s := range c.Sections {
		if s.Mailbox == mailbox && s.Count > 0 {
			found = append(found, Section{c.Number, s})
		}
	}
	return found
}

// randomCommits returns commits of some mailboxes, some of which have several sections of one.
func randomCommits(t testing.TB, random *rand.Rand, w writer, first, n int) []*events.Commit {
	t.Helper()
	all := make([]*events.Commit, n)
	for i := range all {
		all[i] = &events.Commit{Number: uint64(first + i), Node: testNode(1)}
		for range 1 + random.IntN(8) {
			all[i].Sections = append(all[i].Sections, w.section(random.IntN(5), 1+random.IntN(3)))
		}
		if random.IntN(4) == 0 { // some that have no events
			all[i].Sections = append(all[i].Sections, events.Section{Mailbox: mailboxID(1)})
		}
	}
	return all
}

func groupOf(t testing.TB, commits []*events.Commit) *File {
	t.Helper()
	folder := t.TempDir()
	if err := Write(folder, testNode(1), commits, events.Hash{1}); err != nil {
		t.Fatal(err)
	}
	g, err := Open(filepath.Join(folder, Name(commits[0].Number, commits[len(commits)-1].Number)), testNode(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return g
}

// TestGroupHasTheSectionsOfItsCommits reads some commits of each mailbox from a group of several blocks and table pages.
func TestGroupHasTheSectionsOfItsCommits(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	commits := randomCommits(t, random, make(writer), 100, 4000)
	g := groupOf(t, commits)
	if g.rows <= indexed/4 || g.First != 100 || g.Last.Number != 4099 || g.Last.Hash != (events.Hash{1}) {
		t.Fatalf("%d rows of commits %d to %v", g.rows, g.First, g.Last)
	}
	for nth := range 6 {
		for _, share := range []float64{0.0005, 0.1, 1} {
			var numbers []uint64
			var want []Section
			for _, c := range commits {
				if found := sectionsOf(mailboxID(nth), c); len(found) > 0 && random.Float64() < share {
					numbers, want = append(numbers, c.Number), append(want, found...)
				}
			}
			if len(numbers) == 0 {
				continue
			}
			got, err := g.Sections(mailboxID(nth), numbers)
			if err != nil || len(got) != len(want) {
				t.Fatalf("mailbox %d: %d sections, %v; want %d", nth, len(got), err, len(want))
			}
			for i := range got {
				if got[i].Commit != want[i].Commit || got[i].First != want[i].First || got[i].Count != want[i].Count || !bytes.Equal(got[i].Body, want[i].Body) {
					t.Fatalf("mailbox %d: got %+v, want %+v", nth, got[i], want[i])
				}
			}
		}
	}
	for _, wrong := range [][]uint64{{99}, {5000}, {100, 5000}} {
		if _, err := g.Sections(mailboxID(1), wrong); !errors.Is(err, ErrDamaged) {
			t.Errorf("commits %v: %v", wrong, err)
		}
	}
}

// FuzzGroup opens any bytes as a group, and reads a mailbox from it.
func FuzzGroup(f *testing.F) {
	folder := f.TempDir()
	commits := randomCommits(f, rand.New(rand.NewPCG(3, 4)), make(writer), 1, 30)
	if err := Write(folder, testNode(1), commits, events.Hash{}); err != nil {
		f.Fatal(err)
	}
	path := filepath.Join(folder, Name(1, 30))
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		g, err := Open(path, testNode(1))
		if err != nil {
			return
		}
		defer g.Close() //nolint:errcheck // it is only read
		if _, err := g.Sections(mailboxID(1), []uint64{1, 2, 30}); err != nil && !errors.Is(err, ErrDamaged) {
			t.Log(err)
		}
		_, _ = appendBlock(nil, mailboxID(1), b)
	})
}
