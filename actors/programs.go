package actors

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"parley"
	"parley/actors/view"
)

// heldFile is the name of the file in the state folder that says that the node starts no programs.
const heldFile = "programs-held"

// HoldPrograms has the node that is made in a state folder start no programs until it is told to. It is for a folder in which
// no node runs.
func HoldPrograms(folder string) error {
	path := filepath.Join(folder, heldFile)
	if err := os.WriteFile(path, []byte("restored from a backup: parley programs start\n"), 0o600); err != nil {
		return fmt.Errorf("hold the programs: %w", err)
	}
	return syncAll(path, folder)
}

// syncAll sees to it that files and folders are on disk.
func syncAll(paths ...string) error {
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// areHeld reports whether the programs of the node in a state folder are held.
func areHeld(folder string) (bool, error) {
	_, err := os.Lstat(filepath.Join(folder, heldFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look whether programs are held: %w", err)
	}
	return true, nil
}

func errHeld() error {
	return parley.Refuse(parley.NotPermitted, "the node was restored from a backup, and starts no programs yet").
		WithHint("parley programs start, when nothing else runs as this node")
}

// ProgramDefaults returns what holds for all programs of the node.
func (n *Node) ProgramDefaults() ProgramDefaults { return n.o.Programs }

// HoldsPrograms reports whether the node starts no programs until it is told to.
func (n *Node) HoldsPrograms() bool { return n.supervisor.isHeld() }

// StartPrograms has a node that was restored start its programs, for what waits for them and from now on.
func (n *Node) StartPrograms(ctx context.Context) error {
	err := os.Remove(filepath.Join(n.o.Folder, heldFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = syncAll(n.o.Folder)
	}
	if err != nil {
		return fmt.Errorf("start the programs: %w", err)
	}
	n.supervisor.unhold()
	agents, err := n.Host().Agents(ctx, view.AgentFilter{})
	if err != nil {
		return err
	}
	for _, a := range agents {
		if a.Runtime != "" && a.Queued > 0 {
			n.registry.tell(a.ID, 0, startNextRun{then: func(err error) {
				if err != nil {
					n.log.Warn("a program is not started", "mailbox", a.ID.String(), "error", err)
				}
			}})
		}
	}
	return nil
}

func (c *supervisor) isHeld() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held
}

func (c *supervisor) unhold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = false
}
