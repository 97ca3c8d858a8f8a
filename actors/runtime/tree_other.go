//go:build !unix

package runtime

import (
	"os"
	"os/exec"

	"parley"
)

// Without process groups a program is ended alone, and at once.

type tree struct{ cmd *exec.Cmd }

func (l *Launcher) launch(cmd *exec.Cmd, _ *identity) (*tree, error) {
	if err := cmd.Start(); err != nil {
		return nil, notStarted(err)
	}
	return &tree{cmd}, nil
}

func (t *tree) wait() ExitStatus {
	if err := t.cmd.Wait(); t.cmd.ProcessState == nil {
		return ExitStatus{Lost: err}
	}
	return ExitStatus{Code: t.cmd.ProcessState.ExitCode()}
}

func (t *tree) terminate() { t.kill() }

func (t *tree) kill() { _ = t.cmd.Process.Kill() }

func readNow(*os.File, []byte) int { return 0 }

// identity is the user of a program, which is always the node's on this system.
type identity struct{}

func lookUpUser(string) (*identity, error) {
	return nil, parley.Refuse(parley.InvalidArgument, "programs cannot run as another user on this system")
}

func (*identity) variables() []string { return nil }

// ownerOf finds no owner: processes of programs are not known on this system.
func (l *Launcher) ownerOf(int) (Owner, error) { return Owner{}, nil }
