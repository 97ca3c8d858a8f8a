package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/cmd/parley/proc"
	"parley/gateway/client"
	"parley/internal/disk"
	"parley/internal/regular"
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
func (s stateFolder) journal() string  { return s.in("journal") }
func (s stateFolder) lease() string    { return s.in("lease") }
func (s stateFolder) restore() string  { return s.in("restore") } // where a restored key waits for its journal

// unwritable returns the error for a folder that cannot be written to.
func (s stateFolder) unwritable(err error) error { return disk.Unwritable(string(s), err) }

func readPID(file *os.File) int {
	var b [32]byte
	n, _ := file.ReadAt(b[:], 0) // an empty file has no number, which is the answer
	pid, err := strconv.Atoi(strings.TrimSpace(string(b[:n])))
	if err != nil {
		return 0
	}
	return pid
}

// noLock returns the error for something else than a file in the place of the lock. A pipe there would be waited for, and
// through a link the number of the process would be written over another file.
func (s stateFolder) noLock() error {
	return parley.Refuse(parley.InvalidArgument, "%s is not a regular file", s.lockPath()).
		WithHint("remove it: the next start makes the file")
}

// nodeProcess reports whether a process other than a standby has the folder, and returns its number.
func (s stateFolder) nodeProcess() (pid int, held bool, err error) {
	pid, held, err = s.holder()
	return pid, held && !s.isStandby(pid), err
}

// isStandby reports whether a process waits as a standby.
func (s stateFolder) isStandby(pid int) bool {
	who, err := regular.Read(s.standby())
	return err == nil && string(who) == strconv.Itoa(pid)
}

// unanswered returns the error of a node that has the folder though nothing takes connections on its socket, or the one given.
func (s stateFolder) unanswered(ctx context.Context, unchanged error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if conn, err := client.Dial(ctx, s.socket()); err == nil {
		_ = conn.Close() // nothing was sent
		return unchanged
	}
	pid, held, look := s.nodeProcess()
	if look != nil || !held {
		return unchanged
	}
	return parley.Refuse(parley.NotRunning, "process %d runs on this state folder, and nothing answers on its socket %s: it is starting or stopping, or the socket was removed or replaced",
		pid, s.socket()).WithHint("if it stays so: parley stop ends it, parley start starts it again, and nothing is lost")
}

// checkHolder refuses a process that answers on the socket while another has the folder.
func (s stateFolder) checkHolder(pid int) error {
	has, held, err := s.nodeProcess()
	if err != nil || !held || has == pid {
		return err
	}
	if info, err := os.Stat(s.lockPath()); err == nil && proc.Locks(pid, info) { // the number in the lock is that of another container
		return nil
	}
	return parley.Refuse(parley.Timeout, "process %d answers on the node's socket, and the node is process %d", pid, has).
		WithHint("parley stop ends the node, parley start starts it again with a socket of its own; find out what has replaced it")
}

// holder reports whether a process runs on the folder, and returns its number.
func (s stateFolder) holder() (pid int, locked bool, err error) {
	file, err := regular.Open(s.lockPath(), os.O_RDONLY)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, false, nil
	case errors.Is(err, regular.ErrNot):
		return 0, false, s.noLock()
	case err != nil:
		return 0, false, err
	}
	defer file.Close() //nolint:errcheck // only looked at
	err = proc.LockShared(file)
	if errors.Is(err, proc.ErrLocked) {
		return readPID(file), true, nil
	}
	return 0, false, err
}
