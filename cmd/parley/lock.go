package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"parley"
	"parley/actors/keys"
	"parley/cmd/parley/terminal"
)

// lock is the right to run on a state folder. The system releases it when its process dies.
type lock struct{ file *os.File }

// secureState makes the state folder if it does not exist, and refuses one that others can read.
func secureState(env *environment) error {
	err := keys.SecureFolder(env.options.state)
	if parley.CodeOf(err) == parley.Internal {
		return terminal.Unwritable(env.options.state, err)
	}
	return err
}

// lockState makes the state folder if it does not exist and takes its lock, or refuses with ALREADY_RUNNING.
func lockState(env *environment) (*lock, error) {
	if err := secureState(env); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(env.options.lock(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, terminal.Unwritable(env.options.state, err)
	}
	// isLocked holds it for an instant.
	for try := 0; ; try++ {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return writePID(file)
		}
		if try == 5 || !errors.Is(err, syscall.EWOULDBLOCK) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	defer file.Close() //nolint:errcheck // nothing was written
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("lock the state folder: %w", err)
	}
	return nil, alreadyRunning(file)
}

// writePID writes the number of this process into the lock.
func writePID(file *os.File) (*lock, error) {
	err := file.Truncate(0)
	if err == nil {
		_, err = file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write the lock: %w", err), file.Close())
	}
	return &lock{file}, nil
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

// release releases the lock. The file stays: removing it could remove the lock of another process.
func (l *lock) release() error { return l.file.Close() }

// isLocked reports whether a process runs on the state folder, and its number.
func isLocked(env *environment) (pid int, locked bool, err error) {
	file, err := os.Open(env.options.lock())
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	defer file.Close() //nolint:errcheck // only looked at
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return readPID(file), true, nil
	}
	return 0, false, err
}
