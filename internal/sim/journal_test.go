package sim

import (
	"context"
	"testing"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/persistence"
	"parley/persistence/journaltest"
)

// TestJournalConforms holds the simulation's journal to what the real ones do.
func TestJournalConforms(t *testing.T) {
	journaltest.Run(t, func(*testing.T) journaltest.Log { return &memoryLog{mailboxes: map[capabilities.ID]*mailboxActor{}} })
}

// memoryLog is what a journal of the simulation has stored, by mailbox.
type memoryLog struct {
	mailboxes map[capabilities.ID]*mailboxActor
	mode      journaltest.Mode
}

func (l *memoryLog) Set(m journaltest.Mode) { l.mode = m }

func (l *memoryLog) Open(context.Context) (journaltest.Journal, error) {
	return &memory{log: l}, nil
}

// memory runs a journal of the simulation: each append is a commit, which is stored at once or fails.
type memory struct {
	log     *memoryLog
	journal journal
	closed  bool
}

func (m *memory) store(commit []appended) {
	for _, a := range commit {
		if a.mailbox != nil {
			a.mailbox.disk = append(a.mailbox.disk, a.section)
		}
	}
}

func (m *memory) mailbox(id capabilities.ID) *mailboxActor {
	if m.log.mailboxes[id] == nil {
		m.log.mailboxes[id] = &mailboxActor{id: id}
	}
	return m.log.mailboxes[id]
}

func (m *memory) Append(sections ...events.Section) persistence.Position {
	return m.AppendSince(m.journal.times, sections...)
}

func (m *memory) AppendSince(failures uint64, sections ...events.Section) persistence.Position {
	pos := m.journal.append(failures, appended{m.mailbox(sections[0].Mailbox), sections[0]})
	if m.journal.begin(1) {
		if m.log.mode == journaltest.Works {
			m.journal.end(m.store)
		} else {
			m.journal.fail(m.log.mode == journaltest.InDoubt)
		}
	}
	m.journal.settle()
	return persistence.Position(pos)
}

func (m *memory) Release(pos persistence.Position, fn func(error)) {
	m.journal.release(position(pos), fn)
	m.journal.settle()
}

func (m *memory) Durable(pos persistence.Position) bool {
	return !m.journal.pending(position(pos)) && !m.journal.lost(position(pos))
}

func (m *memory) Lost(pos persistence.Position) bool { return m.journal.lost(position(pos)) }

func (m *memory) Failures() uint64 { return m.journal.times }

func (m *memory) Err() error { return m.journal.failure }

func (m *memory) Reopen(context.Context) error {
	if !m.closed {
		m.journal.reopen(m.store)
	}
	return m.journal.failure
}

func (m *memory) Close(context.Context) error {
	m.closed = true
	m.journal.fail(false)
	return nil
}

func (m *memory) Events(_ context.Context, mailbox capabilities.ID, after uint64, limit int) (all []persistence.Entry, err error) {
	for _, s := range m.mailbox(mailbox).disk {
		recorded, err := events.Decode(s.Body, int(s.Count))
		if err != nil {
			return nil, err
		}
		for i, r := range recorded {
			if v := s.First + uint64(i); v > after && (limit <= 0 || len(all) < limit) {
				all = append(all, persistence.Entry{Version: v, Recorded: r})
			}
		}
	}
	return all, nil
}

func (m *memory) EventsAt(ctx context.Context, mailbox capabilities.ID, versions []uint64) (some []persistence.Entry, err error) {
	all, err := m.Events(ctx, mailbox, 0, 0)
	last := uint64(0)
	for _, v := range versions {
		if v <= last || v > uint64(len(all)) {
			return nil, parley.Refuse(parley.InvalidArgument, "no version %d", v)
		}
		last = v
		some = append(some, all[v-1])
	}
	return some, err
}
