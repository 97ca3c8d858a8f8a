package runtime

import (
	"bufio"
	"os"
	"os/exec"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley"
	"parley/actors/runtime/proctest"
	"parley/internal/eventually"
)

// launch returns a running program and the lines of its output.
func launch(t *testing.T, s Spec) (*process, *bufio.Scanner) {
	t.Helper()
	p, err := start(s, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		<-p.Exited
		p.close()
	})
	return p, bufio.NewScanner(p.output)
}

func readPIDs(t *testing.T, lines *bufio.Scanner, count int) []int {
	t.Helper()
	var pids []int
	for len(pids) < count && lines.Scan() {
		pid, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	if len(pids) != count {
		t.Fatalf("the output is %v", pids)
	}
	return pids
}

// launchers returns a launcher that uses cgroups if there are any, and one that does not.
func launchers() map[string]*Launcher {
	bare := NewLauncher(Defaults{})
	bare.cgroups = cgroups{}
	return map[string]*Launcher{"with cgroups": NewLauncher(Defaults{}), "without": bare}
}

// owns reports whether a process belongs to a program of the launcher.
func owns(l *Launcher, pid int) (bool, error) {
	owner, err := l.Owner(pid)
	return owner.Program, err
}

func TestLauncherFindsDescendants(t *testing.T) {
	other := exec.Command("sleep", "60")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer other.Wait()
	defer other.Process.Kill()
	for name, l := range launchers() {
		t.Run(name, func(t *testing.T) {
			if mine, err := owns(l, other.Process.Pid); mine || err != nil {
				t.Errorf("before any program: %t, %v", mine, err)
			}
			s := shell("echo $$" + proctest.LeftBehind + "wait")
			s.Launcher = l
			p, lines := launch(t, s)
			pids := readPIDs(t, lines, 5)
			for _, pid := range pids {
				if mine, err := owns(l, pid); !mine || err != nil {
					t.Errorf("process %d: %t, %v", pid, mine, err)
				}
			}
			for _, pid := range []int{1, os.Getpid(), os.Getppid(), other.Process.Pid} {
				if mine, err := owns(l, pid); mine || err != nil {
					t.Errorf("process %d, which is no program's: %t, %v", pid, mine, err)
				}
			}
			p.Kill()
			<-p.Exited
			if _, err := owns(l, pids[0]); err == nil {
				t.Error("there is no error for a process that has ended")
			}
			proctest.WantAllGone(t, textsOf(pids), 5)
		})
	}
}

func textsOf(pids []int) []string {
	var texts []string
	for _, pid := range pids {
		texts = append(texts, strconv.Itoa(pid))
	}
	return texts
}

func TestDescendantsEndWithoutCgroups(t *testing.T) {
	for name, l := range launchers() {
		t.Run(name, func(t *testing.T) {
			s := shell("echo $$" + proctest.LeftBehind + "sleep 0.2")
			s.Launcher = l
			p, lines := launch(t, s)
			pids := readPIDs(t, lines, 5)
			<-p.Exited
			if p.Err != nil {
				t.Error(p.Err)
			}
			proctest.WantAllGone(t, textsOf(pids), 5)
		})
	}
}

func TestForkingProgramIsEnded(t *testing.T) {
	for name, l := range launchers() {
		t.Run(name, func(t *testing.T) {
			s := shell(`f() { setsid sh -c 'sleep 60' & }; for i in 1 2 3 4 5 6 7 8 9 10; do f; done; echo $$; while :; do f; sleep 0.002; done`)
			s.Launcher = l
			p, lines := launch(t, s)
			pids := readPIDs(t, lines, 1)
			session := func() (found int) {
				for _, s := range everyone() {
					if text, err := os.ReadFile("/proc/" + strconv.Itoa(s.pid) + "/cmdline"); err == nil && string(text) == "sh\x00-c\x00sleep 60\x00" || s.pid == pids[0] {
						found++
					}
				}
				return found
			}
			p.Kill()
			<-p.Exited
			eventually.Holds(t, "all are gone", func() bool { return session() == 0 })
		})
	}
}

func TestProcessesEndAfterSupervisorKill(t *testing.T) {
	if out, play := os.LookupEnv("PARLEY_TEST_TAKES_OVER"); play {
		takeOver(t, out)
		return
	}
	node := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	node.Env = append(os.Environ(), "PARLEY_TEST_TAKES_OVER=1")
	if said, err := node.CombinedOutput(); err != nil || !strings.Contains(string(said), "--- PASS") {
		t.Errorf("%v: %s", err, said)
	}
}

// takeOver takes over left processes as a node does. It runs in a process of its own, whose descendants are all ended.
func takeOver(t *testing.T, _ string) {
	for name, l := range launchers() {
		t.Run(name, func(t *testing.T) {
			if err := l.TakeOver(); err != nil {
				t.Fatal(err)
			}
			s := shell("echo $$" + proctest.LeftBehind + "wait")
			s.Launcher = l
			p, lines := launch(t, s)
			pids := readPIDs(t, lines, 5)
			if err := syscall.Kill(p.tree.cmd.Process.Pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			for _, pid := range pids[1:] {
				if mine, err := owns(l, pid); !mine && err == nil {
					t.Errorf("process %d is no program's any more", pid)
				}
			}
			<-p.Exited
			proctest.WantAllGone(t, textsOf(pids), 5)
		})
	}
}

func TestProgramGetsOnlyItsEnvironment(t *testing.T) {
	for name, value := range map[string]string{
		"PARLEY_STATE": "/s", "PARLEY_TOKEN": "t", "AWS_SECRET_ACCESS_KEY": "k", "SSH_AUTH_SOCK": "/a", "XDG_RUNTIME_DIR": "/r", "MODEL_KEY": "m",
		"LC_TIME": "C", "TZ": "UTC", "PARLEY_SECRET_OF_MINE": "x", "RAIN_A": "a", "RAIN_B": "b",
	} {
		t.Setenv(name, value)
	}
	basic := []string{"HOME", "LC_TIME", "PATH", "TZ"}
	for name, c := range map[string]struct {
		defaults []string
		spec     Spec
		more     []string
	}{
		"nothing said":     {nil, Spec{}, nil},
		"the node's list":  {[]string{"MODEL_KEY"}, Spec{}, []string{"MODEL_KEY"}},
		"the program's":    {nil, Spec{Inherit: []string{"MODEL_KEY", "NONE_SUCH"}}, []string{"MODEL_KEY"}},
		"set":              {nil, Spec{Environment: []string{"A=b", "TZ=CET"}}, []string{"A"}},
		"many":             {[]string{"RAIN_*"}, Spec{}, []string{"RAIN_A", "RAIN_B"}},
		"by name":          {[]string{"PARLEY_STATE"}, Spec{}, []string{"PARLEY_STATE"}},
		"the node's never": {[]string{"PARLEY_*", "PAR*"}, Spec{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.spec
			s.Command, s.Launcher, s.Folder = []string{"env"}, NewLauncher(Defaults{Environment: c.defaults}), t.TempDir()
			_, lines := launch(t, s)
			var got []string
			for lines.Scan() {
				name, value, _ := strings.Cut(lines.Text(), "=")
				if !slices.Contains([]string{"USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TMPDIR", "TERM"}, name) && (!strings.HasPrefix(name, "LC_") || name == "LC_TIME") {
					got = append(got, name)
				}
				if name == "TZ" && len(s.Environment) > 0 && value != "CET" {
					t.Errorf("TZ is %q", value)
				}
			}
			slices.Sort(got)
			want := append(slices.Clone(basic), c.more...)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestProgramOfAnotherUserHasNoAccessToFiles(t *testing.T) {
	own := strconv.Itoa(os.Getuid()) // Check does not compare users
	all := Spec{Command: []string{"true"}, Access: []string{"read", "write", "terminal"}}
	terminal := Spec{Command: []string{"true"}, Access: []string{"terminal"}}
	if err := NewLauncher(Defaults{}).Check(all); err != nil {
		t.Errorf("as the node's own user: %v", err)
	}
	l := NewLauncher(Defaults{User: own})
	if err := l.Check(all); parley.CodeOf(err) != parley.InvalidArgument || !strings.Contains(err.Error(), "no access to files") {
		t.Errorf("as the user of all programs: %v", err)
	}
	if err := l.Check(terminal); parley.CodeOf(err) == parley.InvalidArgument {
		t.Errorf("access to the terminal: %v", err)
	}
	if got := l.Access(all); !slices.Equal(got, terminal.Access) || len(all.Access) != 3 {
		t.Errorf("a program of before has access to %v", got)
	}
}

func TestProgramIsWrapped(t *testing.T) {
	in := func(wrap, fallback []string, command ...string) string {
		t.Helper()
		s := Spec{Command: command, Wrap: wrap, Launcher: NewLauncher(Defaults{Wrap: fallback})}
		if err := s.Launcher.Check(s); err != nil {
			t.Error(err)
		}
		_, lines := launch(t, s)
		var text []string
		for lines.Scan() {
			text = append(text, lines.Text())
		}
		return strings.Join(text, "\n")
	}
	t.Setenv("TZ", "UTC")
	if got := in([]string{"env", "-i", "A=b c"}, nil, "env"); got != "A=b c" {
		t.Errorf("in env -i: %q", got)
	}
	if got := in(nil, []string{"env", "-i", "NODE=wide"}, "env"); got != "NODE=wide" {
		t.Errorf("in the node's default: %q", got)
	}
	if got := in([]string{"env", "-i", "OWN=1"}, []string{"env", "-i", "NODE=wide"}, "env"); got != "OWN=1" {
		t.Errorf("its own before the node's: %q", got)
	}
	if got := in([]string{"setpriv", "--no-new-privs"}, nil, "grep", "NoNewPrivs", "/proc/self/status"); got != "NoNewPrivs:\t1" {
		t.Errorf("without new privileges: %q", got)
	}
	missing := Spec{Command: []string{"true"}, Wrap: []string{"no-such-sandbox-here"}}
	if err := NewLauncher(Defaults{}).Check(missing); err == nil || !strings.Contains(err.Error(), "no-such-sandbox-here") {
		t.Errorf("a sandbox that is not there: %v", err)
	}
	if _, err := start(missing, nil, false); err == nil {
		t.Error("without its sandbox it is started all the same")
	}
}

func TestProgramRunsAsAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		_, err := start(Spec{Command: []string{"true"}, User: "daemon"}, nil, false)
		if err == nil || !strings.Contains(err.Error(), "may not run programs as") {
			t.Errorf("a node that is not root: %v", err)
		}
		return
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []Spec{{User: "nobody"}, {User: nobody.Uid}, {Launcher: NewLauncher(Defaults{User: "nobody"})}} {
		s.Command, s.Folder = []string{"sh", "-c", `echo $(id -u) $(id -g) $(id -G) $HOME $USER $LOGNAME; exec sleep 60`}, "/"
		p, lines := launch(t, s)
		lines.Scan()
		if want := strings.Join([]string{nobody.Uid, nobody.Gid, nobody.Gid, nobody.HomeDir, "nobody", "nobody"}, " "); lines.Text() != want {
			t.Errorf("it is %q, want %q", lines.Text(), want)
		}
		before := time.Now()
		p.Terminate()
		<-p.Exited
		if p.Exit.Signal != "SIGTERM" || time.Since(before) > StopGrace {
			t.Errorf("it ended with %v after %v", p.Exit, time.Since(before))
		}
	}
	if _, err := start(Spec{Command: []string{"true"}, User: "no-such-user"}, nil, false); err == nil || !strings.Contains(err.Error(), "no user") {
		t.Errorf("a user that is not there: %v", err)
	}
	mine := Spec{Command: []string{"cat", "/proc/self/environ"}, User: "nobody", Folder: t.TempDir()}
	if _, err := start(mine, nil, false); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("in a folder that it may not enter: %v", err)
	}
}
