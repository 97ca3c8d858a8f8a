package table

import (
	"encoding/hex"
	"iter"
	"slices"
	"sort"
	"strings"
)

// Entry is a key with its value.
type Entry struct{ Key, Value string }

// PagedOut reports a page that is not in memory, by its sum.
type PagedOut Sum

// Error implements error.
func (a PagedOut) Error() string {
	return "page " + hex.EncodeToString(a[:4]) + " of a table is not in memory"
}

// Table is an ordered map. The zero Table is empty.
type Table struct {
	pages  []*page
	cached []*page // stored pages that are in memory, in the order in which they became so
	gone   []Sum   // sums of pages that the table does not have any more
	length int     // the largest number of entries in a page; 0 for maxEntries
}

// SetLength sets the largest number of entries in a page, before the first entry. It is for tests.
func (t *Table) SetLength(n int) { t.length = n }

func (t *Table) pageLength() int {
	if t.length == 0 {
		return maxEntries
	}
	return t.length
}

// page has the entries from its first key up to the next page. An open page is in memory. A sealed page does not change.
type page struct {
	first   string  // "" for the first page
	entries []Entry // by key; nil if they are not in memory
	sealed  bool
	stored  bool
	sum     Sum // of a sealed page
}

// maxEntries is the largest number of entries in a page of any table.
const maxEntries = 1024

// at returns the place of the page of a key; -1 for an empty table.
func (t *Table) at(key string) int {
	return sort.Search(len(t.pages), func(i int) bool { return t.pages[i].first > key }) - 1
}

func (p *page) isAbsent() bool { return p.sealed && p.entries == nil }

func (p *page) find(key string) (int, bool) {
	return slices.BinarySearchFunc(p.entries, key, func(e Entry, key string) int { return strings.Compare(e.Key, key) })
}

// Need fails with PagedOut if the page of a key is not in memory.
func (t *Table) Need(key string) error {
	if i := t.at(key); i >= 0 && t.pages[i].isAbsent() {
		return PagedOut(t.pages[i].sum)
	}
	return nil
}

// Get returns the value of a key, and whether there is one. It fails with PagedOut.
func (t *Table) Get(key string) (string, bool, error) {
	i := t.at(key)
	if i < 0 {
		return "", false, nil
	}
	if err := t.Need(key); err != nil {
		return "", false, err
	}
	at, there := t.pages[i].find(key)
	if !there {
		return "", false, nil
	}
	return t.pages[i].entries[at].Value, true, nil
}

// From yields the entries from a key on, in order. It yields PagedOut in place of a page that is not in memory, and ends
// there.
func (t *Table) From(key string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for i := max(t.at(key), 0); i < len(t.pages); i++ {
			p := t.pages[i]
			if p.isAbsent() {
				yield(Entry{}, PagedOut(p.sum))
				return
			}
			at, _ := p.find(key)
			for _, e := range p.entries[at:] {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// Put sets the value of a key. The page of the key has to be in memory.
func (t *Table) Put(key, value string) {
	i := t.at(key)
	if i < 0 {
		t.pages, i = []*page{{}}, 0
	}
	p := t.pages[i]
	at, there := p.find(key)
	if there && p.entries[at].Value == value {
		return
	}
	t.open(p)
	if there {
		p.entries[at].Value = value
		return
	}
	p.entries = slices.Insert(p.entries, at, Entry{key, value})
	if len(p.entries) > t.pageLength() {
		t.split(i, at)
	}
}

// split splits a page with too many entries, the last of which is at a place. Keys that grow fill pages.
func (t *Table) split(i, last int) {
	p := t.pages[i]
	half := len(p.entries) / 2
	if last == len(p.entries)-1 {
		half = last
	}
	next := &page{first: p.entries[half].Key, entries: slices.Clone(p.entries[half:])}
	p.entries = slices.Clone(p.entries[:half])
	t.pages = slices.Insert(t.pages, i+1, next)
}

// Delete removes a key. The page of the key has to be in memory.
func (t *Table) Delete(key string) {
	i := t.at(key)
	if i < 0 {
		return
	}
	p := t.pages[i]
	at, there := p.find(key)
	if !there {
		return
	}
	t.open(p)
	p.entries = slices.Delete(p.entries, at, at+1)
}

// open opens a page to be changed.
func (t *Table) open(p *page) {
	if !p.sealed {
		return
	}
	if p.entries == nil {
		panic("table: a page that is changed is not in memory")
	}
	t.gone = append(t.gone, p.sum) // it may be on its way to the store
	t.cached = slices.DeleteFunc(t.cached, func(c *page) bool { return c == p })
	p.sealed, p.stored, p.entries = false, false, slices.Clone(p.entries)
}
