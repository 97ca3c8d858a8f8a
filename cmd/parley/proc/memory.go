package proc

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
)

// LimitMemory has the garbage collector keep this process below the limits of its control groups. The system kills a
// process that takes more. Nothing changes where there is no such limit.
func LimitMemory() {
	if bytes, ok := groupMemory("/"); ok {
		debug.SetMemoryLimit(softLimit(bytes))
	}
}

// The rest of a group's memory is for what the collector does not see: the program's own pages, the kernel's memory for
// sockets and files, and what is taken while a collection runs.
const (
	beside = 16 << 20
	least  = 32 << 20 // below it the collector would run all the time
)

// softLimit returns the limit of the collector in a group with a limit.
func softLimit(bytes int64) int64 { return max(bytes/10*9-beside, least) }

// groupMemory returns the least memory limit of the control groups that the process is in, for a root folder. It reads
// both versions of control groups.
func groupMemory(root string) (bytes int64, ok bool) {
	groups, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return 0, false
	}
	mounts, err := os.ReadFile(filepath.Join(root, "proc/self/mountinfo"))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(groups)) { // 4:cpu,memory:/a/b, or 0::/a/b in the second version
		_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		controllers, group, found := strings.Cut(rest, ":")
		kind, file := "cgroup", "memory.limit_in_bytes"
		if controllers == "" {
			kind, file = "cgroup2", "memory.max"
		} else if !slices.Contains(strings.Split(controllers, ","), "memory") {
			continue
		}
		if !found {
			continue
		}
		top, under, mounted := mountOf(string(mounts), kind, group)
		for at := under; mounted; at = filepath.Dir(at) {
			text, err := os.ReadFile(filepath.Join(root, top, at, file))
			if n, bad := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && bad == nil && n > 0 && (!ok || n < bytes) { // else "max"
				bytes, ok = n, true
			}
			if at == "/" || at == "." {
				break
			}
		}
	}
	return bytes, ok
}

// mountOf returns the folder where groups of a kind are mounted, and the path of a group below it. A container may see only
// its own part of the groups.
func mountOf(mounts, kind, group string) (top, under string, ok bool) {
	for line := range strings.Lines(mounts) { // 35 31 0:32 /a /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory
		place, system, found := strings.Cut(line, " - ")
		at, about := strings.Fields(place), strings.Fields(system)
		if !found || len(at) < 5 || len(about) < 3 || about[0] != kind || kind == "cgroup" && !slices.Contains(strings.Split(about[2], ","), "memory") {
			continue
		}
		under, err := filepath.Rel(at[3], group)
		if err != nil || under == ".." || strings.HasPrefix(under, "../") {
			under = "."
		}
		return at[4], filepath.Join("/", under), true
	}
	return "", "", false
}
