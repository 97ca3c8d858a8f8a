package persistence

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"sync"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/persistence/group"
)

// Entry is an event of a mailbox with its place in the log.
type Entry struct {
	Commit  uint64
	Version uint64
	events.Recorded
}

// Loaded is the newest snapshot of a mailbox, if there is one, and all events after it. The checkpoint of an archive
// takes the place of a snapshot.
type Loaded struct {
	Snapshot        []byte // nil if there is none
	SnapshotVersion uint64
	Events          []Entry
}

// Load reads a mailbox up to its last durable event. A mailbox without events is empty, which is not an error.
// It fails with CORRUPT_LOG, naming the commit, if a commit is damaged or has an unreadable event.
func (j *Journal) Load(ctx context.Context, mailbox capabilities.ID) (Loaded, error) {
	return j.load(ctx, mailbox, true)
}

// Replay is Load without the snapshot of the mailbox. If the beginning of the log is archived, it returns the state of
// the checkpoint, and all events after that.
func (j *Journal) Replay(ctx context.Context, mailbox capabilities.ID) (Loaded, error) {
	return j.load(ctx, mailbox, false)
}

func (j *Journal) load(ctx context.Context, mailbox capabilities.ID, snapshots bool) (Loaded, error) {
	m, t := j.trail(mailbox)
	if m.Version == 0 {
		return Loaded{}, nil
	}
	var l Loaded
	archivedTo := t.versionAt(j.archived.end().Number)
	if snapshots && j.mayHaveSnapshot(mailbox.ULID, archivedTo) {
		l.Snapshot, l.SnapshotVersion = j.snapshot(ctx, mailbox, m.Version)
	}
	if archivedTo > l.SnapshotVersion {
		l.Snapshot, l.SnapshotVersion = j.archived.checkpointed(mailbox, archivedTo)
	}
	err := j.o.step(StepLoad+mailbox.ULID.String(), func() (err error) {
		l.Events, err = j.reader.entries(ctx, mailbox, t, l.SnapshotVersion, m.Version)
		return err
	})
	if err != nil {
		return Loaded{}, fmt.Errorf("load mailbox %s: %w", mailbox.ULID, err)
	}
	return l, nil
}

// Events returns at most limit of a mailbox's durable events after a version, oldest first. A limit of 0 or less means
// none.
func (j *Journal) Events(ctx context.Context, mailbox capabilities.ID, after uint64, limit int) ([]Entry, error) {
	m, t := j.trail(mailbox)
	last := m.Version
	if limit > 0 && last > after && last-after > uint64(limit) {
		last = after + uint64(limit)
	}
	evs, err := j.reader.entries(ctx, mailbox, t, after, last)
	if err != nil {
		return nil, fmt.Errorf("read the events of mailbox %s: %w", mailbox.ULID, err)
	}
	return evs, nil
}

// EventsAt returns the events of a mailbox with the given versions, in that order. The versions are ascending, without
// doubles. It refuses with INVALID_ARGUMENT if they are not, or if one is not durable. It fails as Events does.
func (j *Journal) EventsAt(ctx context.Context, mailbox capabilities.ID, versions []uint64) ([]Entry, error) {
	m, t := j.trail(mailbox)
	last := uint64(0)
	for _, v := range versions {
		if v <= last {
			return nil, parley.Refuse(parley.InvalidArgument, "version %d of mailbox %s does not follow version %d", v, mailbox.ULID, last)
		}
		last = v
	}
	if last > m.Version {
		return nil, notDurable(mailbox, last)
	}
	evs, err := j.reader.entriesAt(ctx, mailbox, t, versions)
	if err != nil {
		return nil, fmt.Errorf("read the events of mailbox %s: %w", mailbox.ULID, err)
	}
	return evs, nil
}

func notDurable(mailbox capabilities.ID, version uint64) error {
	return parley.Refuse(parley.InvalidArgument, "version %d of mailbox %s is not durable", version, mailbox.ULID)
}

// Frames calls fn with the frames of the commits that have some versions of a mailbox, in their order. The versions are as in
// EventsAt. It returns the last commit of the log. It fails as EventsAt does, or with fn's error.
func (j *Journal) Frames(ctx context.Context, mailbox capabilities.ID, versions []uint64, fn func(frame []byte) error) (events.Mark, error) {
	m, t := j.trail(mailbox)
	if len(versions) > 0 && versions[len(versions)-1] > m.Version {
		return events.Mark{}, notDurable(mailbox, versions[len(versions)-1])
	}
	end := j.directory.lastCommit()
	for _, number := range t.with(versions) {
		frame, err := j.reader.frame(ctx, number)
		if err != nil {
			return events.Mark{}, fmt.Errorf("read commit %d: %w", number, err)
		}
		if err := fn(frame); err != nil {
			return events.Mark{}, err
		}
	}
	return end.Mark, nil
}

// entriesAt returns the events of a mailbox with versions that are ascending and durable.
func (r *reader) entriesAt(ctx context.Context, mailbox capabilities.ID, t trail, versions []uint64) ([]Entry, error) {
	evs := make([]Entry, 0, len(versions))
	err := r.eachSection(ctx, mailbox, t.with(versions), func(s *group.Section) (err error) {
		evs, err = pickEntries(evs, s, versions[len(evs):])
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(evs) != len(versions) {
		return nil, parley.Refuse(parley.CorruptLog, "the journal lacks version %d of mailbox %s", versions[len(evs)], mailbox.ULID)
	}
	return evs, nil
}

// pickEntries decodes a section if it has the first of the wanted versions, and appends its wanted events.
func pickEntries(evs []Entry, s *group.Section, want []uint64) ([]Entry, error) {
	end := s.First + uint64(s.Count)
	if len(want) == 0 || want[0] < s.First || want[0] >= end {
		return evs, nil
	}
	recorded, err := s.Events()
	if err != nil {
		return nil, cannotRead(s.Commit, &s.Section, err)
	}
	for _, v := range want {
		if v >= end {
			break
		}
		evs = append(evs, Entry{Commit: s.Commit, Version: v, Recorded: recorded[v-s.First]})
	}
	return evs, nil
}

// entries returns the events of a mailbox with versions after+1 to last.
func (r *reader) entries(ctx context.Context, mailbox capabilities.ID, t trail, after, last uint64) ([]Entry, error) {
	if last <= after {
		return nil, nil
	}
	numbers := t.between(after+1, last)
	evs := make([]Entry, 0, last-after)
	err := r.eachSection(ctx, mailbox, numbers, func(s *group.Section) (err error) {
		evs, err = appendEntries(evs, s, after, last)
		return err
	})
	if err != nil {
		return nil, err
	}
	if uint64(len(evs)) != last-after {
		return nil, lost(numbers[len(numbers)-1], "or one before it lacks events of mailbox %s: versions %d to %d are %d events",
			mailbox.ULID, after+1, last, len(evs))
	}
	return evs, nil
}

// appendEntries decodes a section and appends its events with versions after+1 to last.
func appendEntries(evs []Entry, s *group.Section, after, last uint64) ([]Entry, error) {
	if s.First > last || s.First+uint64(s.Count) <= after+1 {
		return evs, nil
	}
	recorded, err := s.Events()
	if err != nil {
		return nil, cannotRead(s.Commit, &s.Section, err)
	}
	for i, event := range recorded {
		version := s.First + uint64(i)
		if version <= after || version > last {
			continue
		}
		if want := after + uint64(len(evs)) + 1; version != want {
			return nil, lost(s.Commit, "has version %d of mailbox %s where version %d should be", version, s.Mailbox.ULID, want)
		}
		evs = append(evs, Entry{Commit: s.Commit, Version: version, Recorded: event})
	}
	return evs, nil
}

// unreadable returns CORRUPT_LOG for one mailbox. The commit itself is whole, and its other mailboxes are readable.
type unreadable struct{ why *parley.Error }

func (u *unreadable) Error() string { return u.why.Error() }
func (u *unreadable) Unwrap() error { return u.why }

func cannotRead(number uint64, s *events.Section, err error) error {
	hint := "the commit is whole: the fault is in the program that wrote it, or in this one"
	if _, ok := errors.AsType[*events.UnknownError](err); ok {
		hint = "a newer program wrote it: start that one"
	}
	e := lost(number, "an event of mailbox %s cannot be read: %v", s.Mailbox.ULID, err)
	return &unreadable{e.WithHint("%s", hint)}
}

// commitsAtOnce bounds the commits in memory while a mailbox is read.
const commitsAtOnce = 64

// eachSection calls fn with the sections that a mailbox has in commits with ascending numbers. It reads them from the
// groups, from memory, or else from whole commits.
func (r *reader) eachSection(ctx context.Context, mailbox capabilities.ID, numbers []uint64, fn func(s *group.Section) error) error {
	for len(numbers) > 0 {
		some, n, err := r.nextSections(ctx, mailbox, numbers)
		if err != nil {
			return err
		}
		for i := range some {
			if err := fn(&some[i]); err != nil {
				return err
			}
		}
		numbers = numbers[n:]
	}
	return nil
}

// nextSections returns the sections of a mailbox in the first of some commits, and the number of these.
func (r *reader) nextSections(ctx context.Context, mailbox capabilities.ID, numbers []uint64) ([]group.Section, int, error) {
	if g := r.trustedGroup(ctx, numbers[0]); g != nil {
		n := sort.Search(len(numbers), func(i int) bool { return numbers[i] > g.Last.Number })
		found, err := g.Sections(mailbox, numbers[:n])
		if err == nil {
			return found, n, nil
		}
		r.grouped.discard(g, err)
	}
	if found, n := r.grouped.inMemory(mailbox, numbers); n > 0 {
		return found, n, nil
	}
	n := 1 // the commits that are read one by one
	for n < min(len(numbers), commitsAtOnce) && !r.grouped.has(numbers[n]) {
		n++
	}
	commits, err := r.commits(ctx, numbers[:n])
	if err != nil {
		return nil, 0, err
	}
	var found []group.Section
	for _, c := range commits {
		found = appendSections(found, mailbox, c)
	}
	return found, n, nil
}

// appendSections appends the sections of a mailbox in a commit.
func appendSections(found []group.Section, mailbox capabilities.ID, c *events.Commit) []group.Section {
	for i := range c.Sections {
		if s := &c.Sections[i]; s.Mailbox.ULID == mailbox.ULID && s.Count > 0 {
			found = append(found, group.Section{Commit: c.Number, Section: *s})
		}
	}
	return found
}

// trustedGroup returns the group with a commit, if there is one and it was made from this log.
func (r *reader) trustedGroup(ctx context.Context, number uint64) *group.File {
	g, trusted := r.grouped.find(number)
	if g == nil || number < r.begin() {
		return nil
	}
	if trusted {
		return g
	}
	hash, err := r.hash(ctx, g.Last.Number)
	if err != nil {
		return nil // the log says why when it is read
	}
	if hash != g.Last.Hash {
		r.grouped.discard(g, errors.New("it was made from another log"))
		return nil
	}
	r.grouped.trust(g)
	return g
}

// readers bounds the concurrent requests for commits.
const readers = 16

// commits reads commits by their numbers.
func (r *reader) commits(ctx context.Context, numbers []uint64) ([]*events.Commit, error) {
	out := make([]*events.Commit, len(numbers))
	errs := make([]error, min(readers, len(numbers)))
	var wg sync.WaitGroup
	for n := range errs {
		wg.Go(func() {
			for i := n; i < len(numbers); i += len(errs) {
				if out[i], _, errs[n] = r.commit(ctx, numbers[i]); errs[n] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if code := parley.CodeOf(err); code == parley.CorruptLog || code == parley.Archived {
			return nil, err
		}
	}
	return out, errors.Join(errs...)
}
