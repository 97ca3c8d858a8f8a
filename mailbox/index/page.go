package index

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"slices"

	"parley/capabilities"
)

// PageOf returns the page of a message.
func (x *Index) PageOf(n uint64) int { return int(n / uint64(x.length)) }

// FirstOf returns the number of the first message of a page.
func (x *Index) FirstOf(page int) uint64 { return uint64(page * x.length) }

// page has the entries of a fixed number of messages; the last page may have fewer. An open page is in memory. A sealed page does
// not change, and may be out of memory once it is stored. It is opened again to be changed.
type page struct {
	entries  []Entry // nil if they are not in memory
	from, to uint64  // times of the IDs of entries with the flag Timed
	through  uint64  // the latest time in this page and those before
	sealed   bool
	stored   bool

	// Of a sealed page.
	sum         Sum
	least, last uint32 // versions of the first and the last change
}

// Sum is the SHA-256 digest of an encoded page.
type Sum [sha256.Size]byte

func (x *Index) lengthOf(i int) int {
	if x.pages[i].sealed {
		return x.length
	}
	return len(x.pages[i].entries)
}

// stray is an ID in a sealed page.
type stray struct{ digest, number uint32 }

func (s stray) compare(o stray) int {
	return cmp.Or(cmp.Compare(s.digest, o.digest), cmp.Compare(s.number, o.number))
}

// maxLate bounds the difference, in milliseconds, between the arrival of a message and the times in its IDs. The
// message is found by times within it. So IDs with invented times do not spread the times of a page.
const maxLate = 2000

func inTime(came uint64, made []uint64) bool {
	for _, t := range made {
		if t > came+maxLate || t+maxLate < came {
			return false
		}
	}
	return len(made) > 0
}

func (p *page) spread(made []uint64) {
	for _, t := range made {
		p.from, p.to, p.through = min(p.from, t), max(p.to, t), max(p.through, t)
	}
}

// sealedWith yields the sealed pages that can have an ID with a short digest.
func (x *Index) sealedWith(id capabilities.ID, digest uint32) iter.Seq[int] {
	return func(yield func(int) bool) {
		made := id.ULID.Time()
		first, _ := slices.BinarySearchFunc(x.pages, made, func(p page, made uint64) int { return cmp.Compare(p.through, made) })
		for i := first; i < len(x.pages); i++ {
			if p := &x.pages[i]; p.sealed && p.from <= made && made <= p.to && !yield(i) {
				return
			}
		}
		at, _ := slices.BinarySearchFunc(x.stray, stray{digest: digest}, stray.compare)
		for ; at < len(x.stray) && x.stray[at].digest == digest; at++ {
			if i := x.PageOf(uint64(x.stray[at].number)); x.pages[i].sealed && !yield(i) {
				return
			}
		}
	}
}

// Seal seals at most limit full pages without open forms, but for those that the caller still needs open. Pages with IDs
// that were made at a time or later, in milliseconds, stay open: late messages with IDs of that time may still come.
func (x *Index) Seal(limit int, before uint64, needed map[int]bool) {
	var strays []stray
	for i := range x.pages {
		p := &x.pages[i]
		if p.sealed || len(p.entries) < x.length || p.to >= before || needed[i] || slices.ContainsFunc(p.entries, func(e Entry) bool { return e.IsOpen() }) {
			continue
		}
		if limit--; limit < 0 {
			break
		}
		p.entries = slices.Clip(p.entries)
		p.sealed, p.stored = true, false
		p.sum = sha256.Sum256(x.EncodePage(i))
		p.least, p.last = math.MaxUint32, 0
		for at, e := range p.entries {
			p.least, p.last = min(p.least, e.Changed), max(p.last, e.Changed)
			if n := uint32(i*x.length + at); !e.Is(Timed) {
				strays = append(strays, stray{uint32(e.ID), n})
				if e.Is(Form) {
					strays = append(strays, stray{e.Promise, n}, stray{e.Resolver, n})
				}
			}
		}
	}
	if x.slots.len() > 16*x.openIDs() {
		x.rebuild()
	}
	if len(strays) > 0 {
		x.stray = append(x.stray, strays...)
		slices.SortFunc(x.stray, stray.compare)
		x.stray = slices.Clip(slices.Compact(x.stray))
	}
}

// open opens a page that is in memory.
func (x *Index) open(i int) {
	p := &x.pages[i]
	if !p.sealed {
		return
	}
	if p.stored {
		x.gone = append(x.gone, p.sum)
		x.cached = slices.DeleteFunc(x.cached, func(c int) bool { return c == i })
	}
	p.sealed, p.stored = false, false
	for at := range p.entries {
		x.enter(uint32(i*x.length+at), &p.entries[at])
	}
}

// Page is a sealed page.
type Page struct {
	Number int
	Sum    Sum
}

// Unstored returns the sealed pages that are not stored.
func (x *Index) Unstored() []Page {
	return x.sealed(func(p *page) bool { return !p.stored })
}

// PagedOut returns the pages that are not in memory.
func (x *Index) PagedOut() []Page {
	return x.sealed(func(p *page) bool { return p.entries == nil })
}

func (x *Index) sealed(is func(*page) bool) []Page {
	var all []Page
	for i := range x.pages {
		if p := &x.pages[i]; p.sealed && is(p) {
			all = append(all, Page{i, p.sum})
		}
	}
	return all
}

// Sums yields the sums of the sealed pages.
func (x *Index) Sums() iter.Seq[Sum] {
	return func(yield func(Sum) bool) {
		for i := range x.pages {
			if p := &x.pages[i]; p.sealed && !yield(p.sum) {
				return
			}
		}
	}
}

// PageAt returns a sealed page.
func (x *Index) PageAt(i int) Page { return Page{i, x.pages[i].sum} }

// Gone returns the sums of stored pages that are of no use to the present index, and forgets them.
func (x *Index) Gone() []Sum {
	gone := x.gone
	x.gone = nil
	return slices.DeleteFunc(gone, func(s Sum) bool {
		return slices.ContainsFunc(x.pages, func(p page) bool { return p.sealed && p.sum == s })
	})
}

// Stored notes that a page is stored. It may go out of memory.
func (x *Index) Stored(page Page) {
	if page.Number >= len(x.pages) {
		return
	}
	if p := &x.pages[page.Number]; p.sealed && !p.stored && p.sum == page.Sum {
		p.stored = true
		x.cached = append(x.cached, page.Number)
	}
}

// PageOut lets stored pages go out of memory until at most some are left.
func (x *Index) PageOut(most int) {
	for len(x.cached) > most {
		i := x.cached[0]
		x.cached = slices.Delete(x.cached, 0, 1)
		x.pages[i].entries = nil
		if len(x.other) == 0 {
			continue
		}
		for n := range uint64(x.length) {
			delete(x.other, uint64(i*x.length)+n)
		}
	}
}

// PageIn brings a page into memory. It fails for bytes that are not those of the page.
func (x *Index) PageIn(i int, b []byte) error {
	p := &x.pages[i]
	if p.entries != nil {
		return nil
	}
	if len(b) < x.length*entrySize || sha256.Sum256(b) != p.sum {
		return fmt.Errorf("%d bytes are not those of page %d", len(b), i)
	}
	entries, err := decodeEntries(b[:x.length*entrySize])
	if err != nil {
		return err
	}
	p.entries = entries
	x.cached = append(x.cached, i)
	for b = b[x.length*entrySize:]; len(b) >= 8; b = b[8:] {
		x.note(uint64(i*x.length)+uint64(binary.BigEndian.Uint32(b)), binary.BigEndian.Uint32(b[4:]))
	}
	return nil
}

// Remake brings a page into memory that was lost, and opens it. It takes the page from an index of the same messages that
// has all its pages in memory.
func (x *Index) Remake(i int, whole *Index) {
	p := &x.pages[i]
	if p.entries != nil {
		return
	}
	first := x.FirstOf(i)
	p.entries = make([]Entry, x.length)
	for at := range p.entries {
		n := first + uint64(at)
		w := &whole.pages[whole.PageOf(n)]
		p.entries[at], p.from, p.to = *whole.At(n), min(p.from, w.from), max(p.to, w.to)
		for _, v := range whole.other[n] {
			x.note(n, v)
		}
	}
	x.open(i)
	through := uint64(0)
	for i := range x.pages {
		through = max(through, x.pages[i].to)
		x.pages[i].through = through
	}
}

// EncodePage returns a full page that is in memory as bytes.
func (x *Index) EncodePage(i int) []byte {
	b := make([]byte, 0, x.length*entrySize)
	for at := range x.pages[i].entries {
		b = x.pages[i].entries[at].append(b)
	}
	if len(x.other) == 0 {
		return b
	}
	for n := range uint32(x.length) {
		for _, v := range x.other[uint64(i*x.length)+uint64(n)] {
			b = binary.BigEndian.AppendUint32(b, n)
			b = binary.BigEndian.AppendUint32(b, v)
		}
	}
	return b
}

const entrySize = 8 + 4*5 + 2

func (e *Entry) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, e.ID)
	for _, v := range [...]uint32{e.Promise, e.Resolver, e.First, e.Settled, e.Changed} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return binary.BigEndian.AppendUint16(b, uint16(e.Flags))
}

func decodeEntries(b []byte) ([]Entry, error) {
	if len(b)%entrySize != 0 {
		return nil, fmt.Errorf("%d bytes are no index entries", len(b))
	}
	all := make([]Entry, 0, len(b)/entrySize)
	for ; len(b) > 0; b = b[entrySize:] {
		word := func(i int) uint32 { return binary.BigEndian.Uint32(b[8+4*i:]) }
		all = append(all, Entry{
			ID: binary.BigEndian.Uint64(b), Promise: word(0), Resolver: word(1), First: word(2), Settled: word(3), Changed: word(4),
			Flags: Flags(binary.BigEndian.Uint16(b[28:])),
		})
	}
	return all, nil
}

// Encode returns all entries as bytes. They have to be in memory. The flag Timed is left out, since the times are.
func (x *Index) Encode() []byte {
	b := make([]byte, 0, x.Len()*entrySize)
	for i := range x.pages {
		for _, e := range x.pages[i].entries {
			e.Flags &^= Timed
			b = e.append(b)
		}
	}
	return b
}

// Decode reads the result of Encode into an empty index. It fails for bytes that are no entries.
func (x *Index) Decode(b []byte) error {
	all, err := decodeEntries(b)
	for _, e := range all {
		x.Add(e, 0)
	}
	return err
}

// Head is an Index without its sealed pages.
type Head struct {
	Length  int
	Entries []byte // of the open pages
	Pages   []byte // of all pages: whether it is sealed, and where it is found
	Strays  []byte
}

const maxLength = 1 << 16

const pageSize = 1 + 8 + 8 + len(Sum{}) + 4 + 4

// Head returns the index without its sealed pages.
func (x *Index) Head() Head {
	h := Head{Length: x.length}
	for i := range x.pages {
		p := &x.pages[i]
		sealed := byte(0)
		if p.sealed {
			sealed = 1
		}
		h.Pages = append(h.Pages, sealed)
		h.Pages = binary.BigEndian.AppendUint64(h.Pages, p.from)
		h.Pages = binary.BigEndian.AppendUint64(h.Pages, p.to)
		h.Pages = append(h.Pages, p.sum[:]...)
		h.Pages = binary.BigEndian.AppendUint32(h.Pages, p.least)
		h.Pages = binary.BigEndian.AppendUint32(h.Pages, p.last)
		for at := range p.entries {
			if !p.sealed {
				h.Entries = p.entries[at].append(h.Entries)
			}
		}
	}
	for _, s := range x.stray {
		h.Strays = binary.BigEndian.AppendUint32(h.Strays, s.digest)
		h.Strays = binary.BigEndian.AppendUint32(h.Strays, s.number)
	}
	return h
}

// RestoreHead reads the result of Head into an empty index. The sealed pages count as stored.
func (x *Index) RestoreHead(h Head) error {
	entries, err := decodeEntries(h.Entries)
	if err != nil {
		return err
	}
	if h.Length < 1 || h.Length > maxLength || len(h.Pages)%pageSize != 0 || len(h.Strays)%8 != 0 {
		return fmt.Errorf("the head of an index has another length")
	}
	x.length = h.Length
	through := uint64(0)
	for b := h.Pages; len(b) > 0; b = b[pageSize:] {
		p := page{from: binary.BigEndian.Uint64(b[1:]), to: binary.BigEndian.Uint64(b[9:])}
		through = max(through, p.to)
		p.through = through
		if b[0] == 1 {
			p.sealed, p.stored = true, true
			copy(p.sum[:], b[17:])
			p.least, p.last = binary.BigEndian.Uint32(b[49:]), binary.BigEndian.Uint32(b[53:])
		} else {
			count := min(x.length, len(entries))
			if count == 0 || count < x.length && len(b) > pageSize {
				return fmt.Errorf("the head of an index lacks entries")
			}
			p.entries, entries = slices.Clone(entries[:count]), entries[count:]
		}
		x.pages = append(x.pages, p)
	}
	if len(entries) > 0 {
		return fmt.Errorf("the head of an index has too many entries")
	}
	for b := h.Strays; len(b) > 0; b = b[8:] {
		s := stray{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])}
		if uint64(s.number) >= x.Len() {
			return fmt.Errorf("the head of an index has a stray ID")
		}
		x.stray = append(x.stray, s)
	}
	x.rebuild()
	return nil
}

// Noted yields the numbers and versions given to Note, in the order of the numbers. If open, those in sealed pages are
// left out.
func (x *Index) Noted(open bool) iter.Seq2[uint64, []uint32] {
	return func(yield func(uint64, []uint32) bool) {
		numbers := make([]uint64, 0, len(x.other))
		for n := range x.other {
			if !open || !x.pages[x.PageOf(n)].sealed {
				numbers = append(numbers, n)
			}
		}
		slices.Sort(numbers)
		for _, n := range numbers {
			if !yield(n, x.other[n]) {
				return
			}
		}
	}
}

// ChangedAfter yields the pages with messages that may have changed after a version. It also yields the least version
// after which they changed.
func (x *Index) ChangedAfter(version uint64) iter.Seq2[int, uint32] {
	return func(yield func(int, uint32) bool) {
		for i := range x.pages {
			p := &x.pages[i]
			least := uint32(0)
			if p.sealed {
				if uint64(p.last) <= version {
					continue
				}
				least = p.least
			}
			if !yield(i, least) {
				return
			}
		}
	}
}

// Page yields the entries of a page that is in memory, from a number on.
func (x *Index) Page(i int, first uint64) iter.Seq2[uint64, *Entry] {
	return func(yield func(uint64, *Entry) bool) {
		begin := uint64(i * x.length)
		for n := max(first, begin); n < begin+uint64(len(x.pages[i].entries)); n++ {
			if !yield(n, x.At(n)) {
				return
			}
		}
	}
}
