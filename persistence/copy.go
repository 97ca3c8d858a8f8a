package persistence

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"parley"
	"parley/internal/regular"
)

// The embedded server repairs what it opens: it cuts a block at the first record that it cannot read, with all records
// behind that. So a damaged byte would cost whole commits, also after it was put back. Files that were not closed in order are
// therefore first opened as a copy. Only if the log is whole there, a server opens the files themselves. Nothing ever takes
// their place. Whenever this process is killed, the log is where it was.
//
// The newest blocks are copied, since the server writes to them. Older ones are linked, where the disk can and where the
// server will find nothing to cut. All other files are small, and are copied.
//
// What the copy has taught need not be read again, since the files are the same bytes: the start goes on with its index
// of the log, and the server with its own.
const (
	serverFolder = "jetstream"
	copyFolder   = "copy-" // a number follows
	copyMark     = "made-by-parley"
	maxStrays    = 8 // names in a line of the log
)

// known is what a look at a copy has found of the journal.
type known struct {
	index     *index
	at        head
	unchecked uint64   // as replay returns it
	newest    *grouped // what it has in memory
}

// lookFirst opens a copy of the files of an embedded server that was not stopped in order. It returns what it has found,
// and nil if the server was. It fails as Open does, and where there are no files of a log that has a mark.
func lookFirst(ctx context.Context, o Options, mark Mark) (*known, error) {
	if o.URL != "" || o.original != "" {
		return nil, nil
	}
	folder := journalFolder(o.Folder)
	strays, err := sweepCopies(folder)
	if err != nil {
		return nil, err
	}
	if len(strays) > 0 {
		o.Log.Warn("there are files in the journal's folder that are none of the journal's: they are not used, and left as they are", "folder", folder, "files", strays[:min(len(strays), maxStrays)], "number", len(strays))
	}
	_, err = os.Lstat(filepath.Join(folder, serverFolder))
	if errors.Is(err, fs.ErrNotExist) && mark.Number > 0 { // the server would make an empty one, and a journal moved back would end up within it
		return nil, missingJournal(mark)
	}
	if errors.Is(err, fs.ErrNotExist) || err == nil && stoppedInOrder(&o) {
		return nil, nil
	}
	log := o.Log
	o.Log, o.Failpoint = nil, nil
	j, remove, err := openCopy(ctx, o, o.streamName())
	if err != nil {
		return nil, err
	}
	found := &known{index: j.directory.index, at: j.directory.head, unchecked: j.unchecked, newest: j.grouped.newest()}
	if err = j.Close(ctx); err == nil {
		err = handOver(&o, &j.o)
	}
	if err = errors.Join(err, remove()); err != nil {
		return nil, err
	}
	log.Debug("the journal is whole; its server was not stopped in order", "commits", found.at.Number)
	return found, nil
}

// handOver gives the server the index of the journal that it has made of a copy. It removes those of other streams: what
// they hold is derived, and the server checks it when it reads it.
func handOver(o, copied *Options) error {
	err := os.Rename(filepath.Join(blockFolder(copied), serverState), filepath.Join(blockFolder(o), serverState))
	for _, stream := range []string{streamOf(o.bucketName()), o.outputName(), o.filesName()} {
		if err == nil || errors.Is(err, fs.ErrNotExist) { // the log may be empty
			err = os.Remove(filepath.Join(blockFolderOf(o, stream), serverState))
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return readOnly("the journal's folder cannot be written", err)
	}
	return nil
}

// sweepCopies removes what processes that were killed have left of copies. It returns the names of other files in the
// journal's folder, which are nobody's.
func sweepCopies(folder string) (strays []string, err error) {
	there, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, readOnly("the journal's folder cannot be read", err)
	}
	for _, e := range there {
		path := filepath.Join(folder, e.Name())
		switch {
		case e.Name() == serverFolder || e.Name() == stoppedWell:
		case !e.IsDir() || !strings.HasPrefix(e.Name(), copyFolder):
			strays = append(strays, e.Name())
		default:
			if _, err := os.Lstat(filepath.Join(path, copyMark)); err == nil {
				if err := removeCopy(path); err != nil {
					return nil, err
				}
			} else if os.Remove(path) != nil { // a process may have been killed before it had marked an empty folder
				strays = append(strays, e.Name())
			}
		}
	}
	return strays, nil
}

// makeCopyFolder makes a folder for a copy, which is marked as such.
func makeCopyFolder(folder string) (string, error) {
	path, err := os.MkdirTemp(folder, copyFolder)
	if err == nil {
		err = os.WriteFile(filepath.Join(path, copyMark), nil, 0o600)
		if err == nil {
			err = SyncFolder(path)
		}
		if err != nil {
			err = errors.Join(err, os.RemoveAll(path))
		}
	}
	return path, err
}

// removeCopy removes a copy, and its mark last.
func removeCopy(path string) error {
	there, err := os.ReadDir(path)
	for _, e := range there {
		if err == nil && e.Name() != copyMark {
			err = os.RemoveAll(filepath.Join(path, e.Name()))
		}
	}
	if err == nil {
		err = os.RemoveAll(path)
	}
	if err != nil {
		return readOnly("the copy of the journal cannot be removed", err)
	}
	return nil
}

// OpenCopy opens a copy of a journal with an embedded server, to read it: no file of the journal is changed, whatever the
// server does to what it opens. The caller ensures that no other process has the journal open, reads, and closes the
// journal; then it calls remove. OpenCopy fails as Open does.
func OpenCopy(ctx context.Context, o Options) (j *Journal, remove func() error, err error) {
	return openCopy(ctx, o, o.streamName(), o.filesName())
}

// openCopy is OpenCopy with some of the streams.
func openCopy(ctx context.Context, o Options, streams ...string) (j *Journal, remove func() error, err error) {
	from := o
	o.original = o.Folder
	folder := journalFolder(o.Folder)
	if o.Folder, err = filepath.EvalSymlinks(folder); errors.Is(err, fs.ErrNotExist) {
		return nil, nil, parley.Refuse(parley.CorruptLog, "the journal is missing: there is no folder %s", folder).
			WithHint("put the journal back, or restore a backup into a new folder")
	} else if err != nil {
		return nil, nil, readOnly("the journal cannot be read", err)
	}
	if _, err = sweepCopies(o.Folder); err == nil {
		o.Folder, err = makeCopyFolder(o.Folder)
	}
	if err != nil {
		return nil, nil, readOnly("the journal cannot be copied to read it", err)
	}
	remove = func() error { return removeCopy(o.Folder) }
	if err = copyJournalFiles(&from, &o, streams); err != nil {
		return nil, nil, errors.Join(readOnly("the journal cannot be copied to read it", err), remove())
	}
	if j, err = Open(ctx, o); err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	return j, remove, nil
}

// copyJournalFiles copies what a journal is made of, but for its archive, which nobody changes.
func copyJournalFiles(from, to *Options, streams []string) error {
	var err error
	for _, stream := range streams {
		if err == nil {
			err = copyStream(from, to, stream)
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = nil // the journal says what it lacks
		}
	}
	for name, copy := range map[string]func(from, to string) error{
		HighWaterFile: copyFile,
		indexFile:     linkFile, // it is replaced, and never written to
	} {
		if err == nil {
			if err = copy(filepath.Join(from.Folder, name), filepath.Join(to.Folder, name)); errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
		}
	}
	return err
}

// copyStream copies the files of a stream. It links the blocks that the server only reads. The server's index
// is not copied if the server was not stopped in order.
func copyStream(from, to *Options, stream string) error {
	inOrder := stoppedInOrder(from)
	blocks, err := blocksIn(blockFolderOf(from, stream))
	if err != nil {
		return err
	}
	older := blocks[:max(0, len(blocks)-newestBlocks)]
	root, target := filepath.Dir(blockFolderOf(from, stream)), filepath.Dir(blockFolderOf(to, stream))
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return err
	}
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		target := filepath.Join(target, strings.TrimPrefix(path, root))
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return os.Mkdir(target, 0o700)
		case d.Name() == serverState && !inOrder:
			return nil
		case slices.Contains(older, path):
			if inOrder {
				return linkFile(path, target)
			}
			if _, fit, err := checkBlock(stream, path); fit && err == nil {
				return linkFile(path, target)
			}
		}
		return copyFile(path, target)
	})
}

// linkFile gives a regular file a second name. Where the disk cannot, it copies the file.
func linkFile(from, to string) error {
	if info, err := os.Lstat(from); err == nil && info.Mode().IsRegular() && os.Link(from, to) == nil {
		return nil
	}
	return copyFile(from, to)
}

// copyFile copies a regular file to one that does not exist.
func copyFile(from, to string) error {
	in, err := regular.Open(from, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // it was only read
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("copy %s: %w", filepath.Base(from), err)
	}
	return nil
}
