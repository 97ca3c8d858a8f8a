package table_test

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"parley/mailbox/table"
)

// store has stored pages.
type store map[table.Sum][]byte

// paged is what a Table and Digests have in common.
type paged interface {
	Seal() []table.Part
	Stored(table.Sum)
	PageOut(most int)
	Gone() []table.Sum
	Lacks(table.Sum) bool
	PageIn(table.Sum, []byte) error
}

// shed lets the pages of a table go out of memory, as far as they can be stored, and removes those that are gone.
func (s store) shed(x paged) {
	for _, p := range x.Seal() {
		s[p.Sum] = p.Data
		x.Stored(p.Sum)
	}
	x.PageOut(0)
	for _, sum := range x.Gone() {
		delete(s, sum)
	}
}

// recalling calls fn with the pages that it needs.
func recalling(t *rapid.T, s store, x paged, fn func() error) {
	for {
		err := fn()
		sum, absent := errors.AsType[table.PagedOut](err)
		if err == nil {
			return
		}
		if !absent || !x.Lacks(table.Sum(sum)) {
			t.Fatal(err)
		}
		if err := x.PageIn(table.Sum(sum), s[table.Sum(sum)]); err != nil {
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

// TestDigestsAreMap compares a map from digests, whose pages come and go, with one in memory.
func TestDigestsAreMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, want, stored := &table.Digests{}, map[uint64]uint64{}, store{}
		length := rapid.IntRange(1, 4).Draw(t, "length")
		x.SetLength(length)
		digest := rapid.Custom(func(t *rapid.T) uint64 { return rapid.Uint64Range(0, 60).Draw(t, "n") * 0x9e3779b97f4a7c15 })
		get := func(k uint64) {
			recalling(t, stored, x, func() error {
				v, ok, err := x.Get(k)
				if w, there := want[k]; err == nil && (v != w || ok != there) {
					t.Fatalf("%d is %d, %v; want %d, %v", k, v, ok, w, there)
				}
				return err
			})
		}
		number := uint64(0)
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				k := digest.Draw(t, "digest")
				x.Put(k, number)
				want[k] = number
				number++
			},
			"get":  func(t *rapid.T) { get(digest.Draw(t, "digest")) },
			"shed": func(t *rapid.T) { stored.shed(x) },
			"restore": func(t *rapid.T) {
				stored.shed(x)
				again := &table.Digests{}
				if err := again.RestoreHead(x.Head()); err != nil {
					t.Fatal(err)
				}
				again.SetLength(length)
				x = again
			},
			"replace": func(t *rapid.T) {
				stored.shed(x)
				whole := &table.Digests{}
				for k, n := range want {
					whole.Put(k, n)
				}
				x.Replace(whole)
				stored.shed(x)
			},
			"": func(t *rapid.T) {
				for k := range want {
					get(k)
				}
				for k, n := range pagedIn(t, stored, x) {
					if want[k] != n {
						t.Fatalf("%d is %d, want %d", k, n, want[k])
					}
				}
			},
		})
	})
}

// pagedIn returns all entries.
func pagedIn(t *rapid.T, s store, x *table.Digests) (all map[uint64]uint64) {
	recalling(t, s, x, func() (err error) {
		all, err = x.All()
		return err
	})
	return all
}

func digest(n int) uint64 {
	sum := sha256.Sum256([]byte(strconv.Itoa(n)))
	return binary.BigEndian.Uint64(sum[:])
}

// BenchmarkDigests looks for new digests in a map with 10^4, 10^5 and 10^6, none of whose pages is in memory but those of
// filters. It reports the memory and the bytes of the head that a digest takes, and the lookups of a thousand that read a
// page.
func BenchmarkDigests(b *testing.B) {
	for count := 10_000; count <= 1_000_000; count *= 10 {
		b.Run(fmt.Sprint("digests=", count), func(b *testing.B) {
			heap := func() uint64 {
				var m runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&m)
				return m.HeapAlloc
			}
			before := heap()
			x := &table.Digests{}
			shed := func() {
				for _, p := range x.Seal() {
					x.Stored(p.Sum)
				}
				x.PageOut(0)
			}
			for n := range count {
				if x.Put(digest(n), uint64(n)); n%10_000 == 9999 {
					shed()
				}
			}
			after, n, read := heap(), count, 0
			for b.Loop() {
				if _, _, err := x.Get(digest(n)); err != nil {
					read++
				}
				n++
			}
			b.ReportMetric(float64(after-before)/float64(count), "B/digest")
			b.ReportMetric(float64(len(x.Head()))/1024, "head-KiB")
			b.ReportMetric(1000*float64(read)/float64(n-count), "reads/1000")
		})
	}
}

// TestNewDigestsReadNoPage looks for digests that are not there in a map with many, none of whose pages is in memory but
// those of filters.
func TestNewDigestsReadNoPage(t *testing.T) {
	x, stored := &table.Digests{}, store{}
	const many = 40_000
	for n := range many {
		x.Put(digest(n), uint64(n))
	}
	stored.shed(x)
	read := 0
	for n := many; n < 2*many; n++ {
		if _, there, err := x.Get(digest(n)); there {
			t.Fatalf("%d is there", n)
		} else if err != nil {
			read++
		}
	}
	if read > 20 { // four runs, 1.4e-5 of each
		t.Errorf("%d of %d lookups read a page", read, many)
	}
	if head := x.Head(); len(head) > 200<<10 {
		t.Errorf("the head has %d bytes", len(head))
	}
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

// TestDamagedHeadsOfDigests is TestDamagedHeads for Digests.
func TestDamagedHeadsOfDigests(t *testing.T) {
	x := &table.Digests{}
	x.SetLength(4)
	for i := range uint64(20) {
		x.Put(i*0x9e3779b97f4a7c15, i)
	}
	x.Seal()
	head := x.Head()
	for i := range head {
		for _, b := range [][]byte{head[:i], slices.Concat(head[:i], []byte{head[i] ^ 0x81}, head[i+1:])} {
			again := &table.Digests{}
			if again.RestoreHead(b) == nil {
				_, _, _ = again.Get(7)
				_, _ = again.All()
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
