package actors

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/persistence"
)

// archiveNodeEnv has the folder and the step of a process that is killed while it archives.
const archiveNodeEnv = "PARLEY_TEST_ARCHIVE_NODE"

// runArchiveNode archives the journal of a folder, and is killed at a step, or before the call ends.
func runArchiveNode(spec string) {
	folder, last, _ := strings.Cut(spec, "\n")
	kill := func() {
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Kill()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		select {}
	}
	archiving := false
	n, err := Open(context.Background(), Options{Folder: folder, Failpoint: func(step string) error {
		if archiving && step == last {
			kill()
		}
		return nil
	}})
	if err == nil {
		archiving = true
		_, err = n.Archive().MoveBefore(context.Background(), n.now().Add(time.Hour))
	}
	fmt.Fprintln(os.Stderr, "archived:", err)
	os.Exit(1)
}

// TestKilledWhileItArchives kills a process with SIGKILL at steps of archiving, at night at each. The node that is opened
// afterwards has all of its log, and archives. Package persistence kills its archiver at four steps.
func TestKilledWhileItArchives(t *testing.T) {
	t.Parallel()
	whole := t.TempDir()
	n := openNode(t, whole)
	before := settleForms(t, n, guest(t, n, "old"), 3)
	postLong(t, n, "old")
	bytes := n.State().Journal.Bytes
	closeNode(t, n)
	steps := []string{"after " + persistence.StepManifest, "after " + persistence.StepRecorded, "after " + persistence.StepCut}
	if os.Getenv("PARLEY_NIGHTLY") != "" {
		steps = append(steps, "before "+persistence.StepSegment, "after "+persistence.StepSegment, "after "+persistence.StepCheckpoint,
			"before "+persistence.StepRecorded, "before "+persistence.StepCut, "before "+persistence.StepSweep)
	}
	for _, step := range steps {
		t.Run(strings.ReplaceAll(step, " ", "-"), func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "node")
			if err := os.CopyFS(folder, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			for name, mode := range map[string]os.FileMode{".": 0o700, "node.key": 0o600} {
				if err := os.Chmod(filepath.Join(folder, name), mode); err != nil {
					t.Fatal(err)
				}
			}
			c := exec.Command(os.Args[0])
			c.Env = append(os.Environ(), archiveNodeEnv+"="+folder+"\n"+step)
			if out, err := c.CombinedOutput(); c.ProcessState == nil || c.ProcessState.ExitCode() != -1 {
				t.Fatalf("it was not killed: %v\n%s", err, out)
			}
			n := openNode(t, folder)
			before.check(t, n)
			archiveAll(t, n)
			before.check(t, n)
			if a, s := n.Archive().List(), n.State().Journal; a.Last == 0 || s.Bytes > bytes/2 {
				t.Errorf("%d commits are archived, and %d of %d bytes are left", a.Last, s.Bytes, bytes)
			}
			closeNode(t, n)
		})
	}
}
