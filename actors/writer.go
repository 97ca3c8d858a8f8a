package actors

import (
	"slices"
	"sync/atomic"
	"time"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// eventWriter encodes events into a buffer that it reuses.
type eventWriter struct {
	body     []byte
	recorded []events.Recorded
}

// writerBuffer is the size, in bytes, of the largest buffer that an eventWriter keeps.
const writerBuffer = 16 << 10

// section writes down the events that follow a state. What it returns as recorded is good until the next.
func (w *eventWriter) section(s *mailbox.State, now capabilities.Time, evs ...[]events.Event) (events.Section, []events.Recorded, error) {
	clear(w.recorded)
	w.recorded = w.recorded[:0]
	for _, some := range evs {
		for _, e := range some {
			w.recorded = append(w.recorded, events.Recorded{At: now, Event: e})
		}
	}
	body, err := events.Append(w.body[:0], w.recorded...)
	if err != nil {
		return events.Section{}, nil, err
	}
	if len(body) > maxSectionBytes {
		return events.Section{}, nil, parley.Refuse(parley.TooLarge, "%d bytes at once are over the limit of %d", len(body), maxSectionBytes)
	}
	if w.body = body; cap(body) > writerBuffer {
		w.body = nil
	}
	return events.Section{
		Mailbox: s.ID, First: s.Version + 1, Count: uint32(len(w.recorded)), Body: slices.Clone(body),
	}, w.recorded, nil
}

// firstSection writes down the first events of a new mailbox.
func firstSection(s *mailbox.State, now capabilities.Time, genesis ...events.Event) (events.Section, error) {
	var w eventWriter
	section, _, err := w.section(s, now, genesis)
	return section, err
}

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
