package mailbox

import (
	"cmp"
	"container/heap"
	"iter"
	"slices"
)

// Listed is how a message is listed, without the message.
type Listed struct {
	Number    uint64
	Changed   uint64 // the mailbox's version after the last event about it
	Sent      bool
	Received  bool
	Dismissed bool
	Open      bool // a form that has not ended
}

func (l *Mail) listed(n uint64, e *entry) Listed {
	return Listed{
		Number: n, Changed: uint64(e.changed),
		Sent: e.is(isSent), Received: e.is(isReceived), Dismissed: e.is(isDismissed), Open: e.isOpen(),
	}
}

// List yields all messages from a number on.
func (l *Mail) List(first uint64) iter.Seq[Listed] {
	return func(yield func(Listed) bool) {
		for n, e := range l.history.from(first) {
			if !yield(l.listed(n, e)) {
				return
			}
		}
	}
}

// ListOpen yields the open forms that the agent received, from a number on.
func (l *Mail) ListOpen(first uint64) iter.Seq[Listed] {
	return func(yield func(Listed) bool) {
		for n := range l.waiting.from(first) {
			if !yield(l.listed(n, l.history.at(n))) {
				return
			}
		}
	}
}

// ListChanged returns the messages that changed after a version and that fit, in the order of their changes. If these
// are more than limit, it returns the first limit of them, with all that changed at the same version as the last one,
// and whether there are more.
func (l *Mail) ListChanged(version uint64, limit int, fits func(Listed) bool) (all []Listed, more bool) {
	var changed iter.Seq2[uint64, *entry]
	if l.recent.since(version) {
		changed = l.changedLately(version)
	} else {
		changed = l.history.from(0)
	}
	var first latest // of those that fit, the limit that changed first
	for n, e := range changed {
		if uint64(e.changed) <= version || !fits(l.listed(n, e)) {
			continue
		}
		if len(first) < limit {
			heap.Push(&first, e.changed)
		} else if e.changed < first[0] {
			first[0] = e.changed
			heap.Fix(&first, 0)
		}
	}
	if len(first) == 0 {
		return nil, false
	}
	until := first[0]
	for n, e := range changed {
		switch listed := l.listed(n, e); {
		case uint64(e.changed) <= version || !fits(listed):
		case e.changed <= until:
			all = append(all, listed)
		default:
			more = true
		}
	}
	slices.SortFunc(all, func(a, b Listed) int {
		return cmp.Or(cmp.Compare(a.Changed, b.Changed), cmp.Compare(a.Number, b.Number))
	})
	return all, more
}

func (l *Mail) changedLately(version uint64) iter.Seq2[uint64, *entry] {
	return func(yield func(uint64, *entry) bool) {
		for _, c := range l.recent.after(version) {
			if e := l.history.at(c.number); uint64(e.changed) == c.version && !yield(c.number, e) {
				return
			}
		}
	}
}

// latest is a heap of versions with the largest on top.
type latest []uint32

func (v latest) Len() int           { return len(v) }
func (v latest) Less(i, j int) bool { return v[i] > v[j] }
func (v latest) Swap(i, j int)      { v[i], v[j] = v[j], v[i] }
func (v *latest) Push(x any)        { *v = append(*v, x.(uint32)) }
func (v *latest) Pop() any          { panic("nothing is taken off") }

// maxRecent is the number of changes that are remembered at least. For an older version, all entries are looked at.
const maxRecent = 4096

// recentChanges are the newest changes of messages, oldest first. Those of a message that changed again later count
// for nothing.
type recentChanges struct {
	all   []change
	known uint64 // all changes after this version are here
}

type change struct{ version, number uint64 }

func (r *recentChanges) add(version, number uint64) {
	if last := len(r.all) - 1; last >= 0 && r.all[last] == (change{version, number}) {
		return
	}
	if len(r.all) >= 2*maxRecent {
		r.known = r.all[maxRecent-1].version
		r.all = append(r.all[:0], r.all[maxRecent:]...)
	}
	r.all = append(r.all, change{version, number})
}

// since reports whether all changes after a version are known.
func (r *recentChanges) since(version uint64) bool { return version >= r.known }

// after returns the changes after a version.
func (r *recentChanges) after(version uint64) []change {
	i, _ := slices.BinarySearchFunc(r.all, version+1, func(c change, v uint64) int { return cmp.Compare(c.version, v) })
	return r.all[i:]
}

// numberList is an ascending list of numbers. Numbers are added at its end.
type numberList struct {
	all  []uint64
	gone int // removed numbers that are still in all
}

// removed marks a number that was removed.
const removed = 1 << 63

func (l *numberList) add(n uint64) { l.all = append(l.all, n) }

func (l *numberList) search(n uint64) (int, bool) {
	return slices.BinarySearchFunc(l.all, n, func(a, b uint64) int { return cmp.Compare(a&^removed, b) })
}

func (l *numberList) remove(n uint64) {
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

// from yields the numbers from one on.
func (l *numberList) from(first uint64) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		i, _ := l.search(first)
		for _, n := range l.all[i:] {
			if n&removed == 0 && !yield(n) {
				return
			}
		}
	}
}

func byNumber(a, b *Message) int { return cmp.Compare(a.Number, b.Number) }
