package index

import (
	"cmp"
	"iter"
	"slices"
)

// maxRecent is the number of changes that are remembered at least. For a version before those, all entries are looked at.
const maxRecent = 1024

// Changes are the newest changes of messages, oldest first. Those of a message that changed again later count
// for nothing.
type Changes struct {
	all  []Change
	from uint64 // all changes after this version are here
}

// Change is a change of a message at a version of the mailbox.
type Change struct{ Version, Number uint64 }

// Add adds a change. Versions come in order.
func (r *Changes) Add(version, number uint64) {
	if last := len(r.all) - 1; last >= 0 && r.all[last] == (Change{version, number}) {
		return
	}
	if len(r.all) >= 2*maxRecent {
		r.from = r.all[maxRecent-1].Version
		r.all = append(r.all[:0], r.all[maxRecent:]...)
	}
	r.all = append(r.all, Change{version, number})
}

// Knows reports whether all changes after a version are known.
func (r *Changes) Knows(version uint64) bool { return version >= r.from }

// After returns the changes after a version, oldest first. The slice belongs to the list.
func (r *Changes) After(version uint64) []Change {
	i, _ := slices.BinarySearchFunc(r.all, version+1, func(c Change, v uint64) int { return cmp.Compare(c.Version, v) })
	return r.all[i:]
}

// Numbers is an ascending list of numbers.
type Numbers struct {
	all  []uint64
	gone int // removed numbers that are still in all
}

// removed marks a number that was removed.
const removed = 1 << 63

// Add adds a number that is greater than all others.
func (l *Numbers) Add(n uint64) { l.all = append(l.all, n) }

// Len returns the number of numbers in the list.
func (l *Numbers) Len() int { return len(l.all) - l.gone }

func (l *Numbers) search(n uint64) (int, bool) {
	return slices.BinarySearchFunc(l.all, n, func(a, b uint64) int { return cmp.Compare(a&^removed, b) })
}

// Remove removes a number. It does nothing for one that is not there.
func (l *Numbers) Remove(n uint64) {
	i, found := l.search(n)
	if !found || l.all[i]&removed != 0 {
		return
	}
	l.all[i] |= removed
	if l.gone++; l.gone > 32 && l.gone > len(l.all)/2 {
		l.all = slices.DeleteFunc(l.all, func(n uint64) bool { return n&removed != 0 })
		l.gone = 0
	}
}

// From yields the numbers from one on.
func (l *Numbers) From(first uint64) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		i, _ := l.search(first)
		for _, n := range l.all[i:] {
			if n&removed == 0 && !yield(n) {
				return
			}
		}
	}
}

// Newest yields the numbers from the greatest on.
func (l *Numbers) Newest() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for _, n := range slices.Backward(l.all) {
			if n&removed == 0 && !yield(n) {
				return
			}
		}
	}
}

// Restart begins a list of changes anew, of a mailbox at a version.
func (r *Changes) Restart(version uint64) { *r = Changes{from: version} }
