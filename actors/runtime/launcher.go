package runtime

import (
	"cmp"
	"errors"
	"maps"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"

	"parley"
	"parley/capabilities"
)

// Defaults apply to all programs of a node.
type Defaults struct {
	Environment []string // names of further variables of the node's that programs get; NAME* is all that begin so
	User        string   // the system's user that a program runs as which names none; "" is the node's own
	Wrap        []string // words that stand before the command of a program which has none of its own
}

// Launcher starts the processes of a node's programs, and knows them while they run. It may be used by many goroutines.
type Launcher struct {
	defaults Defaults
	cgroups  cgroups

	mu      sync.Mutex
	running map[int]*started // by the process that the node itself started
	began   bool             // a program was started, now or before
	strays  bool             // this process takes over what programs leave behind
	noted   map[Process]capabilities.ID
	notes   uint64 // how many were noted, sessions and programs too

	sessions []Session // the latest is last
	programs []string  // files of coding agents that were noted, the latest is last
}

// started is a running program.
type started struct {
	leader int    // of its process group
	cgroup string // folder of its cgroup; "" for none
}

// NewLauncher returns a launcher.
func NewLauncher(d Defaults) *Launcher {
	return &Launcher{defaults: d, cgroups: findCgroups(), running: map[int]*started{}, noted: map[Process]capabilities.ID{}}
}

// Check refuses a program that cannot be started as configured. Its user may not exist or not be permitted, and its
// wrapping command may not exist. Or it is given access to files that its user may not have.
func (l *Launcher) Check(s Spec) error {
	if _, err := l.identity(s); err != nil {
		return err
	}
	if user := l.user(s); len(l.Access(s)) < len(s.Access) {
		return parley.Refuse(parley.InvalidArgument, "a program that runs as another user gets no access to files through the node").
			WithHint("all programs of this node run as %s, and read and write files themselves", user)
	}
	if wrap := l.wrap(s); len(wrap) > 0 {
		if _, err := exec.LookPath(wrap[0]); err != nil {
			return parley.Refuse(parley.InvalidArgument, "the command that programs are wrapped in cannot be run: %v", err)
		}
	}
	return nil
}

// wrap returns the words before a program's command.
func (l *Launcher) wrap(s Spec) []string {
	if len(s.Wrap) > 0 {
		return s.Wrap
	}
	return l.defaults.Wrap
}

// user returns the name of the user that a program runs as; "" for the node's own.
func (l *Launcher) user(s Spec) string { return cmp.Or(s.User, l.defaults.User) }

// identity returns the user of a program, nil for the node's own.
func (l *Launcher) identity(s Spec) (*identity, error) {
	name := l.user(s)
	if name == "" {
		return nil, nil
	}
	return lookUpUser(name)
}

// Access returns what a program may do through the node. A program that runs as another user has no access to files:
// the node would read and write them as its own user.
func (l *Launcher) Access(s Spec) []string {
	if l.user(s) == "" {
		return s.Access
	}
	return slices.DeleteFunc(slices.Clone(s.Access), func(a string) bool { return a == "read" || a == "write" })
}

// command returns the command of a program, with its whole environment.
func (l *Launcher) command(s Spec, more []string) (*exec.Cmd, *identity, error) {
	if len(s.Command) == 0 {
		return nil, nil, parley.Refuse(parley.InvalidArgument, "there is no command to run")
	}
	who, err := l.identity(s)
	if err != nil {
		return nil, nil, err
	}
	words := slices.Concat(l.wrap(s), s.Command)
	cmd := exec.Command(words[0], words[1:]...)
	if cmd.Err != nil {
		return nil, nil, notStarted(cmd.Err)
	}
	cmd.Dir = s.Folder
	cmd.Env = environment(slices.Concat(ordinary(), l.defaults.Environment, s.Inherit), slices.Concat(who.variables(), s.Environment, more)...)
	cmd.Env = cmd.Environ()
	return cmd, who, nil
}

// notStarted returns the error of a program that the system does not start.
func notStarted(err error) error {
	isFull := func(why syscall.Errno) bool { return errors.Is(err, why) }
	if slices.ContainsFunc([]syscall.Errno{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE}, isFull) {
		return parley.Refuse(parley.QuotaExceeded, "the program cannot be started: %v", err).
			WithHint("the system gives the node's user no more processes, files or memory now: end some, or raise its limits (ulimit -u and -n, TasksMax= of a service)")
	}
	return parley.Refuse(parley.InvalidArgument, "the program cannot be started: %v", err)
}

// enter notes a running program under its first process.
func (l *Launcher) enter(pid int, r *started) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.began = true
	l.running[pid] = r
}

// leave forgets a program after its first process was waited for.
func (l *Launcher) leave(pid int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.running, pid)
}

// Process is a process of this machine. Its start tells it from a later one with the same ID.
type Process struct {
	PID   int    `json:"pid"`
	Start string `json:"start"` // the system's boot, and the ticks from there
}

// IsRunning reports whether the process has not ended.
func (p Process) IsRunning() bool {
	now, err := ProcessOf(p.PID)
	return err == nil && now == p
}

// Owner tells for whom a process calls. The zero Owner is nobody that the launcher knows.
type Owner struct {
	Program bool            // the process belongs to a program of the node
	Agent   capabilities.ID // it is a noted process or below one; the agent that the outermost of them acts for
	Noted   []Process       // those processes, the innermost first
	Session string          // the noted session that its environment names, if it is below none of them
	Unheard bool            // it is below none of them, and below a program that coding agents run which were noted
}

// Coder returns the innermost of the noted processes; the zero Process if there is none.
func (o Owner) Coder() Process {
	if len(o.Noted) == 0 {
		return Process{}
	}
	return o.Noted[0]
}

// Owner returns the owner of a process. What descends from a program belongs to it, and what is in its process group, its
// session or its cgroup. What descends from a noted process is below it. So is what is in the group or the session of
// such a process that still runs. The same holds for what names a noted process, or a noted session, in its environment.
// What is below a program of coding agents, and none of these, is unheard: no hook of that agent has called yet, or none is entered.
// Owner returns an error if that cannot be known, for example if the process is gone. It does so too for one that names
// another session, and has no coding agent above.
func (l *Launcher) Owner(pid int) (Owner, error) {
	if !l.Looks() || pid == os.Getpid() {
		return Owner{}, nil
	}
	return l.ownerOf(pid)
}

// Own returns the owner of this process, as Owner does for another.
func (l *Launcher) Own() (Owner, error) {
	if !l.Looks() {
		return Owner{}, nil
	}
	return l.ownerOf(os.Getpid())
}

// Note has a process, and all below it, act for an agent. A process that was noted stays with its first agent.
func (l *Launcher) Note(p Process, agent capabilities.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, before := l.noted[p]; !before {
		l.noted[p] = agent
		l.notes++
	}
}

// Noted returns the noted processes that still run. It forgets the others.
func (l *Launcher) Noted() map[Process]capabilities.ID {
	l.mu.Lock()
	defer l.mu.Unlock()
	living := map[Process]capabilities.ID{}
	for p, agent := range l.noted {
		if p.IsRunning() {
			living[p] = agent
		}
	}
	l.noted = living
	return maps.Clone(living)
}

// Session is a session of a coding agent. What the agent starts has its ID in the environment, also after the agent has
// ended.
type Session struct {
	ID    string          `json:"session"`
	Agent capabilities.ID `json:"agent"`
}

// maxSessions bounds the sessions that are known. What names an earlier one has no owner that can be known.
const maxSessions = 4096

// NoteSession has what names a session in its environment act for an agent. A session that was noted stays with its first
// agent.
func (l *Launcher) NoteSession(s Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.agentOf(s.ID).IsZero() {
		l.sessions = append(l.sessions[max(0, len(l.sessions)-maxSessions+1):], s)
		l.notes++
	}
}

// Sessions returns the noted sessions, the latest last.
func (l *Launcher) Sessions() []Session {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.sessions)
}

// maxPrograms bounds the programs of coding agents that are known.
const maxPrograms = 64

// NoteProgram notes the file of a coding agent's program, as ProgramOf returns it: each process that runs it is a coding agent.
func (l *Launcher) NoteProgram(path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Contains(l.programs, path) {
		l.programs = append(l.programs[max(0, len(l.programs)-maxPrograms+1):], path)
		l.notes++
	}
}

// Programs returns the files of coding agents' programs, the latest last.
func (l *Launcher) Programs() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.programs)
}

// agentOf returns the agent that a session was noted for, or the zero ID. The caller holds mu.
func (l *Launcher) agentOf(session string) capabilities.ID {
	for _, s := range l.sessions {
		if s.ID == session {
			return s.Agent
		}
	}
	return capabilities.ID{}
}

// Notes returns a number that grows with each process, session and program that is noted.
func (l *Launcher) Notes() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.notes
}

// Looks reports whether there was a program, or a process, session or coding agent's program is noted: else no process has an owner.
func (l *Launcher) Looks() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.began || len(l.noted) > 0 || len(l.sessions) > 0 || len(l.programs) > 0
}
