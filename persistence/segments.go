package persistence

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"parley"
	"parley/capabilities"
	"parley/internal/regular"
	"parley/persistence/archive"
)

// segmentFile is an open segment.
type segmentFile struct {
	*archive.Reader
	uses int
	gone bool // it is closed after the last use
}

// openSegments is the number of segments that stay open without a use.
const openSegments = 4

// archiveDamage is CORRUPT_LOG of a file of the archive. The journal goes on without it.
type archiveDamage struct{ why *parley.Error }

func (d *archiveDamage) Error() string { return d.why.Error() }
func (d *archiveDamage) Unwrap() error { return d.why }

// Elsewhere is ARCHIVED: the segment of a commit is not here.
type Elsewhere struct {
	Segment archive.Segment
	Place   string // where it was moved to; "" if that is not known
	why     *parley.Error
}

// Error implements error.
func (e *Elsewhere) Error() string { return e.why.Error() }

// Unwrap returns the refusal.
func (e *Elsewhere) Unwrap() error { return e.why }

func elsewhere(s archive.Segment, place string) *Elsewhere {
	why := parley.Refuse(parley.Archived, "commits %d to %d are in segment %s of the archive, which is not here", s.First, s.Last, s.Name())
	if place == "" {
		return &Elsewhere{Segment: s, why: why.WithHint("parley log archive --fetch %d --from PLACE brings it back", s.First)}
	}
	return &Elsewhere{Segment: s, Place: place, why: why.WithHint("parley log archive --fetch %d brings it back from %s", s.First, place)}
}

// segmentError returns ARCHIVED for a segment that is not here, and CORRUPT_LOG for a damaged one.
func (a *archived) segmentError(s archive.Segment, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return elsewhere(s, a.placeOf(s))
	}
	return segmentError(s, err)
}

// placeOf returns the place that a segment was moved to, if it is known.
func (a *archived) placeOf(s archive.Segment) string {
	if m := a.current(); m != nil {
		if i, ok := m.Segment(s.First); ok {
			return m.PlaceOf(i)
		}
	}
	return ""
}

// segmentError returns CORRUPT_LOG for a segment that is damaged.
func segmentError(s archive.Segment, err error) error {
	switch {
	case errors.Is(err, archive.ErrFormat):
		return newer(fmt.Sprintf("commits %d to %d", s.First, s.Last), err)
	case errors.Is(err, archive.ErrDamaged):
		return &archiveDamage{parley.Refuse(parley.CorruptLog, "commits %d to %d: %v", s.First, s.Last, err).
			WithHint("put the segment back from a copy: parley log archive --fetch %d --from PLACE", s.First)}
	}
	return err
}

// segment opens the segment with a commit. The caller releases it.
func (a *archived) segment(number uint64) (*segmentFile, archive.Segment, func(), error) {
	var s archive.Segment
	if m := a.current(); m != nil {
		if i, ok := m.Segment(number); ok {
			s = m.Segments[i]
		}
	}
	if s.Last == 0 {
		return nil, s, nil, lost(number, "is not in the archive")
	}
	a.files.Lock()
	defer a.files.Unlock()
	f := a.readers[s.First]
	if f == nil {
		r, err := archive.Open(a.path(s.Name()), s)
		if err != nil {
			return nil, s, nil, a.segmentError(s, err)
		}
		f = &segmentFile{Reader: r}
		a.readers[s.First] = f
	}
	f.uses++
	return f, s, func() { a.release(s.First, f) }, nil
}

func (a *archived) release(first uint64, f *segmentFile) {
	a.files.Lock()
	defer a.files.Unlock()
	if f.uses--; f.uses > 0 || !f.gone && len(a.readers) <= openSegments {
		return
	}
	if a.readers[first] == f {
		delete(a.readers, first)
	}
	_ = f.Close() // it was only read
}

// forget has the reader of a segment closed.
func (a *archived) forget(first uint64) {
	a.files.Lock()
	defer a.files.Unlock()
	f := a.readers[first]
	if f == nil {
		return
	}
	delete(a.readers, first)
	if f.gone = true; f.uses == 0 {
		_ = f.Close() // it was only read
	}
}

// listed returns a segment of the present archive.
func (a *archived) listed(s archive.Segment) error {
	m := a.current()
	if m != nil {
		if i, ok := m.Segment(s.First); ok && m.Segments[i] == s {
			return nil
		}
	}
	return parley.Refuse(parley.InvalidArgument, "%s is no segment of the archive", s.Name())
}

// HasSegment reports whether the file of a segment is here.
func (a *archiver) HasSegment(s archive.Segment) bool {
	_, err := os.Stat(a.archived.path(s.Name()))
	return err == nil
}

// OpenSegment opens the file of a segment, to copy it. It fails with ARCHIVED if the file is not here.
func (a *archiver) OpenSegment(s archive.Segment) (*os.File, error) {
	if err := a.archived.listed(s); err != nil {
		return nil, err
	}
	f, err := regular.Open(a.archived.path(s.Name()), os.O_RDONLY)
	if err != nil {
		return nil, a.archived.segmentError(s, err)
	}
	return f, nil
}

// Attach stores the file of a segment of the archive, in place of one that is here. It refuses any other file with
// CORRUPT_LOG.
func (a *archiver) Attach(ctx context.Context, s archive.Segment, from io.Reader) error {
	if err := a.archived.listed(s); err != nil {
		return err
	}
	if err := a.archived.store(ctx, s, from); err != nil {
		return fmt.Errorf("attach segment %s: %w", s.Name(), err)
	}
	a.archived.forget(s.First)
	return nil
}

// incoming is the name of a segment that is being stored, until it is checked.
const incoming = "incoming.tmp"

// store writes the file of a segment, checks it, and gives it its name.
func (a *archived) store(ctx context.Context, s archive.Segment, from io.Reader) (err error) {
	f, err := os.CreateTemp(a.folder, "*."+incoming)
	if err != nil {
		return readOnly("the archive cannot be written", err)
	}
	defer os.Remove(f.Name()) //nolint:errcheck // it has been renamed on success
	_, err = io.Copy(f, io.LimitReader(from, s.Bytes+1))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return readOnly("the segment cannot be copied", err)
	}
	r, err := archive.Open(f.Name(), s)
	if err == nil {
		err = errors.Join(r.Verify(ctx), r.Close())
	}
	if err != nil {
		return segmentError(s, err)
	}
	if err = os.Rename(f.Name(), a.path(s.Name())); err == nil {
		err = SyncFolder(a.folder)
	}
	if err != nil {
		return readOnly("the archive cannot be written", err)
	}
	return nil
}

// Detach removes the file of a segment whose commits have left the stream. The caller has another copy, which it has
// checked, and names its place. A segment that is not here is no error.
func (a *archiver) Detach(ctx context.Context, s archive.Segment, place string) (err error) {
	a.archiving.Lock()
	defer a.archiving.Unlock()
	defer a.watch(&err)()
	if err := a.archived.listed(s); err != nil {
		return err
	}
	if s.Last >= a.reader.begin() {
		return parley.Refuse(parley.InvalidArgument, "the commits of segment %s have not left the journal yet", s.Name())
	}
	if err := a.archived.setPlace(s, place); err != nil {
		return err
	}
	a.task.step()
	if err := a.archived.keep(ctx, a.line(), a.archived.current()); err != nil {
		return err
	}
	err = os.Remove(a.archived.path(s.Name()))
	if err == nil {
		err = SyncFolder(a.archived.folder)
	}
	a.archived.forget(s.First)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return readOnly("the segment cannot be removed", err)
	}
	return nil
}

// PlaceOf returns the place that a segment was moved to; "" if it was moved nowhere, or if that is not known.
func (a *archiver) PlaceOf(s archive.Segment) string { return a.archived.placeOf(s) }

// setPlace stores the place of a segment in the manifest.
func (a *archived) setPlace(s archive.Segment, place string) error {
	m := a.current()
	i, ok := m.Segment(s.First)
	if !ok || m.PlaceOf(i) == place {
		return nil
	}
	next, err := m.WithPlace(i, place)
	if err != nil {
		return parley.Refuse(parley.InvalidArgument, "%v", err)
	}
	if err := archive.WriteManifest(a.folder, next); err != nil {
		return readOnly("the archive cannot be written", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.manifest = next
	return nil
}

// keepManifest writes the present manifest again if one of its files is lost or damaged.
func (a *archived) keepManifest() error {
	m := a.current()
	if m == nil || archive.IsKept(a.folder, m) {
		return nil
	}
	a.log.Warn("the archive's manifest was lost or damaged; it is written again")
	if err := archive.WriteManifest(a.folder, m); err != nil {
		return readOnly("the archive cannot be written", err)
	}
	return nil
}

// ArchivedVersion returns the version of a mailbox after the last event that has left the journal.
func (a *archiver) ArchivedVersion(mailbox capabilities.ID) uint64 {
	_, t := a.directory.trail(mailbox)
	return t.versionAt(min(a.reader.begin()-1, a.archived.end().Number))
}

// VersionsIn returns the versions of a mailbox after its first and its last event in a segment. The last is before the
// first if there are none.
func (a *archiver) VersionsIn(mailbox capabilities.ID, s archive.Segment) (first, last uint64) {
	_, t := a.directory.trail(mailbox)
	return t.versionAt(s.After.Number) + 1, t.versionAt(s.Last)
}
