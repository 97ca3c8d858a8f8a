package actors

import (
	"time"

	"parley/capabilities"
)

// snapshotPause is between two snapshots: each costs some flushes of the disk that the mail needs.
const snapshotPause = 200 * time.Millisecond

// snapshots writes the snapshots of mailboxes one after another, away from the mail. One that is lost
// only costs time at the next replay.
type snapshots struct {
	node  *Node
	queue chan snapshot
}

type snapshot struct {
	mailbox capabilities.ID
	version uint64
	image   []byte
}

func newSnapshots(n *Node) *snapshots {
	return &snapshots{node: n, queue: make(chan snapshot, 4)}
}

// room reports whether a snapshot would be taken now. When many wait already it is left for later.
func (s *snapshots) room() bool { return len(s.queue) < cap(s.queue) }

// offer queues a snapshot, if there still is room.
func (s *snapshots) offer(snap snapshot) {
	select {
	case s.queue <- snap:
	default:
	}
}

func (s *snapshots) run() {
	for {
		select {
		case snap := <-s.queue:
			if err := s.node.journal.SaveSnapshot(s.node.life, snap.mailbox, snap.version, snap.image); err != nil {
				s.node.log.Warn("snapshot not saved", "mailbox", snap.mailbox.String(), "error", err)
			}
			s.pause()
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
