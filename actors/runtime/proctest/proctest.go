//go:build unix

package proctest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	goruntime "runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"parley/internal/eventually"
)

// LeftBehind is a shell script that leaves processes behind and prints their IDs: one in its process group, and three
// in sessions of their own. It goes on once all have printed theirs.
const LeftBehind = `
sleep 61 & echo $!
setsid sleep 62 & echo $!
(setsid sh -c 'echo $$; (setsid sleep 63 & echo $!); exec sleep 64' &) | head -n 2
`

// WantAllGone fails the test if there are not count process IDs, or if one of the processes is still there.
func WantAllGone(t testing.TB, pids []string, count int) {
	t.Helper()
	if len(pids) != count {
		t.Fatalf("it has left %q", pids)
	}
	for _, p := range pids {
		pid, err := strconv.Atoi(p)
		if err != nil {
			t.Fatal(err)
		}
		if syscall.Kill(pid, 0) != syscall.ESRCH {
			t.Errorf("process %d is there", pid)
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// IsWaiting reports whether the one running program waits for its output to be read.
func IsWaiting(t testing.TB) bool {
	for _, pid := range Programs(t) {
		if where, err := os.ReadFile(fmt.Sprintf("/proc/%d/wchan", pid)); err == nil && strings.Contains(string(where), "pipe") {
			return true
		}
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && strings.Contains(string(stat), ") S ") {
			return true
		}
	}
	return false
}

// Programs returns the IDs of the programs that this process runs, without their supervisors.
func Programs(t testing.TB) []int {
	t.Helper()
	var pids []int
	for _, pid := range ChildrenOf(t, os.Getpid()) {
		if said, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && string(said) == "parley-supervisor\x00" {
			pids = append(pids, ChildrenOf(t, pid)...)
		} else {
			pids = append(pids, pid)
		}
	}
	return pids
}

// ChildrenOf returns the IDs of the children of a process.
func ChildrenOf(t testing.TB, pid int) []int {
	t.Helper()
	out, err := exec.Command("ps", "-o", "pid=,args=", "--ppid", strconv.Itoa(pid)).Output()
	if err != nil {
		return nil // it has none
	}
	var pids []int
	for l := range strings.Lines(string(out)) {
		fields := strings.Fields(l)
		child, err := strconv.Atoi(fields[0])
		if err != nil {
			t.Fatal(err)
		}
		if fields[1] != "ps" && fields[1] != "[ps]" {
			pids = append(pids, child)
		}
	}
	return pids
}

// WantGone blocks until the process group of a leader is gone, but for what still has to be reaped.
func WantGone(t testing.TB, leader string) {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(leader))
	if err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the group is gone", func() bool { return syscall.Kill(-pid, 0) == syscall.ESRCH })
}

// ErrEnough is the reason for which tests end runs.
var ErrEnough = errors.New("enough")

// Patience is the longest time for which tests wait.
const Patience = 60 * time.Second

// stacks returns the stacks of all goroutines.
func stacks() []byte {
	room := make([]byte, 1<<20)
	return room[:goruntime.Stack(room, true)]
}

// Next receives from a channel. It fails the test if nothing comes.
func Next[T any](t testing.TB, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(Patience):
		t.Fatalf("nothing came, while this went on:\n%s", stacks())
		panic("unreachable")
	}
}

// Part is the environment variable that has a test binary play a program.
const Part = "PARLEY_TEST_PART"

// Main runs tests, or plays the program that the environment names.
func Main(m *testing.M, parts map[string]func()) {
	if play, ok := parts[os.Getenv(Part)]; ok {
		play()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}
