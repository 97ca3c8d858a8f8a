package table

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"iter"
	"slices"
)

// Sum is the SHA-256 digest of an encoded page.
type Sum [sha256.Size]byte

// Part is an encoded page.
type Part struct {
	Sum  Sum
	Data []byte
}

// Seal seals the open pages that are a quarter full. Emptier pages are in the head. It returns all pages that are sealed
// and not stored.
func (t *Table) Seal() []Part {
	t.pages = slices.DeleteFunc(t.pages, func(p *page) bool { return !p.sealed && len(p.entries) == 0 })
	if len(t.pages) > 0 {
		t.pages[0].first = ""
	}
	var parts []Part
	for _, p := range t.pages {
		if !p.sealed && len(p.entries) < t.pageLength()/4 || p.stored {
			continue
		}
		data := p.encode()
		if !p.sealed {
			p.sealed, p.sum = true, sha256.Sum256(data)
		}
		parts = append(parts, Part{p.sum, data})
	}
	return parts
}

// Stored notes that a page is stored. It may leave memory.
func (t *Table) Stored(sum Sum) {
	for _, p := range t.pages {
		if p.sealed && !p.stored && p.sum == sum {
			p.stored = true
			t.cached = append(t.cached, p)
		}
	}
}

// PageOut lets stored pages leave memory until at most some are left.
func (t *Table) PageOut(most int) {
	for len(t.cached) > most {
		t.cached[0].entries = nil
		t.cached = slices.Delete(t.cached, 0, 1)
	}
}

// Gone returns the sums of pages that are of no use to the present table, and forgets them.
func (t *Table) Gone() []Sum {
	gone := t.gone
	t.gone = nil
	return slices.DeleteFunc(gone, func(s Sum) bool {
		return slices.ContainsFunc(t.pages, func(p *page) bool { return p.sealed && p.sum == s })
	})
}

// Sums yields the sums of the sealed pages.
func (t *Table) Sums() iter.Seq[Sum] {
	return func(yield func(Sum) bool) {
		for _, p := range t.pages {
			if p.sealed && !yield(p.sum) {
				return
			}
		}
	}
}

// PagedOut returns the sums of the pages that are not in memory.
func (t *Table) PagedOut() []Sum {
	var sums []Sum
	for _, p := range t.pages {
		if p.isAbsent() {
			sums = append(sums, p.sum)
		}
	}
	return sums
}

// Lacks reports whether a page with a sum is absent.
func (t *Table) Lacks(sum Sum) bool {
	return slices.ContainsFunc(t.pages, func(p *page) bool { return p.isAbsent() && p.sum == sum })
}

// PageIn brings a page into memory if it is absent. It fails for bytes that are not those of the page.
func (t *Table) PageIn(sum Sum, data []byte) error {
	for _, p := range t.pages {
		if !p.isAbsent() || p.sum != sum {
			continue
		}
		entries, err := decode(data)
		if err != nil || sha256.Sum256(data) != sum {
			return errDamaged
		}
		p.entries = entries
		t.cached = append(t.cached, p)
	}
	return nil
}

// Replace takes the entries of another table, all of whose pages are in memory. The other table must not be used any more.
func (t *Table) Replace(whole *Table) {
	for _, p := range t.pages {
		if p.sealed {
			t.gone = append(t.gone, p.sum)
		}
	}
	t.pages, t.cached = whole.pages, nil
}

var errDamaged = errors.New("the bytes are not those of a table's page")

// encode encodes a page: the length of each key and of each value, and then these.
func (p *page) encode() []byte {
	size := 0
	for _, e := range p.entries {
		size += len(e.Key) + len(e.Value) + 2*binary.MaxVarintLen16
	}
	b := make([]byte, 0, size)
	for _, e := range p.entries {
		b = appendText(appendText(b, e.Key), e.Value)
	}
	return b
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// decode decodes a page. The entries share one copy of the bytes.
func decode(data []byte) ([]Entry, error) {
	r := reader{rest: string(data)}
	entries := make([]Entry, 0, min(maxEntries, len(data)/2))
	for len(r.rest) > 0 && !r.bad {
		e := Entry{Key: r.text(), Value: r.text()}
		if n := len(entries); r.bad || n == maxEntries || n > 0 && entries[n-1].Key >= e.Key {
			return nil, errDamaged
		}
		entries = append(entries, e)
	}
	return entries, nil
}

type reader struct {
	rest string
	bad  bool // something was missing
}

func (r *reader) uvarint() uint64 {
	n := uint64(0)
	for i := 0; i < len(r.rest) && i < binary.MaxVarintLen64; i++ {
		n |= uint64(r.rest[i]&0x7f) << (7 * i)
		if r.rest[i] < 0x80 {
			r.rest = r.rest[i+1:]
			return n
		}
	}
	r.bad, r.rest = true, ""
	return 0
}

func (r *reader) take(n uint64) string {
	if n > uint64(len(r.rest)) {
		r.bad, r.rest = true, ""
		return ""
	}
	text := r.rest[:n]
	r.rest = r.rest[n:]
	return text
}

func (r *reader) text() string { return r.take(r.uvarint()) }

// Head encodes the table without its sealed pages.
func (t *Table) Head() []byte {
	var b []byte
	for _, p := range t.pages {
		b = appendText(b, p.first)
		if p.sealed {
			b = append(append(b, 1), p.sum[:]...)
			continue
		}
		data := p.encode()
		b = append(binary.AppendUvarint(append(b, 0), uint64(len(data))), data...)
	}
	return b
}

// RestoreHead decodes the result of Head into an empty table. The sealed pages count as stored.
func (t *Table) RestoreHead(b []byte) error {
	r := reader{rest: string(b)}
	for len(r.rest) > 0 {
		p := &page{first: r.text()}
		switch r.take(1) {
		case "\x01":
			p.sealed, p.stored = true, true
			copy(p.sum[:], r.take(uint64(len(p.sum))))
		case "\x00":
			entries, err := decode([]byte(r.text()))
			if err != nil || len(entries) > 0 && entries[0].Key < p.first {
				return errDamaged
			}
			p.entries = entries
		default:
			return errDamaged
		}
		if n := len(t.pages); r.bad || (n == 0) != (p.first == "") || n > 0 && !t.pages[n-1].endsBefore(p.first) {
			return errDamaged
		}
		t.pages = append(t.pages, p)
	}
	return nil
}

// endsBefore reports whether all keys of a page are before a key, as far as that is known.
func (p *page) endsBefore(key string) bool {
	if n := len(p.entries); n > 0 && p.entries[n-1].Key >= key {
		return false
	}
	return p.first < key
}
