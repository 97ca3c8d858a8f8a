package runtime

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// cgroups makes a cgroup for each program below the node's own, if the system allows it. All processes of a cgroup are
// killed in one step, however fast they fork.
type cgroups struct {
	root, mount string // which part of the hierarchy of version 2 is mounted, and where
	own         string // folder of the node's cgroup
}

// findCgroups finds the cgroup of this process.
func findCgroups() cgroups {
	var c cgroups
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return c
	}
	for line := range strings.Lines(string(mounts)) {
		before, after, _ := strings.Cut(line, " - ")
		if fields := strings.Fields(before); strings.HasPrefix(after, "cgroup2 ") && len(fields) > 4 {
			c.root, c.mount = fields[3], fields[4]
			break
		}
	}
	c.own = c.of(os.Getpid())
	return c
}

// of returns the folder of a process's cgroup, "" if there is none.
func (c cgroups) of(pid int) string {
	if c.mount == "" {
		return ""
	}
	f, err := os.Open(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // only read from
	for lines := bufio.NewScanner(f); lines.Scan(); {
		path, ok := strings.CutPrefix(lines.Text(), "0::")
		if !ok {
			continue
		}
		below, err := filepath.Rel(c.root, path)
		if err != nil || below == ".." || strings.HasPrefix(below, "../") {
			return ""
		}
		return filepath.Join(c.mount, below)
	}
	return ""
}

// make makes a cgroup for a program and returns its folder, "" if the node may not.
func (c cgroups) make() string {
	if c.own == "" {
		return ""
	}
	folder, err := os.MkdirTemp(c.own, "parley-")
	if err != nil {
		return ""
	}
	if _, err := os.Stat(filepath.Join(folder, killFile)); err != nil { // of a system before 5.14
		c.remove(folder)
		return ""
	}
	return folder
}

// remove kills the processes of a cgroup, and removes it with the cgroups below it.
func (c cgroups) remove(folder string) {
	if folder == "" {
		return
	}
	for over := deadline(goneWait); !over(); {
		killCgroup(folder)
		if removeFolders(folder) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// removeFolders removes a folder of the hierarchy and those below it. It reports whether the folder is gone.
func removeFolders(folder string) bool {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	for _, e := range entries {
		if e.IsDir() {
			removeFolders(filepath.Join(folder, e.Name()))
		}
	}
	return os.Remove(folder) == nil
}

const killFile = "cgroup.kill"

// killCgroup kills all processes of a cgroup. It does nothing if there is no cgroup.
func killCgroup(folder string) {
	if folder != "" {
		_ = os.WriteFile(filepath.Join(folder, killFile), []byte("1"), 0o600) // what it leaves is found by who descends from the program
	}
}

// deadline returns a function that reports whether a time has passed.
func deadline(d time.Duration) func() bool {
	end := time.Now().Add(d)
	return func() bool { return time.Now().After(end) }
}
