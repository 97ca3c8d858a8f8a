package persistence

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/internal/regular"
	"parley/persistence/archive"
)

// A backup begins with a magic number and the node's key. Each frame follows, after its length. A length of zero, the
// number of commits and the hash of the last commit end it. The last byte of the magic number is 1. It is 2 for the backup of a
// journal with an archive, which has the files of the archive before the frames; these begin after the archive's last commit.
// With files that messages carry it is 3, or 4 with an archive too. A file is in a row with the frames: the highest bit of its
// length is set, and its digest is before its content.
const (
	backupMagic         = "PLYBACK\x01"
	archivedBackupMagic = "PLYBACK\x02"
	filesBackupMagic    = "PLYBACK\x03"
	newestBackupMagic   = "PLYBACK\x04" // with both
	maxBackedUp         = 64 << 20      // a frame
	backupTrailer       = 8 + 32
	backedUpFile        = 1 << 31 // the bit of a length which says that a file follows
)

// backupMagicOf returns the magic number of a backup.
func backupMagicOf(archived, files bool) string {
	switch {
	case archived && files:
		return newestBackupMagic
	case archived:
		return archivedBackupMagic
	case files:
		return filesBackupMagic
	}
	return backupMagic
}

// Backup writes and checks the log up to its last commit at the time of the call. It includes the files of the archive
// that are on this disk. The journal keeps working. After an error the output is not a backup, and Restore refuses it.
func (j *Journal) Backup(ctx context.Context, w io.Writer) error {
	err := j.backup(ctx, w, func(archived, files bool) []byte {
		return append([]byte(backupMagicOf(archived, files)), j.o.Node.Bytes()...)
	})
	if err != nil {
		return fmt.Errorf("back up the journal: %w", j.o.slow.named(err))
	}
	return nil
}

// backup writes a header, the files of the archive, the frames behind it, the files that messages carry, and the
// trailer.
func (j *Journal) backup(ctx context.Context, w io.Writer, header func(archived, files bool) []byte) error {
	out := bufio.NewWriterSize(w, 1<<20)
	files, err := j.openArchive()
	if err != nil {
		return err
	}
	defer files.close()
	end := j.lastCommit().Mark      // after the record of the archive
	kept, err := j.files.Files(ctx) // what the log refers to up to there was stored before
	if err != nil {
		return err
	}
	var after Mark
	if _, err = out.Write(header(files != nil, len(kept) > 0)); err == nil && files != nil {
		after = files.manifest.End
		err = files.writeTo(ctx, out)
	}
	if err == nil {
		err = j.followAfter(ctx, after, end, events.DecodeHead, func(_ *events.Commit, bytes []byte) error { return writeSized(out, bytes) })
	}
	if err == nil {
		err = j.files.writeTo(ctx, out, kept)
	}
	if err == nil {
		_, err = out.Write(trailer(end))
	}
	if err == nil {
		err = out.Flush()
	}
	return err
}

// writeTo writes files. One that was removed meanwhile is not wanted any more. One that is damaged is left out, and logged: the
// log and the other files are whole.
func (f *files) writeTo(ctx context.Context, out *bufio.Writer, all []StoredFile) error {
	for _, file := range all {
		content, err := readFile(ctx, f.line(), file.Digest)
		switch parley.CodeOf(err) {
		case "":
		case parley.NoSuchFile:
			continue
		case parley.FileDamaged:
			f.log.Warn("a file is left out of the backup", "error", err)
			continue
		default:
			return err
		}
		head := binary.BigEndian.AppendUint32(nil, backedUpFile|uint32(len(content)))
		if _, err := out.Write(append(head, file.Digest[:]...)); err != nil {
			return err
		}
		if _, err := out.Write(content); err != nil {
			return err
		}
	}
	return nil
}

// trailer returns the end of a backup: an empty frame, and the last commit.
func trailer(end Mark) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 4, 4+backupTrailer), end.Number)
	return append(b, end.Hash[:]...)
}

func writeSized(out *bufio.Writer, bytes []byte) error {
	var size [4]byte
	binary.BigEndian.PutUint32(size[:], uint32(len(bytes)))
	if _, err := out.Write(size[:]); err != nil {
		return err
	}
	_, err := out.Write(bytes)
	return err
}

// backupReader reads a node's backup.
type backupReader struct {
	in       *bufio.Reader
	node     capabilities.NodeID
	manifest *archive.Manifest // nil if the backup has no archive
	files    bool              // the backup has files that messages carry
}

// openBackup reads the beginning of a node's backup.
func openBackup(r io.Reader, node capabilities.NodeID) (*backupReader, error) {
	b := &backupReader{in: bufio.NewReaderSize(r, 1<<20), node: node}
	var head [len(backupMagic) + capabilities.NodeKeySize]byte
	_, err := io.ReadFull(b.in, head[:])
	if err := archive.CheckFormat(head[:], newestBackupMagic); err != nil {
		return nil, newer("the backup", err)
	}
	magic := string(head[:len(backupMagic)])
	archived := magic == archivedBackupMagic || magic == newestBackupMagic
	b.files = magic == filesBackupMagic || magic == newestBackupMagic
	if err != nil || magic != backupMagic && !archived && !b.files {
		return nil, notWhole(err, "this is not a backup of a journal")
	}
	if whose := capabilities.NodeOf([capabilities.NodeKeySize]byte(head[len(backupMagic):])); whose != node {
		return nil, parley.Refuse(parley.InvalidArgument, "the backup is of node %s", whose)
	}
	if archived {
		err = b.readManifest()
	}
	return b, err
}

// readFrames calls fn with each frame, and returns the last Mark. It calls store with each file, whose content is that of its
// digest. Nothing may be trusted before it returns without an error.
func (b *backupReader) readFrames(fn func(m Mark, bytes []byte) error, store func(digest FileDigest, content []byte) error) (Mark, error) {
	c := chainFrom(b.node, 1)
	if b.manifest != nil {
		c.last = b.manifest.End
	}
	for {
		bytes, digest, err := readSized(b.in, b.files)
		if err != nil {
			return Mark{}, notWhole(err, "the backup ends after commit %d, before its end", c.last.Number)
		}
		if digest != (FileDigest{}) {
			if sha256.Sum256(bytes) != digest {
				return Mark{}, notWhole(nil, "file %s of the backup is damaged", digest)
			}
			if err := store(digest, bytes); err != nil {
				return Mark{}, err
			}
			continue
		}
		if bytes == nil {
			return c.last, readTrailer(b.in, c.last)
		}
		if _, err := c.follow(c.last.Number+1, bytes); err != nil {
			return Mark{}, fmt.Errorf("read the backup: %w", err)
		}
		if err := fn(c.last, bytes); err != nil {
			return Mark{}, err
		}
	}
}

// readSized reads a frame or, with files, a file of a digest. It returns nil after the last one.
func readSized(in *bufio.Reader, files bool) (bytes []byte, digest FileDigest, err error) {
	var size [4]byte
	if _, err := io.ReadFull(in, size[:]); err != nil {
		return nil, digest, err
	}
	n := binary.BigEndian.Uint32(size[:])
	switch {
	case n == 0:
		return nil, digest, nil
	case files && n&backedUpFile != 0:
		if n &^= backedUpFile; n > MaxFile {
			return nil, digest, io.ErrUnexpectedEOF
		}
		if _, err = io.ReadFull(in, digest[:]); err != nil {
			return nil, digest, err
		}
	case n > maxBackedUp:
		return nil, digest, io.ErrUnexpectedEOF
	}
	bytes, err = readExactly(in, n)
	return bytes, digest, err
}

// readExactly reads n bytes. It takes memory as they come, since the length is not to be trusted.
func readExactly(in io.Reader, n uint32) ([]byte, error) {
	const atFirst = 1 << 20
	var b bytes.Buffer
	b.Grow(int(min(n, atFirst)) + bytes.MinRead) // it grows before it finds the end
	_, err := io.CopyN(&b, in, int64(n))
	return b.Bytes(), err
}

func readTrailer(in *bufio.Reader, last Mark) error {
	var trailer [backupTrailer]byte
	if _, err := io.ReadFull(in, trailer[:]); err != nil {
		return notWhole(err, "the backup ends after commit %d, before its end", last.Number)
	}
	if binary.BigEndian.Uint64(trailer[:]) != last.Number || events.Hash(trailer[8:]) != last.Hash {
		return notWhole(nil, "the backup's end after commit %d is of another", last.Number)
	}
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		return notWhole(err, "the backup goes on after its end")
	}
	return nil
}

// notWhole returns CORRUPT_LOG for a backup that is cut short, and any other error unchanged.
func notWhole(err error, format string, args ...any) error {
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("read the backup: %w", err)
	}
	return parley.Refuse(parley.CorruptLog, format, args...).WithHint("use another backup")
}

// The files of an archive in a backup are the manifest, the checkpoint and the segments, each after its length. Before
// the length of a segment is its place in the manifest. A place of noSegment ends them.
const (
	noSegment   = 1<<32 - 1
	maxManifest = 64 << 20
)

// archiveFiles are the open files of an archive, which may be removed meanwhile.
type archiveFiles struct {
	manifest   *archive.Manifest
	checkpoint *os.File
	segments   map[int]*os.File // those that are here, by their places
}

// openArchive opens the files of the recorded archive, and checks them. It returns nil if there is none.
func (j *Journal) openArchive() (f *archiveFiles, err error) {
	j.archiver.archiving.Lock()
	defer j.archiver.archiving.Unlock()
	m := j.archived.current()
	if m == nil || !m.Recorded {
		return nil, nil
	}
	f = &archiveFiles{manifest: m, segments: map[int]*os.File{}}
	path := j.archived.path(archive.CheckpointName(m.End.Number))
	c, err := archive.OpenCheckpoint(path, m.Checkpoint)
	if err == nil {
		err = errors.Join(c.Each(func(archive.Mailbox) error { return nil }), c.Close())
	}
	if err == nil {
		f.checkpoint, err = regular.Open(path, os.O_RDONLY)
	}
	if err != nil {
		return nil, &archiveDamage{parley.Refuse(parley.CorruptLog, "the archive's checkpoint after commit %d: %v", m.End.Number, err).
			WithHint("the next archiving makes it again from the segments, if they are here")}
	}
	for i, s := range m.Segments {
		if !j.HasSegment(s) {
			continue
		}
		if f.segments[i], err = j.OpenSegment(s); err != nil {
			delete(f.segments, i)
			f.close()
			return nil, err
		}
	}
	return f, nil
}

func (f *archiveFiles) close() {
	if f == nil {
		return
	}
	_ = f.checkpoint.Close() // they were only read
	for _, s := range f.segments {
		_ = s.Close()
	}
}

// writeTo writes the files, and checks the segments.
func (f *archiveFiles) writeTo(ctx context.Context, out *bufio.Writer) error {
	if err := writeSized(out, f.manifest.Encode()); err != nil {
		return err
	}
	if err := writeFile(out, f.checkpoint, f.manifest.CheckpointBytes); err != nil {
		return err
	}
	for i, s := range f.manifest.Segments {
		file := f.segments[i]
		if file == nil {
			continue
		}
		r, err := archive.NewReader(file, s.Bytes, s)
		if err == nil {
			err = r.Verify(ctx)
		}
		if err != nil {
			return segmentError(s, err)
		}
		if _, err := out.Write(binary.BigEndian.AppendUint32(nil, uint32(i))); err != nil {
			return err
		}
		if err := writeFile(out, file, s.Bytes); err != nil {
			return err
		}
	}
	_, err := out.Write(binary.BigEndian.AppendUint32(nil, noSegment))
	return err
}

// writeFile writes a file of a size behind its length.
func writeFile(out *bufio.Writer, f *os.File, size int64) error {
	if _, err := out.Write(binary.BigEndian.AppendUint64(nil, uint64(size))); err != nil {
		return err
	}
	n, err := io.Copy(out, io.NewSectionReader(f, 0, size))
	if err == nil && n != size {
		err = io.ErrUnexpectedEOF
	}
	return err
}
