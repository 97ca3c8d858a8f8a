package runtime

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// standing is the place of a process among others, from /proc.
type standing struct {
	pid, parent, group, session int
	dead                        bool // nobody has reaped it
}

// standingOf reads the ID of a process, its name, which may contain anything, its state, parent, group and session.
func standingOf(pid int) (standing, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return standing{}, err
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 4 {
		return standing{}, fmt.Errorf("/proc says of process %d: %q", pid, stat)
	}
	s := standing{pid: pid, dead: fields[0][0] == 'Z' || fields[0][0] == 'X'}
	for i, to := range []*int{&s.parent, &s.group, &s.session} {
		if *to, err = strconv.Atoi(string(fields[i+1])); err != nil {
			return standing{}, err
		}
	}
	return s, nil
}

// everyone returns all visible processes.
func everyone() []standing {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var all []standing
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if s, err := standingOf(pid); err == nil { // else it is gone
				all = append(all, s)
			}
		}
	}
	return all
}

// below returns the descendants of some processes.
func below(all []standing, roots ...int) []standing {
	under := map[int]bool{}
	for _, r := range roots {
		under[r] = true
	}
	var found []standing
	for grown := true; grown; {
		grown = false
		for _, s := range all {
			if under[s.parent] && !under[s.pid] {
				under[s.pid], grown = true, true
				found = append(found, s)
			}
		}
	}
	return found
}

// killBelow kills all descendants of a process. It reports whether any is left that it may kill.
func killBelow(pid int) (left bool) {
	for _, s := range below(everyone(), pid) {
		if err := syscall.Kill(s.pid, syscall.SIGKILL); err == nil && !s.dead || s.dead && s.parent == pid {
			left = true
		}
	}
	return left
}

// TakeOver makes this process adopt what programs leave behind when their supervisor is killed, and end it. The process
// must start nothing but programs.
func (l *Launcher) TakeOver() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("take over what programs leave behind: %w", err)
	}
	l.strays = true
	return nil
}

// endStrays ends the processes below this one that belong to no program any more.
func (l *Launcher) endStrays() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.strays {
		return
	}
	for end := deadline(goneWait); !end(); {
		all, found := everyone(), false
		for _, s := range all {
			if _, known := l.running[s.pid]; s.parent != os.Getpid() || known {
				continue
			}
			found = true
			for _, b := range append(below(all, s.pid), s) {
				_ = syscall.Kill(b.pid, syscall.SIGKILL) // or it is gone
			}
			_, _ = syscall.Wait4(s.pid, nil, syscall.WNOHANG, nil) // the next round sees what became of it
		}
		if !found {
			return
		}
	}
}

// owns climbs from a process to the node.
func (l *Launcher) owns(pid int) (bool, error) {
	const patience = 8 // rounds, for processes that end meanwhile
	for range patience {
		mine, settled, err := l.climb(pid)
		if err != nil || settled {
			return mine, err
		}
	}
	return false, fmt.Errorf("the processes above process %d change too fast", pid)
}

// climb is one attempt. It is not settled if an ancestor has ended meanwhile.
func (l *Launcher) climb(pid int) (mine, settled bool, err error) {
	if l.holds(pid) {
		return true, true, nil
	}
	at, err := standingOf(pid)
	if err != nil {
		return false, false, err
	}
	for at.pid != 1 && at.parent != 0 {
		if l.leads(at) {
			return true, true, nil
		}
		next, err := standingOf(at.parent)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			again, err := standingOf(at.pid)
			if err != nil || again.parent != at.parent {
				return false, false, nil
			}
			return false, true, nil // it is hidden from this process, and so no child of it
		}
		if err != nil {
			return false, false, err
		}
		at = next
	}
	return false, true, nil
}

// leads reports whether a process is a program's first one, is in its group or session, or is a stray.
func (l *Launcher) leads(s standing) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, supervises := l.running[s.pid]; supervises || l.strays && s.parent == os.Getpid() {
		return true
	}
	for _, r := range l.running {
		if r.leader != 0 && (r.leader == s.group || r.leader == s.session) {
			return true
		}
	}
	return false
}

// holds reports whether a process is in the cgroup of a program.
func (l *Launcher) holds(pid int) bool {
	path := l.cgroups.of(pid)
	if path == "" {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.running {
		if r.cgroup != "" && (path == r.cgroup || strings.HasPrefix(path, r.cgroup+"/")) {
			return true
		}
	}
	return false
}

// mayBecome reports whether the node may run programs as another user.
func mayBecome() bool {
	const wanted = 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID | 1<<unix.CAP_KILL
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return os.Geteuid() == 0
	}
	for line := range strings.Lines(string(text)) {
		if caps, ok := strings.CutPrefix(line, "CapEff:"); ok {
			n, err := strconv.ParseUint(strings.TrimSpace(caps), 16, 64)
			return err == nil && n&wanted == wanted
		}
	}
	return false
}
