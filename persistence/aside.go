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
// behind that. So a damaged byte would cost whole commits, also after it was put back. Before a server opens files that were
// not closed in order, they are copied aside:
//
//	journal/jetstream                 the server's files
//	journal/making                    the copy, until all of it is on disk
//	journal/aside                     then: what counts if this process is killed now
//	journal/spoiled                   the server's files, while the copy takes their place
//
// If the log turns out whole, aside is renamed to making, and removed. If the start is refused, the server's files are
// renamed to spoiled and aside takes their name. A start begins with what an earlier one has left: it removes making and
// spoiled, and puts an aside back. So each step may be the last one of a process.
//
// The newest blocks are copied, since the server writes to them. Older ones are linked, where the disk can: they are known
// to be whole before a server that would read them is started. All other files are small, and are copied.
const (
	serverFolder  = "jetstream"
	asideFolder   = "aside"
	makingFolder  = "making"
	spoiledFolder = "spoiled"
	copyFolder    = "copy" // of OpenCopy
)

// guarded runs a start of a journal, which has stopped its server where it fails. Then the files of an embedded server are as
// they were.
func guarded(o *Options, start func() error) error {
	if o.URL != "" || o.original != "" {
		return start()
	}
	err := setAside(o)
	if err != nil {
		return err
	}
	if err = start(); err != nil {
		err = errors.Join(err, putBack(o))
	}
	return err
}

// setAside copies the server's files aside unless the server was stopped in order. It first puts back what an earlier
// start has left.
func setAside(o *Options) error {
	folder := journalFolder(o.Folder)
	err := putBack(o)
	if err == nil {
		_, err = os.Lstat(filepath.Join(folder, serverFolder))
	}
	if errors.Is(err, fs.ErrNotExist) || err == nil && stoppedInOrder(o) {
		return nil
	}
	making := filepath.Join(folder, makingFolder)
	if err == nil {
		err = o.step(StepAside, func() error {
			err := copyTree(filepath.Join(folder, serverFolder), making)
			if err == nil {
				err = flushTree(making)
			}
			return err
		})
	}
	if err == nil {
		err = renameIn(folder, makingFolder, asideFolder)
	}
	if err != nil {
		return readOnly("the journal was not closed in order, and cannot be copied before it is opened", errors.Join(err, os.RemoveAll(making)))
	}
	return nil
}

// putBack has the copy that was set aside, if there is one, take the place of the server's files. No server runs on them.
func putBack(o *Options) error {
	folder := journalFolder(o.Folder)
	spoiled := filepath.Join(folder, spoiledFolder)
	err := o.step(StepPutBack, func() error {
		_, err := os.Lstat(filepath.Join(folder, asideFolder))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			err = os.RemoveAll(spoiled)
		}
		if err == nil {
			if err = renameIn(folder, serverFolder, spoiledFolder); errors.Is(err, fs.ErrNotExist) {
				err = nil // an earlier process was killed between the two
			}
		}
		if err == nil {
			err = renameIn(folder, asideFolder, serverFolder)
		}
		return err
	})
	for _, name := range []string{spoiledFolder, makingFolder, copyFolder} {
		if err == nil {
			err = os.RemoveAll(filepath.Join(folder, name))
		}
	}
	if err != nil {
		return readOnly("the journal cannot be put back as it was", err)
	}
	return nil
}

// dropAside drops the copy that was set aside, if there is one: the log is whole. It returns once no later start puts it
// back.
func dropAside(o *Options) error {
	folder := journalFolder(o.Folder)
	err := o.step(StepDropAside, func() error { return renameIn(folder, asideFolder, makingFolder) })
	if err == nil {
		err = os.RemoveAll(filepath.Join(folder, makingFolder))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return readOnly("the copy of the journal cannot be removed", err)
	}
	return nil
}

// renameIn renames a file in a folder, on disk.
func renameIn(folder, from, to string) error {
	if err := os.Rename(filepath.Join(folder, from), filepath.Join(folder, to)); err != nil {
		return err
	}
	return SyncFolder(folder)
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
	o.Folder = filepath.Join(o.Folder, copyFolder)
	remove = func() error {
		if err := os.RemoveAll(o.Folder); err != nil {
			return readOnly("the copy of the journal cannot be removed", err)
		}
		return nil
	}
	if err = remove(); err == nil {
		err = copyJournalFiles(o.original, o.Folder)
	}
	if err != nil {
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
	server := filepath.Join(journalFolder(from), asideFolder) // of a start that was killed
	if _, err := os.Lstat(server); errors.Is(err, fs.ErrNotExist) {
		server = filepath.Join(journalFolder(from), serverFolder)
	}
	err := copyTree(server, filepath.Join(journalFolder(to), serverFolder))
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
