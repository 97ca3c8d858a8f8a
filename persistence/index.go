package persistence

import (
	"encoding/binary"
	"fmt"
	"iter"

	"github.com/oklog/ulid/v2"

	"parley/capabilities"
	"parley/events"
)

// Mailbox is the index entry of a mailbox.
type Mailbox struct {
	Version  uint64         // the number of its events
	Summary  events.Summary // as its last section has it
	Snapshot uint64         // the version of its newest snapshot; 0 if none is known
}

// index has the commits with events of each mailbox. It is not safe for concurrent use.
type index struct {
	node     capabilities.NodeID
	entries  map[ulid.ULID]*entry
	events   uint64
	sections uint64
}

// entry is one mailbox of the index. Its steps are two varints for each commit: the distance from the commit before,
// and the number of events. They are only appended to.
type entry struct {
	Mailbox
	last  uint64 // commit
	steps []byte
}

// step is one commit of a mailbox.
type step struct {
	commit uint64
	first  uint64 // the version of the first of its events there
	count  uint64
}

func newIndex(node capabilities.NodeID) *index {
	return &index{node: node, entries: make(map[ulid.ULID]*entry)}
}

// add adds a commit. It adds nothing if the commit's versions do not follow those of the index.
func (x *index) add(c *events.Commit) error {
	if err := x.check(c); err != nil {
		return err
	}
	for i := 0; i < len(c.Sections); {
		s := &c.Sections[i]
		count := uint64(s.Count)
		summary := s.Summary
		for i++; i < len(c.Sections) && c.Sections[i].Mailbox == s.Mailbox; i++ {
			count += uint64(c.Sections[i].Count)
			summary = c.Sections[i].Summary
		}
		x.addSection(c.Number, s.Mailbox.ULID, count, summary)
	}
	x.sections += uint64(len(c.Sections))
	return nil
}

func (x *index) addSection(commit uint64, who ulid.ULID, count uint64, summary events.Summary) {
	e := x.entries[who]
	if e == nil {
		if count == 0 {
			return
		}
		e = new(entry)
		x.entries[who] = e
	}
	e.Summary = summary
	e.Version += count
	x.events += count
	if count == 0 {
		return
	}
	e.steps = binary.AppendUvarint(e.steps, commit-e.last) // 0 for a second section of the mailbox in one commit
	e.steps = binary.AppendUvarint(e.steps, count)
	e.last = commit
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
			if e := x.entries[s.Mailbox.ULID]; e != nil {
				version = e.Version
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

// walk returns the commits that have events of a mailbox, oldest first. It needs no lock.
func walk(steps []byte) iter.Seq[step] {
	return func(yield func(step) bool) {
		var s step
		for next := uint64(1); len(steps) > 0; {
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
