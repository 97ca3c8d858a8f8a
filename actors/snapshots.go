package actors

import (
	"parley/capabilities"
)

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
	return &snapshots{node: n, queue: make(chan snapshot, 16)}
}

// offer queues a snapshot; when many wait already it is left out, and the next one will do.
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
		case <-s.node.life.Done():
			return
		}
	}
}
