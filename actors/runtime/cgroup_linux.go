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

// cgroups is where the programs of a node get a cgroup each, if the system lets the node make them: below its own. What is in
// a cgroup is killed in one step, however fast it forks.
type cgroups struct {
	root, mount string // which part of the hierarchy of version 2 is mounted, and where
	own         string // folder of the node's cgroup
}

// findCgroups looks for the cgroup of this process.
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

// of returns the folder of a process's cgroup, or "".
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

// make makes a cgroup for a program and returns its folder, or "" where the node may not.
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

// remove kills what is in a cgroup, and removes it with those that were made below it.
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

// removeFolders removes a folder of the hierarchy, those below it first, and reports whether it is gone.
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

// killCgroup kills all that is in a cgroup. Where there is none it does nothing.
func killCgroup(folder string) {
	if folder != "" {
		_ = os.WriteFile(filepath.Join(folder, killFile), []byte("1"), 0o600) // what it leaves is found by who descends from the program
	}
}

// deadline returns what reports whether a time is over.
func deadline(d time.Duration) func() bool {
	end := time.Now().Add(d)
	return func() bool { return time.Now().After(end) }
}
