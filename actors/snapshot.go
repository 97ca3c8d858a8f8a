package actors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"parley/capabilities"
	"parley/mailbox"
	"parley/mailbox/table"
	"parley/persistence"
)

const (
	snapshotEvents = 2000 // at least so many events between snapshots of a mailbox: reading fewer takes some 40 ms
	snapshotBytes  = 100  // and one for each so many bytes of a snapshot's head
	sealAtOnce     = 256  // pages that are sealed for one snapshot: some 15 ms
	sweepAtOnce    = 1024 // parts in the store that are looked at for one snapshot
	maxPages       = 2    // pages of a mailbox's index that are kept when a snapshot has stored them
	maxPagedIn     = 16   // and until the next snapshot
	maxTablePages  = 64   // pages of each table: some 4 MB of names
)

// sealAfter is the age of the messages in a page that is sealed. New messages may be as late, and have to be compared with
// those in the pages of their time.
const sealAfter = 5 * time.Second

// snapshotIfDue has a snapshot written when enough events follow the last one. That depends on the size of a snapshot
// without its stored pages. So the work stays in proportion to the mail.
func (b *mailboxActor) snapshotIfDue() {
	behind := b.state.Version - b.saved
	if behind < max(snapshotEvents, uint64(b.head/snapshotBytes)) || !b.node.snapshots.claim(b.reg, behind) {
		return
	}
	parts, err := b.parts(b.node.now().Add(-sealAfter))
	if err != nil {
		b.node.log.Error("snapshot", "mailbox", b.reg.id.String(), "error", err)
		b.node.snapshots.forgo()
		return
	}
	b.saved, b.head = b.state.Version, parts.Size()
	snap := snapshot{b.reg, b.state.Version, parts}
	b.release(func(lost error) {
		if lost != nil {
			b.node.snapshots.forgo()
			return
		}
		b.node.snapshots.offer(snap)
	})
}

// parts encodes the state in parts. Parts that an earlier process has left behind go with those of the last snapshot.
func (b *mailboxActor) parts(before capabilities.Time) (mailbox.Parts, error) {
	parts, err := b.state.Part(sealAtOnce, before)
	if err == nil {
		var found []mailbox.PageSum
		for _, sum := range b.node.journal.FoundParts(b.reg.id, sweepAtOnce) {
			found = append(found, sum)
		}
		parts.Gone = append(parts.Gone, b.state.Unused(found)...)
	}
	return parts, err
}

// closingTime bounds the time for the last snapshots of a node that closes.
const closingTime = 2 * time.Second

// lastSnapshot has a mailbox written down when the node closes, so that it is read quickly at the next start.
type lastSnapshot struct {
	ctx  context.Context
	done func()
}

func (m lastSnapshot) handle(b *mailboxActor) {
	defer m.done()
	if b.state == nil || b.doubtful || b.node.journal.Lost(b.last) {
		return
	}
	err := b.node.registry.dispatcher.block(func() error {
		if err := b.awaitDurable(); err != nil {
			return err
		}
		parts, err := b.parts(b.node.now())
		if err != nil {
			return err
		}
		return b.node.snapshots.save(m.ctx, snapshot{b.reg, b.state.Version, parts})
	})
	if err != nil {
		b.node.log.Warn("snapshot not saved", "mailbox", b.reg.id.String(), "error", err)
	}
}

// saveLast writes down the mailboxes that are far behind their snapshots, as long as there is time.
func (r *registry) saveLast(ctx context.Context) {
	if r.node.journal.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, closingTime)
	defer cancel()
	behind := map[*registration]uint64{}
	r.mu.Lock()
	for id, s := range r.registrations {
		if m, _ := r.node.journal.Mailbox(id); m.Version-m.Snapshot >= snapshotEvents {
			behind[s] = m.Version - m.Snapshot
		}
	}
	r.mu.Unlock()
	for _, s := range slices.SortedFunc(maps.Keys(behind), func(s, t *registration) int { return cmp.Compare(behind[t], behind[s]) }) {
		saved := make(chan struct{})
		r.system.Root.Send(s.pid, lastSnapshot{ctx, func() { close(saved) }})
		select {
		case <-saved:
		case <-ctx.Done():
			return
		}
	}
}

// trimPages lets pages of the index go out of memory that have been stored.
func (o *oldMail) trimPages() {
	most := maxPagedIn
	if stored := o.reg.stored.Swap(nil); stored != nil {
		o.state.Mail.Index.Stored(stored.Pages...)
		o.state.Tables().Stored(stored.Tables)
		most = maxPages
	}
	o.state.Mail.Index.PageOut(most)
	o.state.Tables().PageOut(maxTablePages)
}

// lostPage is the error of a page that cannot be read from the store of snapshots.
type lostPage struct{ error }

func (e lostPage) Unwrap() error { return e.error }

// pageIn reads pages of a state's index, and of its tables.
func pageIn(ctx context.Context, j *persistence.Journal, s *mailbox.State, pages []mailbox.Page, tables []table.Sum) error {
	for _, sum := range tables {
		if !s.Tables().Lacks(sum) {
			continue
		}
		b, err := j.SnapshotPart(ctx, s.ID, sum)
		if err == nil {
			err = s.Tables().PageIn(sum, b)
		}
		if err != nil {
			return lostPage{fmt.Errorf("a table of mailbox %s: %w", s.ID, err)}
		}
	}
	for _, p := range pages {
		if !s.Mail.Index.IsAbsent(p) {
			continue
		}
		b, err := j.SnapshotPart(ctx, s.ID, p.Sum)
		if err == nil {
			err = s.Mail.Index.PageIn(p, b)
		}
		if err != nil {
			return lostPage{fmt.Errorf("page %d of mailbox %s: %w", p.Number, s.ID, err)}
		}
	}
	return nil
}

// remake makes the absent pages of the state from the log. It is for pages that the store of snapshots has lost.
// They are stored again with the next snapshots.
func (o *oldMail) remake(why error) error {
	if o.node.life.Err() != nil {
		return why
	}
	if !errors.Is(why, persistence.ErrSilent) { // of which the journal tells, once for all mailboxes
		o.node.log.Warn("pages of a snapshot are lost; replaying", "mailbox", o.reg.id.String(), "error", why)
	}
	if err := o.awaitDurable(); err != nil {
		return err
	}
	whole, err := o.node.replayAll(o.node.life, o.reg.id)
	if err != nil {
		return err
	}
	o.state.Mail.Index.Remake(&whole.Mail.Index)
	o.state.RemakeTables(whole)
	return nil
}

// Between two snapshots is a pause, since each takes time of the disk that the mail needs: a multiple of the time that
// the last one took, within bounds.
const (
	pauseShare = 25
	leastPause = 50 * time.Millisecond
	mostPause  = time.Second
)

// snapshots writes the snapshots of mailboxes one at a time, away from the mail. One that is lost only
// costs time at the next replay.
type snapshots struct {
	node  *Node
	queue chan snapshot // has room for the one

	mu    sync.Mutex
	taken bool          // a snapshot is being made or written
	next  *registration // wanted to make one meanwhile, and is the furthest behind its snapshot
	most  uint64        // events that next is behind
	until time.Time     // next goes first
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
// it. The mailbox that is the furthest behind goes first, if it comes soon.
func (s *snapshots) claim(reg *registration, behind uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken {
		if behind > s.most {
			s.next, s.most = reg, behind
		}
		return false
	}
	if s.next != reg && behind < s.most && time.Now().Before(s.until) {
		return false
	}
	s.taken, s.next, s.most = true, nil, 0
	return true
}

func (s *snapshots) forgo() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken, s.until = false, time.Now().Add(mostPause)
}

func (s *snapshots) offer(snap snapshot) { s.queue <- snap }

func (s *snapshots) run() {
	said := false // that one was not saved: a server may take none for hours
	for {
		select {
		case snap := <-s.queue:
			began := time.Now()
			err := s.save(s.node.life, snap)
			if err != nil && !said {
				s.node.log.Warn("snapshots are not saved; they are tried again", "mailbox", snap.reg.id.String(), "error", err)
			}
			said = err != nil
			s.pause(min(max(pauseShare*time.Since(began), leastPause), mostPause))
			s.forgo()
		case <-s.node.life.Done():
			return
		}
	}
}

// save stores the parts of a snapshot, and then its head.
func (s *snapshots) save(ctx context.Context, snap snapshot) error {
	j, id := s.node.journal, snap.reg.id
	var parts []persistence.SnapshotPart
	for i, p := range snap.parts.Pages {
		parts = append(parts, persistence.SnapshotPart{Sum: p.Sum, Data: snap.parts.Data[i]})
	}
	for _, p := range snap.parts.Tables {
		parts = append(parts, persistence.SnapshotPart{Sum: p.Sum, Data: p.Data})
	}
	if err := j.SaveSnapshotParts(ctx, id, parts); err != nil {
		return err
	}
	if err := j.SaveSnapshot(ctx, id, snap.version, snap.parts.Head); err != nil {
		return err
	}
	snap.reg.stored.Store(&mailbox.Parts{Pages: snap.parts.Pages, Tables: snap.parts.Tables})
	for _, sum := range snap.parts.Gone {
		j.RemoveSnapshotPart(ctx, id, sum)
	}
	return nil
}

func (s *snapshots) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.node.life.Done():
	}
}
