package persistence

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/internal/regular"
	"parley/persistence/archive"
)

// A part of a backup begins with a magic number and the node's ID. The number of the commit that it follows comes next.
// Each frame follows, after its length. It ends as a whole backup does. Parts in one folder follow each other from the
// first commit on.
// A part has the files that were stored since the part before.
const (
	partMagic  = "PLYPART\x01"
	baseMagic  = "PLYPART\x02" // a first part with the files of an archive, as backups have them
	filesMagic = "PLYPART\x03" // with files that messages carry, as backups have them
	bothMagic  = "PLYPART\x04"
	partHeader = len(partMagic) + 32 + 8 + 32
	partSuffix = ".part"
)

// Mark names a durable commit by its number and hash. The zero Mark is none.
type Mark = events.Mark

// ParseMark reads the text of a mark, as String returns it. It refuses any other text with INVALID_ARGUMENT.
func ParseMark(s string) (Mark, error) {
	if s == "" {
		return Mark{}, nil
	}
	number, digits, _ := strings.Cut(s, ":")
	n, err := strconv.ParseUint(number, 10, 64)
	hash, bad := hex.DecodeString(digits)
	m := Mark{Number: n}
	if err != nil || bad != nil || len(hash) != len(m.Hash) || n == 0 {
		return Mark{}, parley.Refuse(parley.InvalidArgument, "%.100q is no mark of a log", s)
	}
	m.Hash = events.Hash(hash)
	return m, nil
}

// BackupAfter writes a part: the log behind a mark, up to the commit that is last when it begins. The zero Mark writes
// all of it, with the files of the archive. It checks what it writes. The journal keeps working. A mark that is not of this log is INVALID_ARGUMENT.
// After an error the output is not a part.
func (j *Journal) BackupAfter(ctx context.Context, after Mark, w io.Writer) error {
	end := j.lastCommit().Mark
	if err := j.has(ctx, after, end); err != nil {
		return fmt.Errorf("back up the journal: %w", j.o.slow.named(err))
	}
	header := func(archived, files bool) []byte {
		magic := partMagic
		switch {
		case archived && files:
			magic = bothMagic
		case archived:
			magic = baseMagic
		case files:
			magic = filesMagic
		}
		b := append(append(make([]byte, 0, partHeader), magic...), j.o.Node.Bytes()...)
		b = binary.BigEndian.AppendUint64(b, after.Number)
		return append(b, after.Hash[:]...)
	}
	if after.Number == 0 {
		if err := j.backup(ctx, w, header); err != nil {
			return fmt.Errorf("back up the journal: %w", j.o.slow.named(err))
		}
		return nil
	}
	out := bufio.NewWriterSize(w, 1<<20)
	kept, err := j.filesAfter(ctx, after)
	if err == nil {
		_, err = out.Write(header(false, len(kept) > 0))
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
	if err != nil {
		return fmt.Errorf("back up the journal: %w", j.o.slow.named(err))
	}
	return nil
}

// clockSlack is by how much the clock of an external server may be behind that of this process.
const clockSlack = 10 * time.Minute

// filesAfter returns the files that were stored since a commit was.
func (j *Journal) filesAfter(ctx context.Context, after Mark) ([]StoredFile, error) {
	bytes, err := j.reader.frame(ctx, after.Number)
	if err != nil {
		return nil, err
	}
	c, _, err := decode(after.Number, bytes)
	if err != nil {
		return nil, err
	}
	all, err := j.files.Files(ctx)
	since := c.At.Std().Add(-clockSlack)
	return slices.DeleteFunc(all, func(f StoredFile) bool { return f.At.Before(since) }), err
}

// has checks that a mark is of the log up to end.
func (j *Journal) has(ctx context.Context, m, end Mark) error {
	if m.Number == 0 {
		return nil
	}
	hash := end.Hash
	if m.Number < end.Number {
		bytes, err := j.reader.frame(ctx, m.Number)
		if err != nil {
			return err
		}
		if _, hash, err = decode(m.Number, bytes); err != nil {
			return err
		}
	}
	if m.Number > end.Number || hash != m.Hash {
		return parley.Refuse(parley.InvalidArgument, "commit %d of the backup is not in the node's log", m.Number).
			WithHint("the node was restored from another backup: back up to a new folder")
	}
	return nil
}

// Part is a file with a part of a backup.
type Part struct {
	Path  string
	After Mark // the commit that its first one follows
	Last  Mark
	Bytes int64

	archived bool // whether it has the files of an archive, and only the commits behind that
	files    bool // whether it has files that messages carry
}

// PartName returns the file name of a part: the numbers of its first and last commit, so that names sort as parts do.
func PartName(after, last Mark) string {
	return fmt.Sprintf("%020d-%020d%s", after.Number+1, last.Number, partSuffix)
}

// Parts returns the parts of a node's backup in a folder, in their order. It reads their beginnings and ends. It fails
// with CORRUPT_LOG if one is missing or cut, and with INVALID_ARGUMENT if one is of another node. A folder without
// parts, and no folder, have none.
func Parts(folder string, node capabilities.NodeID) ([]Part, error) {
	there, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the backup: %w", err)
	}
	var parts []Part
	for _, f := range there {
		if !strings.HasSuffix(f.Name(), partSuffix) || strings.HasPrefix(f.Name(), ".") {
			continue
		}
		p, err := ReadPart(filepath.Join(folder, f.Name()), node)
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	slices.SortFunc(parts, func(a, b Part) int { return strings.Compare(a.Path, b.Path) })
	var last Mark
	for i, p := range parts {
		switch {
		case p.After == last:
		case i == 0:
			return nil, notWhole(nil, "the backup has no part with commit 1, or another one than %s", filepath.Base(p.Path))
		default:
			return nil, notWhole(nil, "the backup has no part with commit %d, or another one between %s and %s", last.Number+1, filepath.Base(parts[i-1].Path), filepath.Base(p.Path))
		}
		last = p.Last
	}
	return parts, nil
}

// ReadPart reads the beginning and the end of a part.
func ReadPart(path string, node capabilities.NodeID) (p Part, err error) {
	f, err := openPart(path)
	if err != nil {
		return Part{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return Part{}, fmt.Errorf("read the backup: %w", err)
	}
	head, tail := make([]byte, partHeader), make([]byte, 4+backupTrailer)
	if size < int64(len(head)+len(tail)) {
		return Part{}, notWhole(nil, "%s is cut short", filepath.Base(path))
	}
	_, err = f.ReadAt(head, 0)
	if err == nil {
		_, err = f.ReadAt(tail, size-int64(len(tail)))
	}
	if err != nil {
		return Part{}, fmt.Errorf("read the backup: %w", err)
	}
	if err := archive.CheckFormat(head, bothMagic); err != nil {
		return Part{}, newer(filepath.Base(path), err)
	}
	magic := string(head[:len(partMagic)])
	archived, files := magic == baseMagic || magic == bothMagic, magic == filesMagic || magic == bothMagic
	if magic != partMagic && !archived && !files || binary.BigEndian.Uint32(tail) != 0 {
		return Part{}, notWhole(nil, "%s is not a part of a backup, or cut short", filepath.Base(path))
	}
	head, tail = head[len(partMagic):], tail[4:]
	if whose := capabilities.NodeOf([capabilities.NodeKeySize]byte(head[:32])); whose != node {
		return Part{}, parley.Refuse(parley.InvalidArgument, "the backup is of node %s: %s", whose, filepath.Base(path))
	}
	head = head[32:]
	return Part{
		Path: path, Bytes: size, archived: archived, files: files,
		After: Mark{Number: binary.BigEndian.Uint64(head), Hash: events.Hash(head[8:])},
		Last:  Mark{Number: binary.BigEndian.Uint64(tail), Hash: events.Hash(tail[8:])},
	}, nil
}

// openPart opens the file of a part. It refuses anything but a regular file, which a folder that others write to may have.
func openPart(path string) (*os.File, error) {
	f, err := regular.Open(path, os.O_RDONLY)
	if err != nil {
		return nil, parley.Refuse(parley.InvalidArgument, "the backup's part %s cannot be read: %v", filepath.Base(path), err)
	}
	return f, nil
}

// AddPart writes the next part of a node's backup to a folder, which it makes if there is none. write writes the log
// behind a mark, as BackupAfter does. The part is there whole, on disk, or not at all. It returns a Part without a Path
// if there is nothing new. It refuses with ALREADY_RUNNING while another process writes to the folder.
func AddPart(folder string, node capabilities.NodeID, write func(after Mark, w io.Writer) error) (p Part, err error) {
	if err := MakeFolder(folder); err != nil {
		return Part{}, cannotBackUp(folder, err)
	}
	lock, err := openPartsLock(filepath.Join(folder, partsLock))
	if err != nil {
		return Part{}, cannotBackUp(folder, err)
	}
	if err := lockFile(lock); err != nil {
		_ = lock.Close() // nothing was written
		return Part{}, parley.Refuse(parley.AlreadyRunning, "another process backs up to %s", folder)
	}
	defer func() { err = errors.Join(err, closeLocked(lock)) }()
	parts, err := Parts(folder, node)
	if err != nil {
		return Part{}, err
	}
	var after Mark
	if len(parts) > 0 {
		after = parts[len(parts)-1].Last
	}
	f, err := regular.Create(filepath.Join(folder, unfinishedPart))
	if err != nil {
		return Part{}, cannotBackUp(folder, err)
	}
	defer os.Remove(f.Name()) //nolint:errcheck // it has been renamed on success
	if err := errors.Join(write(after, f), f.Sync(), f.Close()); err != nil {
		return Part{}, err
	}
	if p, err = ReadPart(f.Name(), node); err != nil || p.Last == after {
		return Part{After: after, Last: after}, err
	}
	p.Path = filepath.Join(folder, PartName(p.After, p.Last))
	if err := errors.Join(os.Rename(f.Name(), p.Path), SyncFolder(folder)); err != nil {
		return Part{}, cannotBackUp(folder, err)
	}
	return p, nil
}

const (
	partsLock      = "lock"       // locked by the process that writes
	unfinishedPart = "unfinished" // until it has its name
)

// openPartsLock opens the file of the lock, which it makes if there is none.
func openPartsLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600) // follows no link
	if errors.Is(err, fs.ErrExist) {
		f, err = regular.Open(path, os.O_RDWR)
	}
	return f, err
}

func cannotBackUp(folder string, err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return parley.Refuse(parley.ReadOnly, "the backup cannot be written to %s: the disk is full", folder).WithHint("free space there, or back up to another disk")
	}
	return parley.Refuse(parley.InvalidArgument, "cannot back up to %s: %v", folder, err)
}

// OpenParts returns the parts of a backup as one whole backup, for Restore. The caller closes it.
func OpenParts(parts []Part, node capabilities.NodeID) (io.ReadCloser, error) {
	all := &partsReader{}
	magic := backupMagicOf(len(parts) > 0 && parts[0].archived, slices.ContainsFunc(parts, func(p Part) bool { return p.files }))
	inputs := []io.Reader{strings.NewReader(magic + string(node.Bytes()))}
	var last Mark
	for _, p := range parts {
		f, err := openPart(p.Path)
		if err != nil {
			return nil, errors.Join(err, all.Close())
		}
		all.files = append(all.files, f)
		inputs = append(inputs, io.NewSectionReader(f, int64(partHeader), p.Bytes-int64(partHeader)-4-backupTrailer))
		last = p.Last
	}
	all.Reader = io.MultiReader(append(inputs, strings.NewReader(string(trailer(last))))...)
	return all, nil
}

// partsReader reads parts and closes their files.
type partsReader struct {
	io.Reader
	files []*os.File
}

// Close closes all files.
func (r *partsReader) Close() error {
	var err error
	for _, f := range r.files {
		err = errors.Join(err, f.Close())
	}
	return err
}
