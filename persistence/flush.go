package persistence

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley"
)

// names flushes the names of a stream's files. The embedded server flushes each write before it acknowledges it. It does
// not flush the name of a file that it has made for it. Without the name there is no file after a power cut. What changes
// in a folder changes its time.
type names struct {
	folder string

	watched bool // the newest file has to stay where it is

	mu     sync.Mutex
	at     time.Time   // of the folder when it was last flushed
	is     os.FileInfo // the folder then: a copy in its place can have its time
	newest os.FileInfo // the file of the highest number when it was last looked at, nil if there was none
	size   int64       // of that file, in bytes, when what was acknowledged was last in it; 0 if that is not known
	cuts   int         // under way: the server may put another file in the place of one
}

// moved returns the error for a file of the log that has no name any more. The server has it open, writes to it, and acknowledges. The journal
// is not opened again by itself: the server would begin a new log in the place of the file.
func moved(name string) error {
	return parley.Refuse(parley.CorruptLog, "the file %s of the log was removed, replaced or cut short while the node runs", name).
		WithHint("stop the node, put the file back from where it is now or from a snapshot of the disk, and start the node again; else restore a backup into a new folder")
}

// check fails if the newest file of a log that is watched was removed or replaced. A purge removes files too, and never the newest. Only a
// change of the folder can be such a thing, and so a commit costs nothing for it.
func (n *names) check() error {
	if !n.watched {
		return nil
	}
	files, err := os.ReadDir(n.folder)
	if err != nil {
		return err
	}
	highest, name := -1, ""
	for _, f := range files {
		if number, err := strconv.Atoi(strings.TrimSuffix(f.Name(), blockSuffix)); err == nil && number > highest {
			highest, name = number, f.Name()
		}
	}
	was := n.newest
	n.newest, n.size = nil, 0
	if name != "" {
		if n.newest, err = os.Stat(filepath.Join(n.folder, name)); err != nil {
			return err
		}
	}
	if was == nil || n.cuts > 0 {
		return nil
	}
	now, err := os.Stat(filepath.Join(n.folder, was.Name()))
	switch {
	case err == nil && os.SameFile(was, now):
		return nil
	case errors.Is(err, fs.ErrNotExist) && n.newest != nil && isBehind(was.Name(), name): // the server has gone on to another, and a purge has removed it
		return nil
	}
	return moved(was.Name())
}

// whole fails if the newest file of a log that is watched has become shorter since the last flush. The server would write on where the file
// ended, with a hole before that.
func (n *names) whole() error {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.newest == nil || n.size == 0 || n.cuts > 0 {
		return nil
	}
	info, err := os.Stat(filepath.Join(n.folder, n.newest.Name()))
	if err == nil && info.Size() < n.size {
		return moved(n.newest.Name())
	}
	return nil // flush looks for one that is not there
}

// isBehind reports whether a file of the log comes before another.
func isBehind(file, other string) bool {
	a, _ := strconv.Atoi(strings.TrimSuffix(file, blockSuffix)) // check has read both
	b, _ := strconv.Atoi(strings.TrimSuffix(other, blockSuffix))
	return a < b
}

// look has a log watched from now on.
func (n *names) look() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.watched = true
	_ = n.check() // there may be no folder yet
}

// cutting says that the server removes what is before a commit, and puts a shorter file in the place of the one that has it. The caller calls
// the function that is returned when that is done.
func (n *names) cutting() (done func()) {
	if n == nil {
		return func() {}
	}
	add := func(more int) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.cuts += more
		n.size = 0
		if n.cuts == 0 {
			n.newest = nil
			_ = n.check() // the next flush looks again
		}
	}
	add(1)
	return func() { add(-1) }
}

// tick is longer than the steps in which a disk tells the time: within one, another name may be made.
const tick = 20 * time.Millisecond

// flush blocks until the names of all files are on disk that hold what was acknowledged.
func (n *names) flush() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	info, err := os.Stat(n.folder)
	if err == nil && (!info.ModTime().Equal(n.at) || n.is != nil && !os.SameFile(n.is, info)) {
		if err = n.check(); err == nil {
			err = SyncFolder(n.folder)
		}
		if err == nil && time.Since(info.ModTime()) > tick {
			n.at, n.is = info.ModTime(), info
		}
	}
	if err != nil {
		return fmt.Errorf("flush the disk: %w", err)
	}
	if n.newest != nil && n.cuts == 0 {
		if info, err := os.Stat(filepath.Join(n.folder, n.newest.Name())); err == nil {
			n.size = info.Size()
		}
	}
	return nil
}
