package due

import (
	"container/heap"

	"parley/capabilities"
)

// Item is a key with its time.
type Item[K any] struct {
	At  capabilities.Time
	Key K
}

// Queue holds items by their times. The zero value is empty.
type Queue[K any] struct{ items order[K] }

// Len returns the number of items.
func (q *Queue[K]) Len() int { return len(q.items) }

// Add adds an item.
func (q *Queue[K]) Add(at capabilities.Time, key K) { heap.Push(&q.items, Item[K]{At: at, Key: key}) }

// First returns an item with the earliest time. It reports false for an empty queue.
func (q *Queue[K]) First() (Item[K], bool) {
	if len(q.items) == 0 {
		return Item[K]{}, false
	}
	return q.items[0], true
}

// Drop removes the item that First returns.
func (q *Queue[K]) Drop() { heap.Pop(&q.items) }

// Until returns the items whose times are not after a time, in no order. It looks at no more than twice as many others.
func (q *Queue[K]) Until(now capabilities.Time) []Item[K] { return q.items.until(nil, 0, now) }

// order is a heap with the earliest item on top.
type order[K any] []Item[K]

func (o order[K]) until(found []Item[K], i int, now capabilities.Time) []Item[K] {
	if i >= len(o) || o[i].At > now {
		return found
	}
	found = append(found, o[i])
	return o.until(o.until(found, 2*i+1, now), 2*i+2, now)
}

func (o order[K]) Len() int { return len(o) }

func (o order[K]) Less(i, j int) bool { return o[i].At < o[j].At }

func (o order[K]) Swap(i, j int) { o[i], o[j] = o[j], o[i] }

func (o *order[K]) Push(x any) { *o = append(*o, x.(Item[K])) }

func (o *order[K]) Pop() any {
	old := *o
	last := old[len(old)-1]
	*o = old[:len(old)-1]
	return last
}
