package persistence

import (
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"strings"
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
	saved map[ulid.ULID]uint64              // the versions of the newest snapshots, or unknownVersion
	parts map[ulid.ULID][][sha256.Size]byte // see FoundParts
}

// unknownVersion stands for the version of a snapshot that was not read yet.
const unknownVersion = 0

// reset replaces the index, which covers the log up to a commit.
func (d *directory) reset(x *index, at head) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.index, d.head, d.saved, d.parts = x, at, map[ulid.ULID]uint64{}, map[ulid.ULID][][sha256.Size]byte{}
}

// add adds the commit that follows the last one.
func (d *directory) add(f *frame) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.index.add(&f.Commit); err != nil {
		return err
	}
	d.head = head{Mark{Number: f.Number, Hash: f.hash}, f.At}
	return nil
}

// mayHaveSnapshot reports whether a mailbox has a snapshot that is newer than a version, as far as that is known.
func (d *directory) mayHaveSnapshot(mailbox ulid.ULID, version uint64) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	newest, there := d.saved[mailbox]
	return there && (newest == unknownVersion || newest > version)
}

// setSnapshot notes the version of a mailbox's newest snapshot. It ignores one that is newer than the index.
func (d *directory) setSnapshot(mailbox ulid.ULID, version uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.index.entries.get(mailbox); e != nil && version <= e.version {
		d.saved[mailbox] = version
	}
}

// foundObject notes a snapshot, or a part of one, by its name. It reports whether the name is that of either.
func (d *directory) foundObject(name string) bool {
	whose, digits, isPart := strings.Cut(name, ".")
	mailbox, err := ulid.ParseStrict(whose)
	sum, err2 := hex.DecodeString(digits)
	if err != nil || err2 != nil || isPart && len(sum) != sha256.Size {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if isPart {
		d.parts[mailbox] = append(d.parts[mailbox], [sha256.Size]byte(sum))
	} else if d.index.entries.get(mailbox) != nil {
		d.saved[mailbox] = unknownVersion
	}
	return true
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
	e := d.index.entries.get(id.ULID)
	if e == nil || id.Node != d.node {
		return Mailbox{}, false
	}
	return d.shown(e), true
}

// shown returns an entry as readers see it. The lock is held.
func (d *directory) shown(e *entry) Mailbox {
	return Mailbox{Version: e.version, Summary: e.summary, Snapshot: d.saved[e.id], Note: e.note}
}

// Mailboxes returns all mailboxes that have events, in the order of their IDs. A mailbox that is added meanwhile may be
// left out.
func (d *directory) Mailboxes() iter.Seq2[capabilities.ID, Mailbox] {
	return d.each(func() []*entry { return d.index.order })
}

// MailboxesAfter is Mailboxes for those behind an ID.
func (d *directory) MailboxesAfter(after ulid.ULID) iter.Seq2[capabilities.ID, Mailbox] {
	return d.each(func() []*entry { return d.index.order[d.index.after(after):] })
}

// mailboxesAtOnce is the number of mailboxes that are read under one lock.
const mailboxesAtOnce = 512

// each returns the mailboxes of an order, which first returns with the lock held. The lock is not held between parts.
func (d *directory) each(first func() []*entry) iter.Seq2[capabilities.ID, Mailbox] {
	return func(yield func(capabilities.ID, Mailbox) bool) {
		ids := make([]ulid.ULID, 0, mailboxesAtOnce)
		all := make([]Mailbox, 0, mailboxesAtOnce)
		for order := first; ; order = func() []*entry { return d.index.order[d.index.after(ids[len(ids)-1]):] } {
			d.mu.RLock()
			part := order()
			ids, all = ids[:0], all[:0]
			for _, e := range part[:min(len(part), mailboxesAtOnce)] {
				ids, all = append(ids, e.id), append(all, d.shown(e))
			}
			d.mu.RUnlock()
			for i, id := range ids {
				if !yield(capabilities.ID{ULID: id, Node: d.node}, all[i]) {
					return
				}
			}
			if len(ids) < mailboxesAtOnce {
				return
			}
		}
	}
}

// trail returns the index entry of a mailbox and its commits.
func (d *directory) trail(mailbox capabilities.ID) (Mailbox, trail) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	e := d.index.entries.get(mailbox.ULID)
	if e == nil || mailbox.Node != d.node {
		return Mailbox{}, trail{}
	}
	return d.shown(e), e.trail()
}

// copyIndex returns a copy of the entries that shares what is only appended to.
func (d *directory) copyIndex() (head, *indexCopy) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	x := d.index
	c := &indexCopy{node: x.node, events: x.events, sections: x.sections, entries: make([]entry, len(x.order)), trails: map[int][]milestone{}}
	for i, e := range x.order {
		c.entries[i] = *e
		if e.marks != nil {
			c.trails[i] = *e.marks
		}
	}
	return d.head, c
}

// commitOf returns the number of the commit that has a version of a mailbox.
func (d *directory) commitOf(mailbox capabilities.ID, version uint64) (uint64, error) {
	m, t := d.trail(mailbox)
	if version == 0 || version > m.Version {
		return 0, notDurable(mailbox, version)
	}
	if numbers := t.between(version, version); len(numbers) > 0 {
		return numbers[0], nil
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
