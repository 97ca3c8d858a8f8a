package index_test

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/oklog/ulid/v2"
	"pgregory.net/rapid"

	"parley/capabilities"
	"parley/mailbox/index"
)

// paged is an index whose pages are stored and pagedIn, with what it should hold.
type paged struct {
	*rapid.T
	x     index.Index
	store map[index.Sum][]byte
	ids   [][3]capabilities.ID // message, promise and resolver
	all   []index.Entry
	came  []uint64
	other map[uint64][]uint32
	now   uint64
	made  uint64 // IDs
}

func (p *paged) newID() capabilities.ID {
	var u ulid.ULID
	p.made++
	early := rapid.Uint64Range(0, 3000).Draw(p.T, "made before, ms")
	if err := u.SetTime(p.now - early); err != nil {
		p.Fatal(err)
	}
	binary.BigEndian.PutUint64(u[8:], p.made%5<<32|p.made) // short digests that are equal
	return capabilities.ID{ULID: u}
}

func (p *paged) add(form bool) {
	p.now += rapid.Uint64Range(0, 1000).Draw(p.T, "time")
	ids := [3]capabilities.ID{p.newID(), p.newID(), p.newID()}
	e := index.Entry{ID: p.x.Digest(ids[0]), First: uint32(p.now), Changed: uint32(p.now)}
	made := []uint64{ids[0].ULID.Time()}
	if form {
		e.Flags, e.Promise, e.Resolver = index.Form, uint32(p.x.Digest(ids[1])), uint32(p.x.Digest(ids[2]))
		made = append(made, ids[1].ULID.Time(), ids[2].ULID.Time())
	}
	p.x.Add(e, p.now, made...)
	p.ids, p.all, p.came = append(p.ids, ids), append(p.all, e), append(p.came, p.now)
}

// seal seals and stores pages, and lets some go out of memory.
func (p *paged) seal(most, kept int) {
	p.x.Seal(most, math.MaxUint64, nil)
	for _, page := range p.x.Unstored() {
		p.store[page.Sum] = p.x.EncodePage(page.Number)
		p.x.Stored(page)
	}
	for _, sum := range p.x.Gone() {
		delete(p.store, sum)
	}
	p.x.PageOut(kept)
}

func (p *paged) pageIn(pages ...int) {
	for _, i := range pages {
		page := p.x.PageAt(i)
		if err := p.x.PageIn(i, append(slices.Clone(p.store[page.Sum]), 0)); err == nil && !p.x.Has(p.x.FirstOf(i)) {
			p.Fatal("other bytes are taken for a page")
		}
		if err := p.x.PageIn(i, p.store[page.Sum]); err != nil {
			p.Fatal(err)
		}
	}
}

// whole returns the index as the messages make it. Some do not know the times of their IDs.
func (p *paged) whole() *index.Index {
	x := index.New(capabilities.NodeID{}, 7)
	for n, e := range p.all {
		var made []uint64
		if n%2 == 0 {
			for _, id := range p.ids[n] {
				made = append(made, id.ULID.Time())
			}
		}
		x.Add(e, p.came[n], made...)
		for _, v := range p.other[uint64(n)] {
			x.Note(uint64(n), uint64(v))
		}
	}
	return &x
}

// settle changes an entry, which ends a form.
func (p *paged) settle(n uint64) {
	if !p.x.Has(n) {
		p.pageIn(p.x.PageOf(n))
	}
	p.now++
	e := p.x.Change(n)
	e.Settled, e.Changed = uint32(p.now), uint32(p.now)
	p.all[n].Settled, p.all[n].Changed = e.Settled, e.Changed
	if rapid.Bool().Draw(p.T, "note") {
		p.x.Note(n, p.now)
		p.other[n] = append(p.other[n], uint32(p.now))
	}
}

func (p *paged) find(id capabilities.ID) (uint64, bool) {
	for {
		n, ok, absent := p.x.Find(id)
		if ok || len(absent) == 0 {
			return n, ok
		}
		p.pageIn(absent...)
	}
}

func (p *paged) findOther(id capabilities.ID) []uint64 {
	for {
		numbers, absent := p.x.FindOther(id)
		if len(absent) == 0 {
			return numbers
		}
		p.pageIn(absent...)
	}
}

func (p *paged) check() {
	if p.x.Len() != uint64(len(p.all)) {
		p.Fatalf("%d entries, want %d", p.x.Len(), len(p.all))
	}
	for n, ids := range p.ids {
		if got, ok := p.find(ids[0]); !ok || got != uint64(n) {
			p.Fatalf("message %d is found as %d, %t", n, got, ok)
		}
		if !p.x.Has(uint64(n)) {
			p.pageIn(p.x.PageOf(uint64(n)))
		}
		e := *p.x.At(uint64(n))
		e.Flags &^= index.Timed
		if e != p.all[n] {
			p.Fatalf("the entry of message %d is %v, want %v", n, e, p.all[n])
		}
		for _, id := range ids[1:] {
			if found := slices.Contains(p.findOther(id), uint64(n)); found != e.Is(index.Form) {
				p.Fatalf("message %d is found by another ID: %t", n, found)
			}
			if _, ok := p.find(id); ok {
				p.Fatal("a message is found that was not added")
			}
		}
		p.x.PageOut(rapid.IntRange(0, 2).Draw(p.T, "kept"))
	}
	p.pageIn(pageNumbers(p.x.PagedOut())...)
	if other := maps.Collect(p.x.Noted(false)); !maps.EqualFunc(other, p.other, slices.Equal) {
		p.Fatalf("noted are %v, want %v", other, p.other)
	}
}

func pageNumbers(pages []index.Page) (all []int) {
	for _, p := range pages {
		all = append(all, p.Number)
	}
	return all
}

// TestPagesOutOfMemoryChangeNothing compares an index whose pages come and go with a list of entries. Some IDs have
// times that are far from those of their messages.
func TestPagesOutOfMemoryChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &paged{
			T: t, x: index.New(capabilities.NodeID{}, 4), store: map[index.Sum][]byte{}, other: map[uint64][]uint32{}, now: 10_000,
		}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 7).Draw(t, "step") {
			case 0:
				p.seal(rapid.IntRange(0, 5).Draw(t, "most"), rapid.IntRange(0, 2).Draw(t, "kept"))
			case 1:
				if len(p.all) > 0 {
					p.settle(rapid.Uint64Range(0, uint64(len(p.all)-1)).Draw(t, "settled"))
				}
			case 2:
				if absent := pageNumbers(p.x.PagedOut()); len(absent) > 0 { // it is lost
					p.x.Remake(absent[0], p.whole())
				}
			case 3:
				p.seal(0, 9)
				again := index.New(capabilities.NodeID{}, 9)
				head, notes := p.x.Head(), maps.Collect(p.x.Noted(true))
				if err := again.RestoreHead(head); err != nil {
					t.Fatal(err)
				}
				for n, versions := range notes {
					for _, v := range versions {
						again.Note(n, uint64(v))
					}
				}
				p.x = again
			default:
				p.add(rapid.Bool().Draw(t, "form"))
			}
		}
		p.check()
	})
}

// TestDamagedHeadIsRefusedOrHarmless flips bytes of a head. It is refused, or its index can be asked.
func TestDamagedHeadIsRefusedOrHarmless(t *testing.T) {
	x := index.New(capabilities.NodeID{}, 4)
	for n := range uint64(11) {
		x.Add(entryOf(n, false), 5000, n)
	}
	x.Seal(1, math.MaxUint64, nil)
	head := x.Head()
	for _, part := range []*[]byte{&head.Pages, &head.Strays, &head.Entries} {
		whole := *part
		for i := range whole {
			*part = slices.Clone(whole)
			(*part)[i] ^= 0x55
			again := index.New(capabilities.NodeID{}, 4)
			if again.RestoreHead(head) == nil {
				again.Find(id(3))
				again.FindOther(id(3))
			}
			*part = whole[:i]
			if again = index.New(capabilities.NodeID{}, 4); again.RestoreHead(head) == nil {
				again.Find(id(3))
			}
		}
		*part = whole
	}
}
