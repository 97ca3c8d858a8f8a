package actors

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/actors/view"
	"parley/events"
	"parley/internal/eventually"
)

// newShellAgent makes an agent that runs a shell script for each message.
func newShellAgent(tb testing.TB, n *Node, name, script string) *Agent {
	tb.Helper()
	return newProgramAgent(tb, n, NewAgent{Name: name, Program: &events.ProgramSet{Command: []string{"sh", "-c", script}}})
}

// newPythonAgent makes an agent that runs a Python script with functions to send and to receive a line.
func newPythonAgent(tb testing.TB, n *Node, name, script string) *Agent {
	tb.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		tb.Skip("there is no python3")
	}
	return newProgramAgent(tb, n, NewAgent{Name: name, Program: &events.ProgramSet{Command: []string{"python3", "-c", pythonHead + script}}})
}

const pythonHead = `
import json, os, sys
def send(**line): print(json.dumps(line), flush=True)
def receive():
    line = sys.stdin.readline()
    if not line: sys.exit(9)
    return json.loads(line)
prompt = receive()["text"]
`

func newProgramAgent(tb testing.TB, n *Node, m NewAgent) *Agent {
	tb.Helper()
	m.Kind, m.Wait = events.Guest, true
	m.Program.Runtime = "exec"
	a, err := n.Host().Make(tb.Context(), m)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

func prompt(tb testing.TB, a *Agent, text string) view.Prompted {
	tb.Helper()
	p, err := a.node.Host().Prompt(tb.Context(), a, text, "")
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// waitForFinish blocks until an agent has nothing more to do, and checks its status.
func waitForFinish(tb testing.TB, a *Agent, status string) view.AgentStatus {
	tb.Helper()
	f, err := a.WaitForFinish(tb.Context(), 30*time.Second)
	if err != nil || f.Status != status {
		tb.Fatalf("finished: %+v, %v; want %s", f, err, status)
	}
	return f.Final
}

func currentStatus(tb testing.TB, a *Agent) view.AgentStatus {
	tb.Helper()
	s, err := a.Status(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// eventsOf returns an agent's events of type E.
func eventsOf[E events.Event](tb testing.TB, a *Agent) (all []E) {
	tb.Helper()
	logged, err := a.Log(tb.Context(), 0, 10_000)
	if err != nil {
		tb.Fatal(err)
	}
	for _, e := range logged.Entries {
		if is, ok := e.Payload.(E); ok {
			all = append(all, is)
		}
	}
	return all
}

// outputOf returns the text of an agent's output.
func outputOf(tb testing.TB, a *Agent) string {
	tb.Helper()
	pieces, err := a.Output().Since(tb.Context(), 0, 10_000)
	if err != nil {
		tb.Fatal(err)
	}
	var b strings.Builder
	for _, p := range pieces {
		b.WriteString(p.Text)
	}
	return b.String()
}

// barrier is a file whose creation scripts wait for.
type barrier struct {
	tb   testing.TB
	path string
}

func newBarrier(tb testing.TB) barrier { return barrier{tb, filepath.Join(tb.TempDir(), "barrier")} }

func (g barrier) wait() string { return "until [ -e '" + g.path + "' ]; do sleep 0.01; done" }

func (g barrier) open() {
	if err := os.WriteFile(g.path, nil, 0o600); err != nil {
		g.tb.Error(err)
	}
}

// pids is a file in which scripts record the IDs of their processes.
type pids string

func newPIDs(tb testing.TB) pids { return pids(filepath.Join(tb.TempDir(), "pids")) }

func (p pids) note() string { return "echo $$ >> '" + string(p) + "'; " }

func (p pids) child(command string) string {
	return command + " & echo $! >> '" + string(p) + "'; "
}

// all blocks until at least count processes are recorded.
func (p pids) all(tb testing.TB, count int) (numbers []int) {
	tb.Helper()
	eventually.Holds(tb, fmt.Sprintf("%d processes are recorded", count), func() bool {
		text, _ := os.ReadFile(string(p))
		numbers = numbers[:0]
		for _, w := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(w); err == nil {
				numbers = append(numbers, n)
			}
		}
		return len(numbers) >= count
	})
	return numbers
}

func isAlive(pid int) bool { return syscall.Kill(pid, 0) == nil && !isZombie(pid) }

// isZombie reports whether a process has ended and has not been waited for. It reports false on systems without /proc.
func isZombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "Z")
}

// allGone checks that all recorded processes have ended.
func (p pids) allGone(tb testing.TB, count int) {
	tb.Helper()
	for _, pid := range p.all(tb, count) {
		if isAlive(pid) {
			tb.Errorf("process %d is still running", pid)
		}
	}
}

// descendantsOf returns the processes below a process. It returns none on systems without /proc.
func descendantsOf(parent int) (all []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is valid
	for _, path := range stats {
		if pid, of := readStat(path); of == parent {
			all = append(append(all, pid), descendantsOf(pid)...)
		}
	}
	slices.Sort(all)
	return all
}

// readStat returns the process and its parent from a stat file. The parent of a process that has ended is 0.
func readStat(path string) (pid, parent int) {
	stat, err := os.ReadFile(path)
	if err != nil {
		return 0, 0
	}
	head, rest, _ := strings.Cut(string(stat), " (")
	words := strings.Fields(rest[strings.LastIndex(rest, ")")+1:]) // the state and the parent follow the name
	if len(words) < 2 {
		return 0, 0
	}
	pid, err = strconv.Atoi(head)
	if err == nil {
		parent, err = strconv.Atoi(words[1])
	}
	if err != nil {
		return 0, 0
	}
	return pid, parent
}

func commandLine(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.ReplaceAll(string(text), "\x00", " ")
}
