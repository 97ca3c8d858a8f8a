package runtime

import (
	"cmp"
	"os"
	"os/exec"
	"slices"
	"sync"

	"parley"
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
}

// started is a running program.
type started struct {
	leader int    // of its process group
	cgroup string // folder of its cgroup; "" for none
}

// NewLauncher returns a launcher.
func NewLauncher(d Defaults) *Launcher {
	return &Launcher{defaults: d, cgroups: findCgroups(), running: map[int]*started{}}
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

func notStarted(err error) error {
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

// Owns reports whether a process belongs to a program of the node: it descends from one, or is in the process group,
// the session or the cgroup of one. It returns an error if that cannot be known, for example if the process is gone.
func (l *Launcher) Owns(pid int) (bool, error) {
	if !l.HasBegun() || pid == os.Getpid() {
		return false, nil
	}
	return l.owns(pid)
}

// HasBegun reports whether any program was started.
func (l *Launcher) HasBegun() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.began
}
