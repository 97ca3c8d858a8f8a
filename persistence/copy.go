package persistence

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"parley"
	"parley/persistence/archive"
)

// The embedded server repairs what it opens: it cuts a block at the first record that it cannot read, with all records
// behind that. So a damaged byte would cost whole commits, also after it was put back. Files that were not closed in order are
// therefore first opened as a copy. Only if the log is whole there, a server opens the files themselves. Nothing ever takes
// their place. Whenever this process is killed, the log is where it was.
//
// The newest blocks are copied, since the server writes to them. Older ones are linked, where the disk can: they are known
// to be whole before a server that would read them is started. All other files are small, and are copied.
const (
	serverFolder = "jetstream"
	copyFolder   = "copy-" // a number follows
	copyMark     = "made-by-parley"
	maxStrays    = 8 // names in a line of the log
)

// lookFirst opens a copy of the files of an embedded server that was not stopped in order. It fails as Open does.
func lookFirst(ctx context.Context, o Options) error {
	if o.URL != "" || o.original != "" {
		return nil
	}
	folder := journalFolder(o.Folder)
	strays, err := sweepCopies(folder)
	if err != nil {
		return err
	}
	if len(strays) > 0 {
		o.Log.Warn("there are files in the journal's folder that are none of the journal's: they are not used, and left as they are", "folder", folder, "files", strays[:min(len(strays), maxStrays)], "number", len(strays))
	}
	_, err = os.Lstat(filepath.Join(folder, serverFolder))
	if errors.Is(err, fs.ErrNotExist) || err == nil && stoppedInOrder(&o) {
		return nil
	}
	o.Log, o.Failpoint = nil, nil
	j, remove, err := OpenCopy(ctx, o)
	if err != nil {
		return err
	}
	return errors.Join(j.Close(ctx), remove())
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
	if err = copyJournalFiles(o.original, o.Folder); err != nil {
		return nil, nil, errors.Join(readOnly("the journal cannot be copied to read it", err), remove())
	}
	if j, err = Open(ctx, o); err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	return j, remove, nil
}

// copyJournalFiles copies what a journal is made of, but for its archive, which nobody changes.
func copyJournalFiles(from, to string) error {
	if err := os.MkdirAll(journalFolder(to), 0o700); err != nil {
		return err
	}
	err := copyTree(filepath.Join(journalFolder(from), serverFolder), filepath.Join(journalFolder(to), serverFolder))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // the journal says what it lacks
	}
	for name, copy := range map[string]func(from, to string) error{
		filepath.Join("journal", stoppedWell): copyFile,
		highWaterFile:                         copyFile,
		indexFile:                             linkFile, // it is replaced, and never written to
	} {
		if err == nil {
			if err = copy(filepath.Join(from, name), filepath.Join(to, name)); errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
		}
	}
	return err
}

// copyTree copies the files below a folder to one that does not exist. It links the blocks that the server only reads.
func copyTree(from, to string) error {
	var reads map[string]bool // the older blocks of the folder at hand
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		switch {
		case d.IsDir():
			blocks, err := blocksIn(path)
			if err != nil {
				return err
			}
			reads = map[string]bool{}
			for _, b := range blocks[:max(0, len(blocks)-newestBlocks)] {
				reads[b] = true
			}
			return os.Mkdir(target, 0o700)
		case reads[path]:
			return linkFile(path, target)
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
	in, err := archive.OpenRegular(from, os.O_RDONLY)
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
