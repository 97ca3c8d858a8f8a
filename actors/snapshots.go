package actors

import (
	"sync/atomic"
	"time"

	"parley/capabilities"
)

// snapshotPause is between two snapshots: each costs some flushes of the disk that the mail needs.
const snapshotPause = time.Second

// snapshots writes the snapshots of mailboxes one at a time, away from the mail. One that is lost only
// costs time at the next replay.
type snapshots struct {
	node  *Node
	taken atomic.Bool   // a snapshot is being made or written
	queue chan snapshot // has room for the one
}

type snapshot struct {
	mailbox capabilities.ID
	version uint64
	image   []byte
}

func newSnapshots(n *Node) *snapshots {
	return &snapshots{node: n, queue: make(chan snapshot, 1)}
}

// claim reports whether the caller may make a snapshot now. Whoever may offers it, or forgoes it.
func (s *snapshots) claim() bool { return s.taken.CompareAndSwap(false, true) }

func (s *snapshots) forgo() { s.taken.Store(false) }

func (s *snapshots) offer(snap snapshot) { s.queue <- snap }

func (s *snapshots) run() {
	for {
		select {
		case snap := <-s.queue:
			if err := s.node.journal.SaveSnapshot(s.node.life, snap.mailbox, snap.version, snap.image); err != nil {
				s.node.log.Warn("snapshot not saved", "mailbox", snap.mailbox.String(), "error", err)
			}
			s.pause()
			s.forgo()
		case <-s.node.life.Done():
			return
		}
	}
}

func (s *snapshots) pause() {
	select {
	case <-time.After(snapshotPause):
	case <-s.node.life.Done():
	}
}
