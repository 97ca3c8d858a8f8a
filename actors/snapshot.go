package actors

import (
	"context"
	"fmt"
	"sync"
	"time"

	"parley"
	"parley/mailbox"
)

const (
	snapshotEvents = 2000 // at least so many events between snapshots of a mailbox: reading fewer takes some 40 ms
	snapshotBytes  = 100  // and one for each so many bytes of a snapshot's head
	sealAtOnce     = 64   // pages that are sealed for one snapshot
	maxPages       = 4    // stored pages of a mailbox's index that are kept between two messages
)

// snapshotIfDue has a snapshot written when enough events follow the last one. That depends on the size of a snapshot
// without its stored pages, so that the work stays in proportion to the mail.
func (b *mailboxActor) snapshotIfDue() {
	if b.state == nil || b.stale {
		return
	}
	behind := b.state.Version - b.saved
	if behind < max(snapshotEvents, uint64(b.head/snapshotBytes)) || !b.node.snapshots.claim(behind) {
		return
	}
	parts, err := b.state.Part(sealAtOnce)
	if err != nil {
		b.node.log.Error("snapshot", "mailbox", b.reg.id.String(), "error", err)
		b.node.snapshots.forgo()
		return
	}
	b.saved, b.head = b.state.Version, len(parts.Head)
	snap := snapshot{b.reg, b.state.Version, parts}
	b.release(func(lost error) {
		if lost != nil {
			b.node.snapshots.forgo()
			return
		}
		b.node.snapshots.offer(snap)
	})
}

// trimPages lets pages of the index go out of memory that have been stored.
func (b *mailboxActor) trimPages() {
	if b.state == nil {
		return
	}
	if stored := b.reg.stored.Swap(nil); stored != nil {
		b.state.Mail.Stored(*stored...)
	}
	b.state.Mail.TrimPages(maxPages)
}

// lostPage is the error of a page of an index that cannot be read from the store of snapshots.
type lostPage struct{ error }

func (e lostPage) Unwrap() error { return e.error }

// restock reads pages of a state's index.
func (n *Node) restock(ctx context.Context, s *mailbox.State, pages []mailbox.Page) error {
	for _, p := range pages {
		if !s.Mail.IsAbsent(p) {
			continue
		}
		b, err := n.journal.SnapshotPart(ctx, s.ID, p.Sum)
		if err == nil {
			err = s.Mail.Restock(p, b, true)
		}
		if err != nil {
			return lostPage{fmt.Errorf("page %d of mailbox %s: %w", p.Number, s.ID, err)}
		}
	}
	return nil
}

// remake makes the absent pages of the state's index from the log. It is for pages that the store of snapshots has lost.
// They are stored again with the next snapshots.
func (b *mailboxActor) remake(why error) error {
	if b.node.life.Err() != nil {
		return why
	}
	b.node.log.Warn("pages of a snapshot are lost; replaying", "mailbox", b.reg.id.String(), "error", why)
	if err := b.awaitDurable(); err != nil {
		return err
	}
	whole, err := b.node.replayAll(b.node.life, b.reg.id)
	if err != nil {
		return err
	}
	for _, p := range b.state.Mail.AbsentPages() {
		if err := b.state.Mail.Restock(p, whole.Mail.EncodePage(p.Number), false); err != nil {
			b.stale = true
			b.node.journal.DiscardSnapshot(b.reg.id)
			return parley.Refuse(parley.Internal, "the state of mailbox %s is made anew: %v", b.reg.id, err).WithHint("try again")
		}
	}
	return nil
}

// snapshotPause is between two snapshots: each costs some flushes of the disk that the mail needs.
const snapshotPause = time.Second

// snapshots writes the snapshots of mailboxes one at a time, away from the mail. One that is lost only
// costs time at the next replay.
type snapshots struct {
	node  *Node
	queue chan snapshot // has room for the one

	mu    sync.Mutex
	taken bool   // a snapshot is being made or written
	most  uint64 // events that some other mailbox is behind its snapshot; falls with each refusal
}

type snapshot struct {
	reg     *registration
	version uint64
	parts   mailbox.Parts
}

func newSnapshots(n *Node) *snapshots {
	return &snapshots{node: n, queue: make(chan snapshot, 1)}
}

// claim reports whether a mailbox that is some events behind may make a snapshot now. Whoever may offers it, or forgoes
// it. A mailbox that is far less behind than another has to wait, for a while.
func (s *snapshots) claim(behind uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken {
		s.most = max(s.most, behind)
		return false
	}
	if behind < s.most/2 {
		s.most -= s.most / 16
		return false
	}
	s.taken, s.most = true, 0
	return true
}

// idle reports whether no snapshot is being made or written.
func (s *snapshots) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.taken
}

func (s *snapshots) forgo() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken = false
}

func (s *snapshots) offer(snap snapshot) { s.queue <- snap }

func (s *snapshots) run() {
	for {
		select {
		case snap := <-s.queue:
			if err := s.save(snap); err != nil {
				s.node.log.Warn("snapshot not saved", "mailbox", snap.reg.id.String(), "error", err)
			}
			s.pause()
			s.forgo()
		case <-s.node.life.Done():
			return
		}
	}
}

// save stores the parts of a snapshot, and then its head.
func (s *snapshots) save(snap snapshot) error {
	j, id := s.node.journal, snap.reg.id
	for i, p := range snap.parts.Pages {
		if err := j.SaveSnapshotPart(s.node.life, id, p.Sum, snap.parts.Data[i]); err != nil {
			return err
		}
	}
	if err := j.SaveSnapshot(s.node.life, id, snap.version, snap.parts.Head); err != nil {
		return err
	}
	snap.reg.stored.Store(&snap.parts.Pages)
	for _, sum := range snap.parts.Gone {
		j.RemoveSnapshotPart(s.node.life, id, sum)
	}
	return nil
}

func (s *snapshots) pause() {
	select {
	case <-time.After(snapshotPause):
	case <-s.node.life.Done():
	}
}
