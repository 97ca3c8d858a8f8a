//go:build !client

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"parley"
	"parley/actors/keys"
	"parley/cmd/parley/proc"
	"parley/internal/disk"
	"parley/internal/regular"
)

func (s stateFolder) key() string { return s.in(keys.FileName) }

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
	file, err := regular.OpenOrCreate(s.lockPath())
	if errors.Is(err, regular.ErrNot) {
		return nil, s.noLock()
	}
	if err != nil {
		return nil, s.unwritable(err)
	}
	// holder holds it for an instant.
	for try := 0; ; try++ {
		err = proc.Lock(file)
		if err == nil {
			l, err := writePID(file)
			if disk.Hint(err) != "" {
				err = s.unwritable(err)
			}
			return l, err
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
	return parley.Refuse(parley.AlreadyRunning, "a node, or a command that works without one, such as a backup, has this state folder already%s", who).
		WithHint("parley stop ends a node, and a command ends by itself; another node needs another --state folder")
}

// release releases the lock. The file stays, as it was before: removing it could remove the lock of another process.
// Closing alone would leave the lock with a child that is forked and has not started its program yet.
func (l *lock) release() error {
	return errors.Join(overwrite(l.file, l.was), proc.Unlock(l.file), l.file.Close())
}
