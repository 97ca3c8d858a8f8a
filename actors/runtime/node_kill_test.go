//go:build unix

package runtime

import (
	"bufio"
	"io"
	"os"
	"os/exec"

	"parley/actors/runtime/proctest"
	"parley/internal/eventually"

	goruntime "runtime"
	"strconv"
	"syscall"
	"testing"
)

func TestKilledNodeLeavesNoProcesses(t *testing.T) {
	if goruntime.GOOS != "linux" {
		t.Skip("nothing ends a program with its node there")
	}
	node := exec.Command(os.Args[0])
	node.Env = append(os.Environ(), proctest.Part+"=node")
	out, err := node.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	for lines := bufio.NewScanner(out); len(pids) < 5 && lines.Scan(); {
		pid, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	if err := node.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	node.Wait()
	for _, pid := range pids {
		eventually.Holds(t, "the program and what it left is gone", func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH })
	}
}

// playNode runs a node with a program until it is killed.
func playNode() {
	s := shell("exec >&2\necho $$\n" + proctest.LeftBehind + "wait")
	s.Keep = true
	p, err := start(s, nil, false)
	if err != nil {
		panic(err)
	}
	io.Copy(os.Stdout, p.errors)
}

// shell returns the specification of a shell script.
func shell(text string) Spec { return Spec{Command: []string{"sh", "-c", text}} }
