package runtime

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"parley/capabilities"
)

// standing is the place of a process among others, from /proc.
type standing struct {
	pid, parent, group, session int
	start                       uint64 // ticks since the boot
	dead                        bool   // nobody has reaped it
}

// startField is where the start of a process is, counted from its state.
const startField = 19

// standingOf reads what /proc says of a process: its ID, its name, which may contain anything, its state, its parent,
// group and session, and its start.
func standingOf(pid int) (standing, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return standing{}, err
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= startField {
		return standing{}, fmt.Errorf("/proc says of process %d: %q", pid, stat)
	}
	s := standing{pid: pid, dead: fields[0][0] == 'Z' || fields[0][0] == 'X'}
	for i, to := range []*int{&s.parent, &s.group, &s.session} {
		if *to, err = strconv.Atoi(string(fields[i+1])); err != nil {
			return standing{}, err
		}
	}
	s.start, err = strconv.ParseUint(string(fields[startField]), 10, 64)
	return s, err
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

// ownerOf climbs from a process to the node.
func (l *Launcher) ownerOf(pid int) (Owner, error) {
	const patience = 8 // rounds, for processes that end meanwhile
	for range patience {
		owner, settled, err := l.climb(pid)
		if err != nil || settled {
			return owner, err
		}
	}
	return Owner{}, fmt.Errorf("the processes above process %d change too fast", pid)
}

// climb is one attempt. It is not settled if an ancestor has ended meanwhile.
func (l *Launcher) climb(pid int) (owner Owner, settled bool, err error) {
	if l.holds(pid) {
		return Owner{Program: true}, true, nil
	}
	line, settled, err := lineage(pid)
	if err != nil || !settled {
		return Owner{}, false, err
	}
	for _, s := range line {
		if s.parent != 0 && l.leads(s) {
			return Owner{Program: true}, true, nil
		}
	}
	owner.above(l, line)
	unheard := l.runsCoder(line[1:])
	for _, leader := range []int{line[0].group, line[0].session} { // an orphan descends from neither
		if !owner.Agent.IsZero() {
			break
		}
		above, settled, err := lineage(leader)
		if err != nil || !settled { // the leader has ended
			continue
		}
		owner.above(l, above)
		unheard = unheard || l.runsCoder(above)
	}
	if owner.Agent.IsZero() {
		err = owner.named(l, line)
	}
	owner.Unheard = unheard && owner.Agent.IsZero()
	return owner, true, err
}

// runsCoder reports whether one of some processes runs the program of a coding agent that was noted.
func (l *Launcher) runsCoder(line []standing) bool {
	programs := l.Programs()
	return len(programs) > 0 && slices.ContainsFunc(line, func(s standing) bool { return slices.Contains(programs, fileOf(s.pid)) })
}

// above adds the noted processes of a lineage.
func (o *Owner) above(l *Launcher, line []standing) {
	for _, s := range line {
		if agent := l.notedFor(s); !agent.IsZero() {
			o.Agent, o.Noted = agent, append(o.Noted, s.process()) // the agent of the outermost
		}
	}
}

// lineage returns a process and its ancestors as far as they can be seen. It is not settled if an ancestor has ended
// meanwhile.
func lineage(pid int) (line []standing, settled bool, err error) {
	at, err := standingOf(pid)
	if err != nil {
		return nil, false, err
	}
	for line = append(line, at); at.pid != 1 && at.parent != 0; line = append(line, at) {
		next, err := standingOf(at.parent)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			again, err := standingOf(at.pid)
			if err != nil || again.parent != at.parent {
				return line, false, nil
			}
			return line, true, nil // it is hidden from this process, and so no child of it
		}
		if err != nil {
			return nil, false, err
		}
		at = next
	}
	return line, true, nil
}

// notedFor returns the agent that a process was noted for, or the zero ID.
func (l *Launcher) notedFor(s standing) capabilities.ID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.noted[s.process()]
}

// errOtherSession is for a process that has lost its coding agent, and names a session that was not noted.
var errOtherSession = errors.New("a coding agent has started it, and it cannot be told which")

// coders are the programs that are coding agents.
var coders = []string{"claude", "codex", "gemini", "qwen"}

// named adds the noted process or session that an environment names: a process's, or of one above it.
// Coding agents so name themselves to what they start. That finds processes that have changed their parent and their
// session. What names another session is what a coding agent above it has started, which is not noted. Without one it is
// an error: the session may be of an agent that is.
func (o *Owner) named(l *Launcher, line []standing) error {
	other, above := false, false
	for i, s := range line {
		above = above || i > 0 && slices.ContainsFunc(coders, func(name string) bool { return isProgram(s.pid, name) })
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", s.pid))
		if err != nil { // another user's
			continue
		}
		for variable := range bytes.SplitSeq(text, []byte{0}) {
			name, value, _ := strings.Cut(string(variable), "=")
			switch name {
			case "CLAUDE_PID":
				pid, err := strconv.Atoi(value)
				if err != nil {
					continue
				}
				above = above || slices.ContainsFunc(line, func(s standing) bool { return s.pid == pid })
				if named, err := standingOf(pid); err == nil {
					o.above(l, []standing{named})
				}
			case "CLAUDE_CODE_SESSION_ID", "CODEX_SESSION_ID", "CODEX_THREAD_ID":
				o.Agent = l.notedSession(value)
				if o.Session = value; o.Agent.IsZero() {
					o.Session, other = "", true
				}
			}
			if !o.Agent.IsZero() {
				return nil
			}
		}
	}
	if other && !above {
		return errOtherSession
	}
	return nil
}

// notedSession returns the agent that a session was noted for, or the zero ID.
func (l *Launcher) notedSession(id string) capabilities.ID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.agentOf(id)
}

// boot identifies the start of this system: after another, processes have the same IDs and ticks again.
var boot = sync.OnceValue(func() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
})

func (s standing) process() Process { return Process{s.pid, fmt.Sprintf("%s/%d", boot(), s.start)} }

// ProcessOf returns a process that runs.
func ProcessOf(pid int) (Process, error) {
	s, err := standingOf(pid)
	if err == nil && s.dead {
		err = syscall.ESRCH
	}
	return s.process(), err
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
