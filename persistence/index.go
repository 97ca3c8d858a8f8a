package persistence

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"sort"

	"github.com/oklog/ulid/v2"

	"parley/capabilities"
	"parley/events"
)

// Mailbox is the index entry of a mailbox.
type Mailbox struct {
	Version  uint64         // the number of its events
	Summary  events.Summary // as its last section has it
	Snapshot uint64         // the version of its newest snapshot; 0 if that is not known, as before the first Load
	Note     string         // of its newest section with one; "" if none had one
}

// index has the commits with events of each mailbox. It is not safe for concurrent use.
type index struct {
	node     capabilities.NodeID
	entries  table
	order    []*entry // by ID
	events   uint64
	sections uint64
	open     uint64 // open forms in all summaries
}

// entry is one mailbox of the index.
type entry struct {
	id      ulid.ULID
	version uint64
	last    uint64 // commit
	summary events.Summary
	note    string
	steps   []byte       // see trail
	marks   *[]milestone // nil for short trails
}

// table finds entries by their IDs. A map would take three times as much memory.
type table struct {
	slots []*entry // a power of two, with linear probing; nil is free
	used  int
}

// sized returns a table with room for n entries.
func sized(n int) table {
	size := 8
	for size < n+n/2 {
		size *= 2
	}
	return table{slots: make([]*entry, size)}
}

// firstSlot returns the place at which the search for an ID begins, before the mask.
func firstSlot(id ulid.ULID) uint64 {
	const golden = 0x9e3779b97f4a7c15 // spreads IDs that count up
	return (binary.BigEndian.Uint64(id[8:]) ^ binary.BigEndian.Uint64(id[:8])) * golden >> 20
}

// get returns the entry of an ID, or nil.
func (t *table) get(id ulid.ULID) *entry {
	if t.used == 0 {
		return nil
	}
	at, mask := firstSlot(id), uint64(len(t.slots)-1)
	for ; ; at++ {
		if e := t.slots[at&mask]; e == nil || e.id == id {
			return e
		}
	}
}

// enter enters an entry whose ID is not in the table, which has room. It looks at no other entry, since each look is a
// miss of the processor's cache.
func (t *table) enter(e *entry) {
	at, mask := firstSlot(e.id), uint64(len(t.slots)-1)
	for t.slots[at&mask] != nil {
		at++
	}
	t.slots[at&mask] = e
}

// put adds an entry whose ID is not in the table.
func (t *table) put(e *entry) {
	if t.used+t.used/2 >= len(t.slots) {
		larger := sized(2 * (t.used + 1))
		for _, old := range t.slots {
			if old != nil {
				larger.enter(old)
			}
		}
		t.slots = larger.slots
	}
	t.enter(e)
	t.used++
}

// trail has the commits of a mailbox. A step is two varints: the distance from the commit before, and the number of
// events. A milestone points at a step about every milestoneBytes. Both are only appended to, so readers need no lock.
type trail struct {
	steps []byte
	marks []milestone
}

// milestone is the place of a step in a trail.
type milestone struct {
	at     int    // offset of the step
	commit uint64 // the commit before it
	first  uint64 // the version of its first event
}

// milestoneBytes is the least distance of two milestones: some 256 steps.
const milestoneBytes = 512

// step is one commit of a mailbox.
type step struct {
	commit uint64
	first  uint64 // the version of the first of its events there
	count  uint64
}

func newIndex(node capabilities.NodeID) *index {
	return &index{node: node}
}

// add adds a commit. It adds nothing if the commit's versions do not follow those of the index.
func (x *index) add(c *events.Commit) error {
	if err := x.check(c); err != nil {
		return err
	}
	for i := 0; i < len(c.Sections); {
		s := c.Sections[i]
		for i++; i < len(c.Sections) && c.Sections[i].Mailbox == s.Mailbox; i++ {
			next := &c.Sections[i]
			s.Count += next.Count
			s.Summary = next.Summary
			if next.Note != "" {
				s.Note = next.Note
			}
		}
		x.addSection(c.Number, &s)
	}
	x.sections += uint64(len(c.Sections))
	return nil
}

func (x *index) addSection(commit uint64, s *events.Section) {
	e := x.entries.get(s.Mailbox.ULID)
	if e == nil {
		if s.Count == 0 {
			return
		}
		e = &entry{id: s.Mailbox.ULID}
		x.insert(e)
	}
	x.open += uint64(s.Summary.Open) - uint64(e.summary.Open)
	e.summary = s.Summary
	if s.Note != "" {
		e.note = s.Note
	}
	if s.Count == 0 {
		return
	}
	x.events += uint64(s.Count)
	e.addStep(commit, uint64(s.Count))
}

// insert adds an entry to the map and to the order. IDs grow with time, so nearly all go to the end.
func (x *index) insert(e *entry) {
	x.entries.put(e)
	at := len(x.order)
	if at > 0 && x.order[at-1].id.Compare(e.id) > 0 {
		at = x.after(e.id)
	}
	x.order = slices.Insert(x.order, at, e)
}

// after returns the place in the order of the first mailbox behind an ID.
func (x *index) after(id ulid.ULID) int {
	return sort.Search(len(x.order), func(i int) bool { return x.order[i].id.Compare(id) > 0 })
}

// addStep adds count events of a commit. The distance is 0 for a second section of the mailbox in one commit.
func (e *entry) addStep(commit, count uint64) {
	last := 0
	if e.marks != nil {
		last = (*e.marks)[len(*e.marks)-1].at
	}
	if len(e.steps)-last >= milestoneBytes {
		if e.marks == nil {
			e.marks = new([]milestone)
		}
		*e.marks = append(*e.marks, milestone{len(e.steps), e.last, e.version + 1})
	}
	e.steps = binary.AppendUvarint(e.steps, commit-e.last)
	e.steps = binary.AppendUvarint(e.steps, count)
	e.last = commit
	e.version += count
}

// trail returns the trail of the entry.
func (e *entry) trail() trail {
	t := trail{steps: e.steps}
	if e.marks != nil {
		t.marks = *e.marks
	}
	return t
}

// check refuses a commit whose versions do not follow those of the index.
func (x *index) check(c *events.Commit) error {
	var ahead map[ulid.ULID]uint64 // for commits with a mailbox twice
	if len(c.Sections) > 1 {
		ahead = make(map[ulid.ULID]uint64, len(c.Sections))
	}
	for i := range c.Sections {
		s := &c.Sections[i]
		if s.Mailbox.Node != x.node {
			return fmt.Errorf("mailbox %s is another node's", s.Mailbox)
		}
		version, seen := ahead[s.Mailbox.ULID]
		if !seen {
			if e := x.entries.get(s.Mailbox.ULID); e != nil {
				version = e.version
			}
		}
		if s.Count > 0 && s.First != version+1 {
			return fmt.Errorf("mailbox %s has version %d, and its next events begin with %d", s.Mailbox, version, s.First)
		}
		if ahead != nil {
			ahead[s.Mailbox.ULID] = version + uint64(s.Count)
		}
	}
	return nil
}

// equal reports whether two indexes have the same entries.
func (x *index) equal(y *index) bool {
	return x.events == y.events && x.sections == y.sections && x.open == y.open &&
		slices.EqualFunc(x.order, y.order, func(a, b *entry) bool {
			return a.id == b.id && a.version == b.version && a.last == b.last && a.summary == b.summary && a.note == b.note && bytes.Equal(a.steps, b.steps)
		})
}

// from returns the commits of a mailbox, oldest first. They begin with a step that is not behind the one with a
// version. Few steps come before that one.
func (t trail) from(version uint64) iter.Seq[step] {
	start := milestone{first: 1}
	if n := sort.Search(len(t.marks), func(i int) bool { return t.marks[i].first > version }); n > 0 {
		start = t.marks[n-1]
	}
	return func(yield func(step) bool) {
		s := step{commit: start.commit}
		next := start.first
		for steps := t.steps[start.at:]; len(steps) > 0; {
			gap, n := binary.Uvarint(steps)
			count, m := binary.Uvarint(steps[max(n, 0):])
			if n <= 0 || m <= 0 {
				return // an index snapshot is checked before it is used
			}
			steps = steps[n+m:]
			s = step{commit: s.commit + gap, first: next, count: count}
			next += count
			if !yield(s) {
				return
			}
		}
	}
}

// between returns the numbers of the commits with versions first to last, ascending.
func (t trail) between(first, last uint64) []uint64 {
	var numbers []uint64
	for s := range t.from(first) {
		if s.first > last {
			break
		}
		if s.first+s.count > first && (len(numbers) == 0 || numbers[len(numbers)-1] != s.commit) {
			numbers = append(numbers, s.commit)
		}
	}
	return numbers
}

// versionAt returns the version of the mailbox after a commit.
func (t trail) versionAt(commit uint64) uint64 {
	if commit == 0 {
		return 0
	}
	start := uint64(1)
	if n := sort.Search(len(t.marks), func(i int) bool { return t.marks[i].commit > commit }); n > 0 {
		start = t.marks[n-1].first
	}
	version := start - 1
	for s := range t.from(start) {
		if s.commit > commit {
			break
		}
		version = s.first + s.count - 1
	}
	return version
}

// farAhead is the distance of versions from which a search is faster than a walk.
const farAhead = 4 * milestoneBytes

// with returns the numbers of the commits with some of the versions, ascending. The versions are ascending.
func (t trail) with(versions []uint64) []uint64 {
	var numbers []uint64
	for len(versions) > 0 {
		before := len(versions)
		for s := range t.from(versions[0]) {
			end := s.first + s.count
			if versions[0] >= end {
				continue
			}
			for len(versions) > 0 && versions[0] < end {
				versions = versions[1:]
			}
			if len(numbers) == 0 || numbers[len(numbers)-1] != s.commit {
				numbers = append(numbers, s.commit)
			}
			if len(versions) == 0 || versions[0] > end+farAhead {
				break
			}
		}
		if len(versions) == before {
			break // they are not in the trail
		}
	}
	return numbers
}
