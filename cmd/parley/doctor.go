package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/actors/keys"
	"parley/cmd/parley/bench"
	"parley/cmd/parley/terminal"
)

// finding is what one check came to.
type finding struct {
	Check  string `json:"check"`
	Result string `json:"result"` // ok, warn or fail
	Detail string `json:"detail"`
}

const (
	fine    = "ok"
	dubious = "warn"
	bad     = "fail"
)

// What a disk should have and do.
const (
	littleSpace = 256 << 20
	slowFsync   = 50 * time.Millisecond
)

func (p *program) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "doctor",
		Short:   "Check the state folder, the disk and the node",
		Long:    "Checks what a node needs and says what is wrong, one line a check. Fails if any check does.",
		Example: "  parley doctor\n  parley doctor --json",
		RunE: func(c *cobra.Command, _ []string) error {
			found := p.examine(c.Context())
			failed := slices.ContainsFunc(found, func(f finding) bool { return f.Result == bad })
			err := p.say(found, func() string {
				text := ""
				for i, f := range found {
					if i > 0 {
						text += "\n"
					}
					text += fmt.Sprintf("%-4s  %-13s %s", f.Result, f.Check, terminal.Visible(f.Detail))
				}
				return text
			})
			if err == nil && failed {
				err = parley.Refuse(parley.Internal, "not everything is as it should be")
			}
			return err
		},
	}
}

func (p *program) examine(ctx context.Context) []finding {
	checks := []struct {
		name  string
		check func(context.Context) (string, string)
	}{
		{"state folder", p.checkFolder},
		{"key", p.checkKey},
		{"free space", p.checkSpace},
		{"fsync", p.checkFsync},
		{"lock", p.checkLock},
		{"socket", p.checkSocket},
		{"node", p.checkNode},
		{"limits", p.checkLimits},
		{"quotas", p.checkQuotas},
	}
	found := make([]finding, len(checks))
	for i, c := range checks {
		result, detail := c.check(ctx)
		found[i] = finding{c.name, result, detail}
	}
	return found
}

func (p *program) checkFolder(context.Context) (string, string) {
	info, err := os.Stat(p.options.state)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return dubious, p.options.state + " is not there yet: parley start makes it"
	case err != nil:
		return bad, err.Error()
	case !info.IsDir():
		return bad, p.options.state + " is no folder"
	case info.Mode().Perm()&0o077 != 0:
		return dubious, fmt.Sprintf("%s has mode %04o: others may look into it, and start refuses it: chmod 700", p.options.state, info.Mode().Perm())
	}
	return fine, p.options.state
}

func (p *program) checkKey(context.Context) (string, string) {
	path := filepath.Join(p.options.state, keys.FileName)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return dubious, "there is none yet"
	case err != nil:
		return bad, err.Error()
	case info.Mode().Perm()&0o077 != 0:
		return bad, fmt.Sprintf("mode %04o: whoever reads it can be this node; want 0600", info.Mode().Perm())
	}
	if _, err := keys.Load(p.options.state); err != nil {
		return bad, err.Error()
	}
	return fine, keys.FileName + ", mode 0600"
}

func (p *program) checkSpace(context.Context) (string, string) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(p.nearestFolder(), &disk); err != nil {
		return bad, err.Error()
	}
	free := disk.Bavail * uint64(disk.Bsize)
	detail := fmt.Sprintf("%d MiB", free>>20)
	if free < littleSpace {
		return dubious, detail + ": the node goes read-only when there is none"
	}
	return fine, detail
}

// nearestFolder is the state folder, or the nearest one above it that is there.
func (p *program) nearestFolder() string {
	folder := p.options.state
	for folder != filepath.Dir(folder) {
		if info, err := os.Stat(folder); err == nil && info.IsDir() {
			return folder
		}
		folder = filepath.Dir(folder)
	}
	return folder
}

func (p *program) checkFsync(ctx context.Context) (string, string) {
	raw, err := bench.MeasureDisk(ctx, p.nearestFolder(), 200*time.Millisecond)
	if err != nil {
		return bad, err.Error()
	}
	detail := fmt.Sprintf("%.2f ms for 4 KiB", raw.P50().Seconds()*1000)
	if raw.P50() > slowFsync {
		return dubious, detail + ": every acknowledgement waits for two of these"
	}
	return fine, detail
}

func (p *program) checkLock(context.Context) (string, string) {
	pid, locked, err := p.isLocked()
	switch {
	case err != nil:
		return bad, err.Error()
	case locked:
		return fine, fmt.Sprintf("held by process %d", pid)
	}
	return fine, "free: no node runs"
}

func (p *program) checkSocket(context.Context) (string, string) {
	info, err := os.Lstat(p.options.socket())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fine, "there is none: no node runs"
	case err != nil:
		return bad, err.Error()
	case info.Mode().Type() != fs.ModeSocket:
		return bad, p.options.socket() + " is no socket"
	case info.Mode().Perm() != 0o600:
		return bad, fmt.Sprintf("mode %04o: whoever opens it acts for the host; want 0600", info.Mode().Perm())
	}
	if _, locked, err := p.isLocked(); err == nil && !locked {
		return dubious, "left behind by a crash; the next start replaces it"
	}
	return fine, p.options.socket()
}

func (p *program) checkNode(ctx context.Context) (string, string) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	status, err := p.status(ctx)
	switch {
	case parley.CodeOf(err) == parley.NotRunning:
		return dubious, "not running: parley start"
	case err != nil:
		return bad, err.Error()
	case status.Problem != nil:
		return bad, status.Problem.Error()
	case status.Journal.Flushing > 0:
		return dubious, "the disk " + slowDisk(status.Journal.Flushing)
	}
	if status.Programs.Held {
		return dubious, "programs are held since the node was restored: parley programs start"
	}
	return fine, fmt.Sprintf("process %d, %d agents, %d open forms, %d commits", status.PID, status.Agents, status.OpenForms, status.Journal.Commits)
}

func (p *program) checkQuotas(ctx context.Context) (string, string) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	status, err := p.status(ctx)
	if err != nil {
		return fine, "not known: no node answers"
	}
	return checkQuotas(status.Quotas)
}
