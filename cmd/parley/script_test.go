package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"parley/internal/eventually"
)

// TestMain runs more tests at once than there are processors, because most of them wait. -parallel overrides the number.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	testscript.Main(m, map[string]func(){"parley": main, clusterServer: serveCluster, acpAgent: playACPAgent})
}

// TestScripts runs the scripts in testdata/script: commands and their output.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("PARLEY_STATE", "state")
			env.Setenv("PARLEY_LISTEN", "off")
			env.Setenv("GORACE", "atexit_sleep_ms=0") // saves a second for each command under -race
			readme, err := filepath.Abs(filepath.Join("..", "..", "README.md"))
			if err != nil {
				return err
			}
			env.Setenv("README", readme)
			env.Setenv("DOCS", filepath.Join(filepath.Dir(readme), "docs"))
			journal, err := filepath.Abs(filepath.Join("testdata", "journal.tgz"))
			if err != nil {
				return err
			}
			env.Setenv("JOURNAL", journal)
			work := env.WorkDir
			env.Defer(func() { killNodes(t, work) })
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"until": until, "exits": exits, "called": called},
		Condition: func(name string) (bool, error) {
			if name == "root" {
				return os.Geteuid() == 0, nil
			}
			return false, fmt.Errorf("unknown condition %s", name)
		},
	})
}

// until repeats a command until its output matches: until REGEXP COMMAND…
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until REGEXP COMMAND…")
	}
	want, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	for end := time.Now().Add(eventually.Patience); ; time.Sleep(20 * time.Millisecond) {
		err := ts.Exec(args[1], args[2:]...)
		if want.MatchString(ts.ReadFile("stdout")) {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("no match for %s within its time (%v)", args[0], err)
		}
	}
}

// exits runs a command and checks its exit code: exits CODE COMMAND…
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND…")
	}
	got := 0
	err := ts.Exec(args[1], args[2:]...)
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		got = e.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

// killNodes kills the nodes that a script has left running: those that hold a lock below its folder.
func killNodes(t *testing.T, work string) {
	err := filepath.WalkDir(work, func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Base(path) != lockFile {
			return nil //nolint:nilerr // a file removed meanwhile holds no lock
		}
		env := &environment{options: options{state: stateFolder(filepath.Dir(path))}}
		if pid, locked, err := env.options.state.holder(); err == nil && locked && pid > 0 {
			return syscall.Kill(pid, syscall.SIGKILL)
		}
		return nil
	})
	if err != nil && !errors.Is(err, syscall.ESRCH) && !strings.Contains(err.Error(), "no such") {
		t.Log(err)
	}
}
