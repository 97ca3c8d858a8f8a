package setup

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"parley/cmd/parley/hook"
	"parley/cmd/parley/shell"
)

// Options select the settings, and the command that the coding agent runs.
type Options struct {
	Project bool   // the settings of Folder, not those of the person
	Folder  string // the project's
	Home    string // the person's home folder
	As      string // the name of the agent that asks; "" for the guest of the folder that the coding agent works in
	State   string // the node's state folder, if it is not the default

	Env   func(string) (string, bool)
	Notes io.Writer // receives further advice for the person
}

// Write writes the files that are changed, or none if something keeps an entry out of one of them.
func Write(files []File) error {
	for _, f := range files {
		if f.problem != nil {
			return f.problem
		}
	}
	for _, f := range files {
		if err := f.write(); err != nil {
			return err
		}
	}
	return nil
}

// Text shows the entries of files, or only where they were made.
func Text(files []File, whole bool) string {
	lines := make([]string, len(files))
	for i, f := range files {
		switch {
		case whole:
			lines[i] = "# " + f.Path + "\n" + strings.TrimRight(f.Entered, "\n")
		case f.Changed:
			lines[i] = "entered in " + f.Path
		default:
			lines[i] = "is in " + f.Path + " already"
		}
	}
	return strings.Join(lines, "\n")
}

// settings makes the entries for one coding agent.
type settings struct {
	Options
	agent hook.Agent
}

// arguments returns the arguments with which the settings run this program. They name the agent that asks only where
// --as was given: a hook finds it by its folder.
func (s settings) arguments(command ...string) []string {
	if s.State != "" {
		command = append(command, "--state", s.State)
	}
	return command
}

// hookCommand returns the command line of the hook.
func (s settings) hookCommand() (string, error) {
	self, err := program()
	args := []string{"hook", s.agent.Name}
	if s.As != "" {
		args = append(args, "--as", s.As)
	}
	return shell.Join(append([]string{self}, s.arguments(args...)...)), err
}

// program returns the command by which the settings run this program: its name, where that finds it.
func program() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	if found, err := exec.LookPath("parley"); err == nil && sameFile(found, self) {
		return "parley", nil
	}
	return self, nil
}

func sameFile(a, b string) bool {
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
}
