package mailbox

import (
	"cmp"
	"container/heap"
	"iter"
	"slices"

	"parley/mailbox/index"
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

func (l *Mail) listed(n uint64, e *index.Entry) Listed {
	return Listed{
		Number: n, Changed: uint64(e.Changed),
		Sent: e.Is(index.Sent), Received: e.Is(index.Received), Dismissed: e.Is(index.Dismissed), Open: e.IsOpen(),
	}
}

// List yields all messages from a number on.
func (l *Mail) List(first uint64) iter.Seq[Listed] {
	return func(yield func(Listed) bool) {
		for n, e := range l.index.From(first) {
			if !yield(l.listed(n, e)) {
				return
			}
		}
	}
}

// ListBack yields the messages before a number, the newest first.
func (l *Mail) ListBack(before uint64) iter.Seq[Listed] {
	return func(yield func(Listed) bool) {
		for n := min(before, l.Len()); n > 0; n-- {
			if !yield(l.listed(n-1, l.index.At(n-1))) {
				return
			}
		}
	}
}

// ListOpen yields the open forms that the agent received, from a number on.
func (l *Mail) ListOpen(first uint64) iter.Seq[Listed] {
	return func(yield func(Listed) bool) {
		for n := range l.waiting.From(first) {
			if !yield(l.listed(n, l.index.At(n))) {
				return
			}
		}
	}
}

// ListChanged returns the messages that changed after a version and that fit, in the order of their changes. If these
// are more than limit, it returns the first limit of them, with all that changed at the same version as the last one,
// and whether there are more.
func (l *Mail) ListChanged(version uint64, limit int, fits func(Listed) bool) (all []Listed, more bool) {
	var changed iter.Seq2[uint64, *index.Entry]
	if l.recent.Knows(version) {
		changed = l.changedLately(version)
	} else {
		changed = l.index.From(0)
	}
	var first latest // of those that fit, the limit that changed first
	for n, e := range changed {
		if uint64(e.Changed) <= version || !fits(l.listed(n, e)) {
			continue
		}
		if len(first) < limit {
			heap.Push(&first, e.Changed)
		} else if e.Changed < first[0] {
			first[0] = e.Changed
			heap.Fix(&first, 0)
		}
	}
	if len(first) == 0 {
		return nil, false
	}
	until := first[0]
	for n, e := range changed {
		switch listed := l.listed(n, e); {
		case uint64(e.Changed) <= version || !fits(listed):
		case e.Changed <= until:
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

func (l *Mail) changedLately(version uint64) iter.Seq2[uint64, *index.Entry] {
	return func(yield func(uint64, *index.Entry) bool) {
		for _, c := range l.recent.After(version) {
			if e := l.index.At(c.Number); uint64(e.Changed) == c.Version && !yield(c.Number, e) {
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

func byNumber(a, b *Message) int { return cmp.Compare(a.Number, b.Number) }
