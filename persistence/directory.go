package persistence

import (
	"iter"
	"sync"

	"github.com/oklog/ulid/v2"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// directory is the durable part of the log for readers: its last commit, and the index up to it.
type directory struct {
	node capabilities.NodeID

	mu    sync.RWMutex
	head  head
	index *index
}

// reset replaces the index, which covers the log up to a commit.
func (d *directory) reset(x *index, at head) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.index, d.head = x, at
}

// add adds the commit that follows the last one.
func (d *directory) add(f *frame) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.index.add(&f.Commit); err != nil {
		return err
	}
	d.head = head{mark{f.Number, f.hash}, f.At}
	return nil
}

// setSnapshot notes the version of a mailbox's newest snapshot. It ignores one that is newer than the index.
func (d *directory) setSnapshot(mailbox ulid.ULID, version uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.index.entries[mailbox]; e != nil && version <= e.Version {
		e.Snapshot = version
	}
}

// fits refuses a commit that could not be replayed.
func (d *directory) fits(c *events.Commit) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if err := d.index.check(c); err != nil {
		return parley.Refuse(parley.ReadOnly, "events were appended that do not follow the log: %v", err).
			WithHint("load the mailbox again and decide anew")
	}
	return nil
}

// Mailbox returns the index entry of a mailbox, and false if the mailbox has no events.
func (d *directory) Mailbox(id capabilities.ID) (Mailbox, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	e := d.index.entries[id.ULID]
	if e == nil || id.Node != d.node {
		return Mailbox{}, false
	}
	return e.Mailbox, true
}

// Mailboxes returns all mailboxes that have events at the time of the call, in no order.
func (d *directory) Mailboxes() iter.Seq2[capabilities.ID, Mailbox] {
	type pair struct {
		id ulid.ULID
		m  Mailbox
	}
	d.mu.RLock()
	all := make([]pair, 0, len(d.index.entries))
	for id, e := range d.index.entries {
		all = append(all, pair{id, e.Mailbox})
	}
	d.mu.RUnlock()
	return func(yield func(capabilities.ID, Mailbox) bool) {
		for _, p := range all {
			if !yield(capabilities.ID{ULID: p.id, Node: d.node}, p.m) {
				return
			}
		}
	}
}

// steps returns the index entry of a mailbox and its commits, for walk.
func (d *directory) steps(mailbox capabilities.ID) (Mailbox, []byte) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	e := d.index.entries[mailbox.ULID]
	if e == nil || mailbox.Node != d.node {
		return Mailbox{}, nil
	}
	return e.Mailbox, e.steps
}

// copyIndex returns a copy of the index that shares the steps, since they are only appended to.
func (d *directory) copyIndex() (head, *index) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	x := d.index
	c := &index{node: x.node, entries: make(map[ulid.ULID]*entry, len(x.entries)), events: x.events, sections: x.sections}
	entries := make([]entry, 0, len(x.entries))
	for who, e := range x.entries {
		entries = append(entries, *e)
		c.entries[who] = &entries[len(entries)-1]
	}
	return d.head, c
}

// commitOf returns the number of the commit that has a version of a mailbox.
func (d *directory) commitOf(mailbox capabilities.ID, version uint64) (uint64, error) {
	m, steps := d.steps(mailbox)
	if version == 0 || version > m.Version {
		return 0, notDurable(mailbox, version)
	}
	for s := range walk(steps) {
		if version < s.first+s.count {
			return s.commit, nil
		}
	}
	return 0, parley.Refuse(parley.Internal, "the index has no version %d of mailbox %s", version, mailbox.ULID)
}

func (d *directory) lastCommit() head {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.head
}

// LastTime returns the time of the last commit, zero if there is none.
func (d *directory) LastTime() capabilities.Time { return d.lastCommit().at }
