package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
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
	if len(os.Args) > 1 && os.Args[1] == "serve" { // a "parley start" in the process of the tests: it would run them all
		main()
		return
	}
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	testscript.Main(m, map[string]func(){"parley": main, "onterminal": onTerminal, clusterServer: serveCluster, noisyGuest: makeNoise, acpAgent: playACPAgent, elicitor: serveElicitor, forger: forge, poster: post})
}

// TestScripts runs the scripts in testdata/script: commands and their output.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Files: scriptsHere(t),
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
			work := env.WorkDir
			env.Defer(func() { killNodes(t, work) })
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"until": until, "exits": exits, "called": called, "here": here, "helped": helped},
		Condition: func(name string) (bool, error) {
			if name == "root" {
				return os.Geteuid() == 0, nil
			}
			return false, fmt.Errorf("unknown condition %s", name)
		},
	})
}

// calls are the commands that only call a node. In scripts they run in the test's own process: to start one under the
// race detector takes longer than most of them.
var calls = []string{
	"adopt", "allow", "answer", "await", "cancel", "copy", "decline", "deny", "dismiss", "forward", "form", "grants", "inbox", "inspect",
	"interrupt", "invite", "list", "locate", "log", "logs", "ls", "mkguest", "mkhost", "names", "nodes", "peers", "permit", "policy",
	"prompt", "quota", "reject", "remove", "rename", "reply", "request", "resolve", "respond-form", "revoke", "rules", "run", "send",
	"show", "snooze", "status", "stop", "store", "token", "wait",
}

// callLine is a line of a script that runs a command and waits for it.
var callLine = regexp.MustCompile(`^((?:! )?exec |exits \d+ |until (?:'[^']*'|\S+) )parley ([a-z-]+)(?: .*)?$`)

// scriptsHere returns the scripts in testdata/script, with the commands that only call a node run by here. Those that
// have a standard input, a terminal or an editor, and those in the background, stay processes.
func scriptsHere(t *testing.T) []string {
	t.Helper()
	scripts, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for i, path := range scripts {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfter(string(text), "\n")
		given := false // there is input for the next command
		for j, line := range lines {
			if strings.HasPrefix(line, "-- ") {
				break
			}
			m := callLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
			if m != nil && !given && slices.Contains(calls, m[2]) && !strings.Contains(line, " --edit") && !strings.HasSuffix(line, "&\n") {
				lines[j] = strings.TrimSuffix(m[1], "exec ") + "here" + strings.TrimPrefix(line, m[1]+"parley")
			}
			given = strings.HasPrefix(line, "stdin ")
		}
		scripts[i] = filepath.Join(folder, filepath.Base(path))
		if err := os.WriteFile(scripts[i], []byte(strings.Join(lines, "")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return scripts
}

// here runs a command in this process, and fails as exec does: here COMMAND…
func here(ts *testscript.TestScript, neg bool, args []string) {
	out, errs, exit := runScripted(ts, "here", args)
	_, err := io.WriteString(ts.Stdout(), out)
	ts.Check(err)
	_, err = io.WriteString(ts.Stderr(), errs)
	ts.Check(err)
	if neg != (exit != 0) {
		ts.Fatalf("exit code %d\n%s%s", exit, out, errs)
	}
}

// runScripted runs a command of a script, and returns its output and its exit code. A command here is run in this process,
// unless an argument names a file in the script's folder.
func runScripted(ts *testscript.TestScript, command string, args []string) (out, errs string, exit int) {
	if command == "here" && !namesFile(ts, args) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		var stdout, stderr bytes.Buffer
		p := &program{environment: environment{stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr}, args: slices.Clone(args)}
		p.lookup = func(name string) (string, bool) {
			value := ts.Getenv(name)
			if name == "PARLEY_STATE" && value != "" {
				value = ts.MkAbs(value)
			}
			return value, value != ""
		}
		for i, a := range p.args {
			if (a == "--state" || a == "--folder") && i+1 < len(p.args) {
				p.args[i+1] = ts.MkAbs(p.args[i+1])
			}
		}
		if p.args[0] == "run" && !slices.Contains(p.args, "--folder") {
			p.args = slices.Insert(p.args, 1, "--folder", ts.MkAbs("."))
		}
		exit = p.run(ctx)
		return stdout.String(), stderr.String(), exit
	}
	if command == "here" {
		command = "parley"
	}
	err := ts.Exec(command, args...)
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		exit = e.ExitCode()
	} else if err != nil {
		exit = -1
		ts.Logf("%v", err)
	}
	return ts.ReadFile("stdout"), ts.ReadFile("stderr"), exit
}

// namesFile reports whether an argument is the name of a file in the script's folder.
func namesFile(ts *testscript.TestScript, args []string) bool {
	return slices.ContainsFunc(args, func(a string) bool {
		_, value, ok := strings.Cut(a, "=")
		if !ok || !strings.HasPrefix(a, "--") {
			value = a
		}
		info, err := os.Stat(ts.MkAbs(value))
		return err == nil && info.Mode().IsRegular()
	})
}

// until repeats a command until its output matches: until REGEXP COMMAND…
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until REGEXP COMMAND…")
	}
	want, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	for end := time.Now().Add(eventually.Patience); ; {
		began := time.Now()
		out, errs, exit := runScripted(ts, args[1], args[2:])
		cost := time.Since(began)
		if want.MatchString(out) {
			_, err := io.WriteString(ts.Stdout(), out)
			ts.Check(err)
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("no match for %s within its time (exit code %d)\n%s%s", args[0], exit, out, errs)
		}
		time.Sleep(max(20*time.Millisecond, eventually.Rest(cost)))
	}
}

// helped checks that each command that a file names, one a line, has help with examples: helped FILE
func helped(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: helped FILE")
	}
	for command := range strings.Lines(ts.ReadFile(args[0])) {
		out, errs, exit := runScripted(ts, "here", append(strings.Fields(command), "--help"))
		if exit != 0 || !strings.Contains("\n"+out, "\nExamples:") {
			ts.Fatalf("%s has no example: exit code %d\n%s%s", command, exit, out, errs)
		}
	}
}

// exits runs a command and checks its exit code: exits CODE COMMAND…
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND…")
	}
	out, errs, exit := runScripted(ts, args[1], args[2:])
	_, err := io.WriteString(ts.Stdout(), out)
	ts.Check(err)
	_, err = io.WriteString(ts.Stderr(), errs)
	ts.Check(err)
	if strconv.Itoa(exit) != args[0] {
		ts.Fatalf("exit code %d, want %s", exit, args[0])
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
