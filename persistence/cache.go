package persistence

import (
	"sync"

	"parley/events"
)

// cacheBytes bounds the frames that are kept: mailboxes that are loaded one after another, as after a
// start, share most of theirs.
const cacheBytes = 8 << 20

// cache keeps the commits that were read or written last. Nobody changes a commit in it.
type cache struct {
	sync.Mutex
	room   int
	slots  map[uint64]cached
	oldest []uint64 // numbers in the order in which they came
}

type cached struct {
	commit *events.Commit
	hash   events.Hash
	size   int
}

func newCache(room int) *cache { return &cache{room: room, slots: make(map[uint64]cached)} }

func (c *cache) get(number uint64) (*events.Commit, events.Hash, bool) {
	c.Lock()
	defer c.Unlock()
	s, ok := c.slots[number]
	return s.commit, s.hash, ok
}

func (c *cache) put(commit *events.Commit, size int, hash events.Hash) {
	size += 256 + 160*len(commit.Sections) // what decoding adds
	c.Lock()
	defer c.Unlock()
	if _, ok := c.slots[commit.Number]; ok || size > c.room {
		return
	}
	c.slots[commit.Number] = cached{commit, hash, size}
	c.oldest = append(c.oldest, commit.Number)
	for c.room -= size; c.room < 0; {
		old := c.oldest[0]
		c.oldest = c.oldest[1:]
		c.room += c.slots[old].size
		delete(c.slots, old)
	}
}

// drop forgets all commits.
func (c *cache) drop() {
	c.Lock()
	defer c.Unlock()
	clear(c.slots)
	c.oldest = nil
}
