package index_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/oklog/ulid/v2"
	"pgregory.net/rapid"

	"parley/capabilities"
	"parley/mailbox/index"
)

func id(n uint64) capabilities.ID {
	var u ulid.ULID
	binary.BigEndian.PutUint64(u[8:], n)
	return capabilities.ID{ULID: u}
}

func entryOf(n uint64, form bool) index.Entry {
	e := index.Entry{ID: new(index.Index).Digest(id(3 * n)), First: uint32(n + 1), Changed: uint32(n + 1)}
	if form {
		e.Flags = index.Form
		e.Promise, e.Resolver = uint32(new(index.Index).Digest(id(3*n+1))), uint32(new(index.Index).Digest(id(3*n+2)))
	}
	return e
}

// TestIndexFindsWhatWasAdded compares an index, and one that was encoded and decoded, with a map.
func TestIndexFindsWhatWasAdded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := index.New(capabilities.NodeID{}, 16)
		forms := rapid.SliceOfN(rapid.Bool(), 0, 300).Draw(t, "forms")
		for n, form := range forms {
			x.Add(entryOf(uint64(n), form), 0)
		}
		again := index.New(capabilities.NodeID{}, 16)
		if err := again.Decode(x.Encode()); err != nil {
			t.Fatal(err)
		}
		for _, x := range []*index.Index{&x, &again} {
			if x.Len() != uint64(len(forms)) {
				t.Fatalf("%d entries, want %d", x.Len(), len(forms))
			}
			for n, form := range forms {
				got, ok, _ := x.Find(id(3 * uint64(n)))
				if !ok || got != uint64(n) || *x.At(got) != entryOf(got, form) {
					t.Fatalf("message %d is found as %d, %t", n, got, ok)
				}
				for other := range uint64(2) {
					if numbers, _ := x.FindOther(id(3*uint64(n) + 1 + other)); slices.Contains(numbers, uint64(n)) != form {
						t.Fatalf("message %d is found by another ID: %t", n, !form)
					}
				}
			}
			if _, ok, _ := x.Find(id(3 * uint64(len(forms)))); ok {
				t.Fatal("a message is found that was not added")
			}
		}
	})
}

// TestNumbersAreAList compares Numbers with a slice.
func TestNumbersAreAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l index.Numbers
		var want []uint64
		for n := range rapid.Uint64Range(0, 500).Draw(t, "steps") {
			if rapid.IntRange(0, 2).Draw(t, "add") > 0 {
				l.Add(n)
				want = append(want, n)
			} else {
				gone := rapid.Uint64Range(0, n).Draw(t, "gone")
				l.Remove(gone)
				want = slices.DeleteFunc(want, func(m uint64) bool { return m == gone })
			}
		}
		from := rapid.Uint64Range(0, 500).Draw(t, "from")
		want = slices.DeleteFunc(want, func(m uint64) bool { return m < from })
		if got := slices.Collect(l.From(from)); !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

func TestChangesKnowTheNewest(t *testing.T) {
	var c index.Changes
	const all = 20_000
	for v := range uint64(all) {
		c.Add(v+1, v%7)
	}
	for _, version := range []uint64{0, 1, all / 2, all - 1024, all - 1, all, all + 1} {
		if !c.Knows(version) {
			if version >= all-1024 {
				t.Errorf("the changes after %d are not known", version)
			}
			continue
		}
		if got, want := len(c.After(version)), all-min(version, all); uint64(got) != want {
			t.Errorf("%d changes after %d, want %d", got, version, want)
		}
	}
	c.Restart(10)
	if c.Knows(9) || !c.Knows(10) || len(c.After(10)) != 0 {
		t.Error("a list that begins anew knows what was before")
	}
}

func ExampleIndex() {
	x := index.New(capabilities.NodeID{}, 16)
	x.Add(index.Entry{ID: new(index.Index).Digest(id(7)), First: 1, Flags: index.Form}, 0)
	x.Note(0, 2)
	x.Change(0).Settled = 5
	n, ok, _ := x.Find(id(7))
	fmt.Println(n, ok, x.Versions(n))
	// Output: 0 true [1 2 5]
}

// BenchmarkAdd reports the bytes that the index takes for each form.
func BenchmarkAdd(b *testing.B) {
	b.ReportAllocs()
	x := index.New(capabilities.NodeID{}, 16)
	for n := range uint64(b.N) {
		x.Add(entryOf(n, true), 0)
	}
}
