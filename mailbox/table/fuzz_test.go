package table_test

import (
	"crypto/sha256"
	"strconv"
	"testing"

	"parley/mailbox/table"
)

// FuzzTable reads heads of tables, and pages that a store returns for them.
func FuzzTable(f *testing.F) {
	x := &table.Table{}
	x.SetLength(4)
	for i := range 20 {
		x.Put(strconv.Itoa(i), "value")
	}
	parts := x.Seal()
	x.Put("15", "other")
	for _, p := range parts {
		f.Add(x.Head(), p.Data)
	}
	f.Fuzz(func(t *testing.T, head, page []byte) {
		x := &table.Table{}
		if x.RestoreHead(head) != nil {
			return
		}
		for _, sum := range x.PagedOut() {
			if err := x.PageIn(sum, page); err == nil && sha256.Sum256(page) != sum {
				t.Fatal("a page is read that is not the stored one")
			}
		}
		for e, err := range x.From("") {
			if err != nil {
				return
			}
			if _, _, err := x.Get(e.Key); err != nil {
				t.Fatalf("%q is not found: %v", e.Key, err)
			}
		}
		_ = x.Head()
	})
}

// FuzzDigests reads heads of digests, and runs that a store returns for them.
func FuzzDigests(f *testing.F) {
	x := &table.Digests{}
	x.SetLength(4)
	for i := range uint64(20) {
		x.Put(i*0x9e3779b97f4a7c15, i)
	}
	for _, p := range x.Seal() {
		f.Add(x.Head(), p.Data)
	}
	f.Fuzz(func(t *testing.T, head, run []byte) {
		x := &table.Digests{}
		if x.RestoreHead(head) != nil {
			return
		}
		for _, sum := range x.PagedOut() {
			if err := x.PageIn(sum, run); err == nil && sha256.Sum256(run) != sum {
				t.Fatal("a run is read that is not the stored one")
			}
		}
		_, _, _ = x.Get(7) // it may be absent
		_, _ = x.All()
		_ = x.Head()
	})
}
