package sim

import (
	"encoding/binary"
	"slices"

	"parley/capabilities"
)

// node is a node: its mailboxes, its journal and its links to the others.
type node struct {
	world     *world
	name      string
	id        capabilities.NodeID
	mailboxes []*mailboxActor // the host's first
	peers     map[*node]*peer

	journal journal
	full    bool // its disk
	down    bool
	starts  uint64 // with it, windows differ from all before a crash; a real node draws a number

	skew   capabilities.Time // of its clock
	latest capabilities.Time // that it gave out
	logged capabilities.Time // of its newest durable event

	timers []timer
	held   []*packet // packets that came before their turn
}

// timer is something to be done later.
type timer struct {
	what string
	do   func()
}

func (n *node) later(what string, do func()) { n.timers = append(n.timers, timer{what, do}) }

// now returns the node's time, which never goes back.
func (n *node) now() capabilities.Time {
	n.latest = max(n.latest, n.world.now+n.skew)
	return n.latest
}

// newID returns an ID that no node ever made before.
func (n *node) newID() capabilities.ID {
	n.world.ids++
	id := capabilities.ID{Node: n.id}
	binary.BigEndian.PutUint64(id.ULID[8:], n.world.ids)
	return id
}

func (n *node) peer(to *node) *peer {
	p := n.peers[to]
	if p == nil {
		p = newPeer(n, to)
		n.peers[to] = p
	}
	return p
}

// store writes a commit to the log.
func (n *node) store(commit []appended) {
	for _, a := range commit {
		if a.mailbox == nil {
			continue
		}
		b, s := a.mailbox, a.section
		if want := b.shadow.version + 1; s.First != want {
			n.world.failf("%s: section %d follows version %d in the log", b.name, s.First, want-1)
		}
		b.disk = append(b.disk, s)
		b.observe(s)
	}
}

// write takes a commit to disk, or fails if the disk is full. With stored, it is on disk although the journal failed.
func (n *node) write(stored bool) {
	if len(n.journal.taken) == 0 {
		return
	}
	n.world.progress++
	if n.full {
		n.world.trace("%s cannot write its commit (stored: %t)", n.name, stored)
		if stored {
			n.world.sometimes(doubtfulCommit)
		}
		n.world.sometimes(diskFull)
		if len(n.journal.queued) > 0 {
			n.world.sometimes(queuedBehindFull)
		}
		n.journal.fail(stored)
		return
	}
	n.world.trace("%s stores %d sections", n.name, len(n.journal.taken))
	n.journal.end(n.store)
}

// reopen opens a failed journal again, and has every mailbox look at what became of its appends.
func (n *node) reopen() {
	if n.down || n.full || n.journal.failure == nil {
		return
	}
	n.world.trace("%s opens its journal again", n.name)
	n.world.progress++
	n.journal.reopen(n.store)
	n.wakeAll()
}

// wakeAll has every mailbox deliver what it has.
func (n *node) wakeAll() {
	for _, b := range n.mailboxes {
		b.tell(0, "resume", func(*mailboxActor) {}, func(error) {})
	}
}

// crash ends the node. With stored, the commit on its way is on disk.
func (n *node) crash(stored bool) {
	w := n.world
	w.trace("%s crashes (stored: %t)", n.name, stored)
	w.sometimes(crashed)
	if len(n.journal.queued) > 0 {
		w.sometimes(crashUndurable)
	}
	for _, other := range w.nodes {
		if p := n.peers[other]; p != nil && p.receives.Refused() > 0 {
			w.sometimes(crashAtRefusal)
		}
	}
	if commit := n.journal.crash(); len(commit) > 0 && stored {
		w.sometimes(crashStored)
		n.store(commit)
	}
	n.down, n.latest = true, n.logged
	n.starts++
	n.journal = journal{}
	n.timers, n.held = nil, nil
	n.peers = map[*node]*peer{}
	for _, b := range n.mailboxes {
		b.state, b.old, b.last, b.failures, b.redeliver, b.doubtful = nil, nil, 0, 0, false, false
		b.lines, b.acks, b.inbox, b.log = nil, acks{}, nil, nil
		if len(b.disk) > 0 {
			b.deadline = b.disk[len(b.disk)-1].Summary.Deadline
		}
		b.waiters = nil
	}
	w.ops = slices.DeleteFunc(w.ops, func(o *op) bool { return o.mailbox.node == n })
	w.packets = slices.DeleteFunc(w.packets, func(p *packet) bool { return p.to == n }) // what it has sent may still arrive
}

// start starts a node that has crashed.
func (n *node) start() {
	if !n.down {
		return
	}
	n.world.trace("%s starts", n.name)
	n.world.progress++
	n.down = false
	n.wakeAll()
	for _, t := range n.world.facts.waits { // their clients ask again
		if t.mailbox.node == n && t.outcome == "" && !t.refused {
			n.world.await(t.mailbox, t.form, t.wait)
		}
	}
}

// tick expires forms and writes acks.
func (n *node) tick() {
	for _, b := range n.mailboxes {
		if b.deadline != 0 && b.deadline <= n.now() {
			b.tell(0, "deadline", func(b *mailboxActor) {
				b.deadline = b.state.Summary().Deadline
			}, func(error) {})
		}
		if b.acks.Len() > 0 {
			b.recordAcks()
		}
	}
}

// snapshot has a mailbox write a snapshot, once what is in it is durable.
func (n *node) snapshot(b *mailboxActor) {
	b.tell(0, "snapshot", func(b *mailboxActor) {
		version := b.state.Version
		encoded, err := b.state.Snapshot()
		if err != nil {
			n.world.failf("%s: snapshot: %v", b.name, err)
		}
		b.release(func(lost error) {
			if lost != nil || b.shadow.version < version {
				n.world.sometimes(snapshotLost)
				if lost == nil {
					n.world.failf("%s: a snapshot is ahead of the log", b.name)
				}
				return
			}
			b.snap = encoded
		})
	}, func(error) {})
}

// fold returns the state of the durable log, without a snapshot.
func (b *mailboxActor) fold() string {
	log, old := b.log, b.old
	b.log = b.disk
	s := b.replay(nil)
	b.log, b.old = log, old
	return b.encoded(s)
}

func (b *mailboxActor) encoded(s interface{ Snapshot() ([]byte, error) }) string {
	encoded, err := s.Snapshot()
	if err != nil {
		b.node.world.failf("%s: %v", b.name, err)
	}
	return string(encoded)
}
