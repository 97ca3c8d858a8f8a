package index_test

import (
	"math"
	"testing"

	"parley/capabilities"
	"parley/mailbox/index"
)

// FuzzSnapshotHead reads the head of an index from a snapshot.
func FuzzSnapshotHead(f *testing.F) {
	x := index.New(capabilities.NodeID{}, 4)
	for n := range uint64(11) {
		x.Add(entryOf(n, n%3 == 0), 5000, n)
	}
	x.Seal(1, math.MaxUint64, nil)
	head := x.Head()
	f.Add(head.Length, head.Entries, head.Pages, head.Strays)
	f.Fuzz(func(_ *testing.T, length int, entries, pages, strays []byte) {
		x := index.New(capabilities.NodeID{}, 4)
		if x.RestoreHead(index.Head{Length: length, Entries: entries, Pages: pages, Strays: strays}) != nil {
			return
		}
		for n := range uint64(12) {
			x.Find(id(n))
			x.FindOther(id(n))
		}
		_ = x.Head()
	})
}

// FuzzPage reads a page of an index, and an index of the first snapshots.
func FuzzPage(f *testing.F) {
	x := index.New(capabilities.NodeID{}, 4)
	for n := range uint64(11) {
		x.Add(entryOf(n, n%3 == 0), 5000, n)
	}
	f.Add(x.Encode())
	x.Seal(1, math.MaxUint64, nil)
	for _, p := range x.Unstored() {
		f.Add(x.EncodePage(p.Number))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		x := index.New(capabilities.NodeID{}, 4)
		if x.Decode(b) == nil {
			for n := range min(x.Len(), 100) {
				if x.At(n) == nil {
					t.Fatal(n)
				}
			}
			x.FindOther(id(3))
		}
		if whole := pagedIndex(); whole.PageIn(0, b) == nil && !whole.Has(0) {
			t.Error("a page was read and is absent")
		}
	})
}

// pagedIndex returns an index whose first page is not in memory.
func pagedIndex() *index.Index {
	x := index.New(capabilities.NodeID{}, 4)
	for n := range uint64(11) {
		x.Add(entryOf(n, false), 5000, n)
	}
	x.Seal(1, math.MaxUint64, nil)
	for _, p := range x.Unstored() {
		x.Stored(p)
	}
	x.PageOut(0)
	return &x
}
