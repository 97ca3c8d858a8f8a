package table_test

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"parley/mailbox/table"
)

// store has stored pages.
type store map[table.Sum][]byte

// shed lets the pages of a table go out of memory, as far as they can be stored, and removes those that are gone.
func (s store) shed(x *table.Table) {
	for _, p := range x.Seal() {
		s[p.Sum] = p.Data
		x.Stored(p.Sum)
	}
	x.Trim(0)
	for _, sum := range x.Gone() {
		delete(s, sum)
	}
}

// recalling calls fn with the pages that it needs.
func recalling(t *rapid.T, s store, x *table.Table, fn func() error) {
	for {
		err := fn()
		sum, absent := errors.AsType[table.Absent](err)
		if err == nil {
			return
		}
		if !absent || !x.Lacks(table.Sum(sum)) {
			t.Fatal(err)
		}
		if err := x.Restock(table.Sum(sum), s[table.Sum(sum)]); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTableIsMap compares a table whose pages come and go with a map.
func TestTableIsMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, want, stored := &table.Table{}, map[string]string{}, store{}
		x.SetLength(rapid.IntRange(1, 8).Draw(t, "length"))
		key := rapid.Custom(func(t *rapid.T) string { return strconv.Itoa(rapid.IntRange(0, 60).Draw(t, "n")) })
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				k, v := key.Draw(t, "key"), key.Draw(t, "value")
				recalling(t, stored, x, func() error { return x.Need(k) })
				x.Put(k, v)
				want[k] = v
			},
			"delete": func(t *rapid.T) {
				k := key.Draw(t, "key")
				recalling(t, stored, x, func() error { return x.Need(k) })
				x.Delete(k)
				delete(want, k)
			},
			"get": func(t *rapid.T) {
				k := key.Draw(t, "key")
				recalling(t, stored, x, func() error {
					v, ok, err := x.Get(k)
					if w, there := want[k]; err == nil && (v != w || ok != there) {
						t.Fatalf("%q is %q, %v; want %q, %v", k, v, ok, w, there)
					}
					return err
				})
			},
			"shed": func(t *rapid.T) { stored.shed(x) },
			"restore": func(t *rapid.T) {
				stored.shed(x)
				again := &table.Table{}
				if err := again.RestoreHead(x.Head()); err != nil {
					t.Fatal(err)
				}
				again.SetLength(4)
				x = again
			},
			"": func(t *rapid.T) {
				from := key.Draw(t, "from")
				recalling(t, stored, x, func() error {
					var got []string
					for e, err := range x.From(from) {
						if err != nil {
							return err
						}
						if got = append(got, e.Key); want[e.Key] != e.Value {
							t.Fatalf("%q is %q, want %q", e.Key, e.Value, want[e.Key])
						}
					}
					all := slices.Sorted(maps.Keys(want))
					at, _ := slices.BinarySearch(all, from)
					if !slices.Equal(got, all[at:]) {
						t.Fatalf("from %q: %q, want %q", from, got, all[at:])
					}
					return nil
				})
			},
		})
	})
}

// TestDamagedHeads restores a head with each byte changed, and cut at each byte.
func TestDamagedHeads(t *testing.T) {
	x := &table.Table{}
	x.SetLength(4)
	for i := range 20 {
		x.Put(strconv.Itoa(i), "value")
	}
	x.Seal()
	x.Put("15", "other")
	head := x.Head()
	for i := range head {
		for _, b := range [][]byte{head[:i], slices.Concat(head[:i], []byte{head[i] ^ 0x81}, head[i+1:])} {
			again := &table.Table{}
			if again.RestoreHead(b) == nil {
				for _, err := range again.From("") {
					if err != nil {
						break
					}
				}
			}
		}
	}
}

// TestGrowingKeysFillPages looks at the pages that keys in order make.
func TestGrowingKeysFillPages(t *testing.T) {
	x := &table.Table{}
	for i := range 4096 {
		x.Put(strconv.Itoa(10_000+i), "")
	}
	if pages := x.Seal(); len(pages) != 4 {
		t.Errorf("%d pages, want 4", len(pages))
	}
}
