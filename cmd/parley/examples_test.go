package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestExampleProgramsRun runs the programs in examples, which use the Go client alone, against a node.
func TestExampleProgramsRun(t *testing.T) {
	t.Parallel()
	programs := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", programs, "parley/examples/...").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	testscript.Run(t, testscript.Params{
		Files: []string{filepath.Join("testdata", "examples.txtar")},
		Setup: func(env *testscript.Env) error {
			env.Setenv("PARLEY_STATE", "state")
			env.Setenv("PATH", programs+string(os.PathListSeparator)+env.Getenv("PATH"))
			work := env.WorkDir
			env.Defer(func() { killNodes(t, work) })
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"until": until},
	})
}
