package table

import (
	"cmp"
	"encoding/binary"
	"iter"
	"maps"
	"slices"
)

// Digests is a map from random digests to numbers, to which entries are only added. The newest entries are in memory.
// Older ones are in runs, which are tables by digest. Each run has a filter, which rejects most digests that the run
// does not have. So a lookup of a new digest seldom reads a page. The filters are in a table whose pages stay in
// memory.
//
// The zero Digests is empty.
type Digests struct {
	fresh   map[uint64]uint64
	runs    []*Table // the oldest first
	filters Table    // by the number of the run
	cached  []*Table // runs with pages that are stored and in memory, once for each page
	gone    []Sum    // sums of the pages of runs that were replaced
	length  int      // entries of a run; 0 for runLength
}

const (
	runLength    = 8 * maxEntries
	runsAtOnce   = 16 // runs that Seal makes at most
	filterPage   = 16 // filters in a page
	filterBits   = 24 // bits of a filter for each entry: one lookup in 70,000 of other digests finds them all set
	filterProbes = 12 // bits that are set for an entry
)

// SetLength sets the largest number of entries in a page, and a run of two pages, before the first entry. It is for
// tests.
func (d *Digests) SetLength(n int) { d.length = 2 * n }

func (d *Digests) lengthOfRun() int { return cmp.Or(d.length, runLength) }

// Put sets the number of a digest, in place of an earlier one.
func (d *Digests) Put(digest, number uint64) {
	if d.fresh == nil {
		d.fresh = map[uint64]uint64{}
	}
	d.fresh[digest] = number
}

// Get returns the number of a digest, and whether there is one. It fails with PagedOut.
func (d *Digests) Get(digest uint64) (uint64, bool, error) {
	if n, ok := d.fresh[digest]; ok || len(d.runs) == 0 {
		return n, ok, nil
	}
	var may []*Table
	for e, err := range d.filters.From("") {
		if err != nil {
			return 0, false, err
		}
		if i := int(binary.BigEndian.Uint32([]byte(e.Key))); i < len(d.runs) && inFilter(e.Value, digest) {
			may = append(may, d.runs[i])
		}
	}
	key := string(binary.BigEndian.AppendUint64(nil, digest))
	for _, run := range slices.Backward(may) {
		if v, ok, err := run.Get(key); ok || err != nil {
			return numberIn(v), ok, err
		}
	}
	return 0, false, nil
}

// All returns all entries. It fails with PagedOut.
func (d *Digests) All() (map[uint64]uint64, error) {
	all := map[uint64]uint64{}
	for _, run := range d.runs {
		for e, err := range run.From("") {
			if err != nil {
				return nil, err
			}
			all[binary.BigEndian.Uint64([]byte(e.Key))] = numberIn(e.Value)
		}
	}
	maps.Copy(all, d.fresh)
	return all, nil
}

// Fresh yields the numbers of the entries that are in no run.
func (d *Digests) Fresh() iter.Seq[uint64] { return maps.Values(d.fresh) }

// numberIn decodes the value of an entry of a run.
func numberIn(value string) uint64 {
	r := reader{rest: value}
	return r.uvarint()
}

// filterOf returns the filter of digests.
func filterOf(digests []uint64) string {
	f := make([]byte, len(digests)*filterBits/8)
	for _, digest := range digests {
		for bit := range probes(digest, len(f)) {
			f[bit/8] |= 1 << (bit % 8)
		}
	}
	return string(f)
}

func inFilter(f string, digest uint64) bool {
	for bit := range probes(digest, len(f)) {
		if f[bit/8]&(1<<(bit%8)) == 0 {
			return false
		}
	}
	return true
}

// probes yields the bits of a digest in a filter of some bytes.
func probes(digest uint64, size int) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		at, step := uint32(digest), uint32(digest>>32)|1
		for range filterProbes {
			if !yield(uint64(at) * uint64(size) * 8 >> 32) {
				return
			}
			at += step
		}
	}
}

// numbered is an entry.
type numbered struct{ digest, number uint64 }

// Seal makes runs of the entries with the least numbers, while there are enough for one. It makes no more than a few.
// It returns all pages that are sealed and not stored. It makes none while the page of the newest filter is absent.
func (d *Digests) Seal() []Part {
	if n := d.lengthOfRun(); d.Behind() {
		all := make([]numbered, 0, len(d.fresh))
		for digest, number := range d.fresh {
			all = append(all, numbered{digest, number})
		}
		slices.SortFunc(all, func(a, b numbered) int {
			return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.digest, b.digest))
		})
		for range min(len(all)/n, runsAtOnce) {
			d.seal(all[:n])
			all = all[n:]
		}
		if len(all) < n { // a map keeps the room of deleted entries
			d.fresh = maps.Collect(maps.All(d.fresh))
		}
	}
	parts := d.filters.Seal()
	for _, run := range d.runs {
		parts = append(parts, run.Seal()...)
	}
	return parts
}

// Behind reports whether Seal can make a run.
func (d *Digests) Behind() bool {
	return len(d.fresh) >= d.lengthOfRun() && d.filters.Need(runKey(len(d.runs))) == nil
}

// seal makes a run of entries.
func (d *Digests) seal(some []numbered) {
	slices.SortFunc(some, func(a, b numbered) int { return cmp.Compare(a.digest, b.digest) })
	run := &Table{}
	if d.length > 0 {
		run.SetLength(d.length / 2)
	}
	digests := make([]uint64, len(some))
	for i, e := range some {
		if i%run.pageLength() == 0 {
			run.pages = append(run.pages, &page{})
		}
		entry := Entry{string(binary.BigEndian.AppendUint64(nil, e.digest)), string(binary.AppendUvarint(nil, e.number))}
		p := run.pages[len(run.pages)-1]
		if p.entries = append(p.entries, entry); i > 0 && len(p.entries) == 1 {
			p.first = entry.Key
		}
		digests[i] = e.digest
		delete(d.fresh, e.digest)
	}
	if d.filters.SetLength(filterPage); d.length > 0 {
		d.filters.SetLength(4)
	}
	d.filters.Put(runKey(len(d.runs)), filterOf(digests))
	d.runs = append(d.runs, run)
}

// runKey returns the key of the filter of a run.
func runKey(n int) string { return string(binary.BigEndian.AppendUint32(nil, uint32(n))) }

// tables yields the filters and the runs.
func (d *Digests) tables() iter.Seq[*Table] {
	return func(yield func(*Table) bool) {
		if !yield(&d.filters) {
			return
		}
		for _, run := range d.runs {
			if !yield(run) {
				return
			}
		}
	}
}

// Stored notes that a page is stored. It may leave memory.
func (d *Digests) Stored(sum Sum) {
	for t := range d.tables() {
		before := len(t.cached)
		t.Stored(sum)
		d.noteCached(t, before)
	}
}

// noteCached notes the pages of a run that may leave memory, beside those before.
func (d *Digests) noteCached(t *Table, before int) {
	for range len(t.cached) - before {
		if t != &d.filters {
			d.cached = append(d.cached, t)
		}
	}
}

// PageOut lets stored pages of runs leave memory until at most some are left.
func (d *Digests) PageOut(most int) {
	for len(d.cached) > most {
		t := d.cached[0]
		t.PageOut(len(t.cached) - 1)
		d.cached = slices.Delete(d.cached, 0, 1)
	}
}

// Gone returns the sums of pages that are of no use to the present map, and forgets them.
func (d *Digests) Gone() []Sum {
	gone := append(d.gone, d.filters.Gone()...)
	if d.gone = nil; len(gone) == 0 {
		return nil
	}
	used := map[Sum]bool{}
	for sum := range d.Sums() {
		used[sum] = true
	}
	return slices.DeleteFunc(gone, func(sum Sum) bool { return used[sum] })
}

// Sums yields the sums of the sealed pages.
func (d *Digests) Sums() iter.Seq[Sum] {
	return func(yield func(Sum) bool) {
		for t := range d.tables() {
			for sum := range t.Sums() {
				if !yield(sum) {
					return
				}
			}
		}
	}
}

// PagedOut returns the sums of the pages that are not in memory.
func (d *Digests) PagedOut() []Sum {
	var sums []Sum
	for t := range d.tables() {
		sums = append(sums, t.PagedOut()...)
	}
	return sums
}

// Lacks reports whether a page with a sum is absent.
func (d *Digests) Lacks(sum Sum) bool {
	for t := range d.tables() {
		if t.Lacks(sum) {
			return true
		}
	}
	return false
}

// PageIn brings a page into memory if it is absent. It fails for bytes that are not those of the page.
func (d *Digests) PageIn(sum Sum, data []byte) error {
	for t := range d.tables() {
		before := len(t.cached)
		if err := t.PageIn(sum, data); err != nil {
			return err
		}
		d.noteCached(t, before)
	}
	return nil
}

// Replace takes the entries of another map, all of whose pages are in memory. The other map must not be used any more.
func (d *Digests) Replace(whole *Digests) {
	gone := slices.AppendSeq(d.Gone(), d.Sums())
	*d = Digests{fresh: whole.fresh, runs: whole.runs, filters: whole.filters, cached: whole.cached, gone: gone, length: d.length}
}

// Head encodes the map without the sealed pages: the new entries, the filters, and the runs.
func (d *Digests) Head() []byte {
	b := binary.AppendUvarint(nil, uint64(len(d.fresh)))
	for _, digest := range slices.Sorted(maps.Keys(d.fresh)) {
		b = binary.AppendUvarint(binary.BigEndian.AppendUint64(b, digest), d.fresh[digest])
	}
	for t := range d.tables() {
		b = appendText(b, string(t.Head()))
	}
	return b
}

// RestoreHead decodes the result of Head into an empty map. The sealed pages count as stored.
func (d *Digests) RestoreHead(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	r := reader{rest: string(b)}
	for range min(r.uvarint(), uint64(len(b))) {
		if digest := r.take(8); !r.bad {
			d.Put(binary.BigEndian.Uint64([]byte(digest)), r.uvarint())
		}
	}
	if err := d.filters.RestoreHead([]byte(r.text())); err != nil {
		return err
	}
	for len(r.rest) > 0 {
		run := &Table{}
		if err := run.RestoreHead([]byte(r.text())); err != nil {
			return err
		}
		d.runs = append(d.runs, run)
	}
	if r.bad {
		return errDamaged
	}
	return nil
}
