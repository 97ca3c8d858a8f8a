package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/actors/keys"
	"parley/cmd/parley/proc"
	"parley/cmd/parley/terminal"
)

// Names in the state folder.
const (
	stateFolderName = "parley"
	socketFile      = "parley.sock"
	lockFile        = "parley.lock"
	logFile         = "parley.log"
	standbyFile     = "parley.standby"
	redirectFile    = "parley.open.html" // redirects a browser to a link
)

// stateFolder is the folder in which a node keeps its key, its journal and its files.
type stateFolder string

// defaultState returns the state folder for an environment; "" if there is no home folder.
func defaultState(env func(string) (string, bool)) stateFolder {
	if xdg, ok := env("XDG_STATE_HOME"); ok && filepath.IsAbs(xdg) {
		return stateFolder(filepath.Join(xdg, stateFolderName))
	}
	home, ok := env("HOME")
	if !ok || home == "" {
		return ""
	}
	return stateFolder(filepath.Join(home, ".local", "state", stateFolderName))
}

func (s stateFolder) in(name string) string { return filepath.Join(string(s), name) }

func (s stateFolder) socket() string   { return s.in(socketFile) }
func (s stateFolder) lockPath() string { return s.in(lockFile) }
func (s stateFolder) log() string      { return s.in(logFile) }
func (s stateFolder) standby() string  { return s.in(standbyFile) }
func (s stateFolder) redirect() string { return s.in(redirectFile) }
func (s stateFolder) bridges() string  { return s.in("bridges.json") }
func (s stateFolder) pushes() string   { return s.in("a2a-push") } // of A2A
func (s stateFolder) coders() string   { return s.in("coders.json") }
func (s stateFolder) key() string      { return s.in(keys.FileName) }
func (s stateFolder) journal() string  { return s.in("journal") }
func (s stateFolder) lease() string    { return s.in("lease") }
func (s stateFolder) restore() string  { return s.in("restore") } // where a restored key waits for its journal

// unwritable returns the error for a folder that cannot be written to.
func (s stateFolder) unwritable(err error) error { return terminal.Unwritable(string(s), err) }

// lock is the right to run on a state folder. The system releases it when its process dies.
type lock struct {
	file *os.File
	was  []byte // the contents of the file before
}

// secure makes the folder if it does not exist, and refuses one that others can read.
func (s stateFolder) secure() error {
	err := keys.SecureFolder(string(s))
	if parley.CodeOf(err) == parley.Internal {
		return s.unwritable(err)
	}
	return err
}

// lock makes the folder if it does not exist and takes its lock, or refuses with ALREADY_RUNNING.
func (s stateFolder) lock() (*lock, error) {
	if err := s.secure(); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(s.lockPath(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, s.unwritable(err)
	}
	// holder holds it for an instant.
	for try := 0; ; try++ {
		err = proc.Lock(file)
		if err == nil {
			return writePID(file)
		}
		if try == 5 || !errors.Is(err, proc.ErrLocked) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	defer file.Close() //nolint:errcheck // nothing was written
	if !errors.Is(err, proc.ErrLocked) {
		return nil, fmt.Errorf("lock the state folder: %w", err)
	}
	return nil, alreadyRunning(file)
}

// writePID writes the number of this process into the lock.
func writePID(file *os.File) (*lock, error) {
	was, err := io.ReadAll(io.LimitReader(file, maxLock))
	if err == nil {
		err = overwrite(file, []byte(strconv.Itoa(os.Getpid())+"\n"))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write the lock: %w", err), file.Close())
	}
	return &lock{file, was}, nil
}

// maxLock is more than the number of a process has bytes.
const maxLock = 4 << 10

// overwrite replaces the contents of an open file.
func overwrite(file *os.File, with []byte) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := file.WriteAt(with, 0)
	return err
}

func alreadyRunning(file *os.File) error {
	who := ""
	if pid := readPID(file); pid != 0 {
		who = fmt.Sprintf(" as process %d", pid)
	}
	return parley.Refuse(parley.AlreadyRunning, "a node runs on this state folder already%s", who).
		WithHint("parley stop ends it; another node needs another --state folder")
}

func readPID(file *os.File) int {
	var b [32]byte
	n, _ := file.ReadAt(b[:], 0) // an empty file has no number, which is the answer
	pid, err := strconv.Atoi(strings.TrimSpace(string(b[:n])))
	if err != nil {
		return 0
	}
	return pid
}

// release releases the lock. The file stays, as it was before: removing it could remove the lock of another process.
// Closing alone would leave the lock with a child that is forked and has not started its program yet.
func (l *lock) release() error {
	return errors.Join(overwrite(l.file, l.was), proc.Unlock(l.file), l.file.Close())
}

// holder reports whether a process runs on the folder, and returns its number.
func (s stateFolder) holder() (pid int, locked bool, err error) {
	file, err := os.Open(s.lockPath())
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	defer file.Close() //nolint:errcheck // only looked at
	err = proc.LockShared(file)
	if errors.Is(err, proc.ErrLocked) {
		return readPID(file), true, nil
	}
	return 0, false, err
}
