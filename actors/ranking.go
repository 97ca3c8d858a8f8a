package actors

import (
	"bytes"
	"container/heap"

	"parley/actors/view"
	"parley/capabilities"
	"parley/mailbox/quota"
)

// The accounts that use most of their quotas are kept in order. To show them takes no look at all others. Each account
// is in a heap by what it used when that last changed. It uses less as time goes by: the use of a day ends with the day, and
// processor time is restored. So the first of the heap is only a bound. It is computed anew when it is shown, and sinks to its
// place. The work of one look is bounded. After midnight the order is right again once a few looks have sorted it.

// maxSinks bounds the accounts that one look computes anew beside those that it shows.
const maxSinks = 64

// rank is the place of an account that is the head of a family.
type rank struct {
	head  capabilities.ID
	share float64
	daily int64
	at    int // in the heap
}

// ranking is a heap of accounts: those with the largest share first, and of these those that wrote most today.
type ranking []*rank

func (r ranking) Len() int           { return len(r) }
func (r ranking) Less(i, j int) bool { return r[i].isBefore(r[j]) }

func (r ranking) Swap(i, j int) {
	r[i], r[j] = r[j], r[i]
	r[i].at, r[j].at = i, j
}

// Push implements heap.Interface.
func (r *ranking) Push(x any) {
	k := x.(*rank)
	k.at = len(*r)
	*r = append(*r, k)
}

// Pop implements heap.Interface.
func (r *ranking) Pop() any {
	last := len(*r) - 1
	k := (*r)[last]
	*r = (*r)[:last]
	return k
}

func (k *rank) isBefore(other *rank) bool {
	switch {
	case k.share != other.share:
		return k.share > other.share
	case k.daily != other.daily:
		return k.daily > other.daily
	}
	return bytes.Compare(k.head.ULID[:], other.head.ULID[:]) < 0
}

// rerank puts the account that an agent shares in its place. The caller has the lock.
func (a *accounts) rerank(id capabilities.ID, now capabilities.Time) {
	k := a.known[a.head(id)]
	if k == nil { // it is ranked when it is known
		return
	}
	if k.rank == nil {
		k.rank = &rank{head: a.head(id)}
		a.measure(k.rank, now)
		heap.Push(&a.ranked, k.rank)
		return
	}
	a.measure(k.rank, now)
	heap.Fix(&a.ranked, k.rank.at)
}

// measure sets what an account uses now, and reports whether that is another than it was. The caller has the lock.
func (a *accounts) measure(k *rank, now capabilities.Time) bool {
	used := a.used(k.head, now)
	_, share := used.Fullest(a.quotas(k.head))
	changed := share != k.share || used[quota.Daily] != k.daily
	k.share, k.daily = share, used[quota.Daily]
	return changed
}

// heaviest returns the accounts that use the largest shares of their quotas. Those with equal shares are ordered by what they
// wrote today.
func (a *accounts) heaviest(most int, now capabilities.Time) []view.AgentUse {
	a.mu.Lock()
	defer a.mu.Unlock()
	var first ranking
	for sinks := 0; len(first) < most && len(a.ranked) > 0; {
		if top := a.ranked[0]; sinks < maxSinks && a.measure(top, now) {
			heap.Fix(&a.ranked, 0)
			sinks++
			continue
		}
		first = append(first, heap.Pop(&a.ranked).(*rank))
	}
	all := make([]view.AgentUse, len(first))
	for i, k := range first {
		all[i] = a.useLocked(k.head, now)
		heap.Push(&a.ranked, k)
	}
	return all
}
