package setup

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"parley"
	"parley/cmd/parley/hook"
	"parley/cmd/parley/shell"
	"parley/cmd/parley/terminal"
)

// Options select the settings, and the command that the coding agent runs.
type Options struct {
	Project bool   // the settings of Folder, not those of the person
	Remove  bool   // take out what was entered
	Folder  string // the project's
	Home    string // the person's home folder
	As      string // the name of the agent that asks; "" for the guest of the folder that the coding agent works in
	State   string // the node's state folder
	Default string // the state folder of a hook that names none
	Managed string // the folder with an administrator's settings of Claude Code
	Running bool   // a node runs on the state folder
	Version string // of this program, which the program of an entry has to be of too
	Away    string // what happens to calls that nobody can be asked about, as in "parley hook --when-away"; "" for the default

	Env func(string) (string, bool)
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

// TakeOut writes the files from which entries are taken out, or only looks whether it could if dry is true. It goes on with
// the others where one cannot be changed. It returns those that could be, and the errors of the rest.
func TakeOut(files []File, dry bool) (done []File, failed []error) {
	for _, f := range files {
		err := f.problem
		if err == nil && !dry {
			err = f.write()
		}
		if err != nil {
			failed = append(failed, err)
			continue
		}
		done = append(done, f)
	}
	return done, failed
}

// Text shows the entries of files where whole is true, and where they were made or taken out otherwise.
func Text(files []File, whole bool) string {
	lines := make([]string, len(files))
	for i, f := range files {
		switch {
		case whole && f.Entered != "":
			lines[i] = "# " + f.Path + "\n" + strings.TrimRight(f.Entered, "\n")
		case whole && f.Changed:
			lines[i] = "would be taken out of " + f.Path
		case f.Gone:
			lines[i] = "removed " + f.Path
		case f.Changed && f.Entered == "":
			lines[i] = "taken out of " + f.Path
		case f.Entered == "":
			lines[i] = "is not in " + f.Path
		case f.Changed:
			lines[i] = "entered in " + f.Path
		default:
			lines[i] = "is in " + f.Path + " already"
		}
	}
	return strings.Join(lines, "\n")
}

// Repository returns the root of the Git repository that a folder is in, "" without one.
func Repository(folder string) string {
	for {
		if _, err := os.Stat(filepath.Join(folder, ".git")); err == nil {
			return folder
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return ""
		}
		folder = parent
	}
}

// settings makes the entries for one coding agent.
type settings struct {
	Options
	agent hook.Agent
	runs  string // the command by which the hooks and the MCP server run this program
}

// root returns the folder that a project's files stay in: the repository's, or the project's own.
func (s settings) root() string {
	if root := Repository(s.Folder); root != "" {
		return root
	}
	return s.Folder
}

// arguments returns the arguments with which the settings run this program. They name the agent that asks only where
// --as was given: a hook finds it by its folder.
func (s settings) arguments(command ...string) []string {
	if s.State != s.Default {
		command = append(command, "--state", s.State)
	}
	return command
}

// hookCommand returns the command line of the hook.
func (s settings) hookCommand() string {
	args := []string{"hook", s.agent.Name}
	if s.As != "" {
		args = append(args, "--as", s.As)
	}
	return shell.Join(append([]string{s.runs}, s.arguments(args...)...))
}

// clientName is the name of this program built with the tag "client". It lies in the folder of the whole program. It starts
// in less processor time, which a coding agent spends for each call. Its MCP server takes less memory.
const clientName = "parley-client"

// findPrograms finds the commands by which the settings run this program: its name where that finds it, and else its path.
// A client of this version takes its place.
func (s *settings) findPrograms(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	s.runs = commandOf("parley", self)
	if client := clientOf(self); s.wrongVersion(ctx, client) == "" {
		s.runs = commandOf(clientName, client)
	}
	return nil
}

// clientOf returns the path of the client of a program.
func clientOf(self string) string { return filepath.Join(filepath.Dir(self), clientName) }

// commandOf returns the name of a program where it finds the program, and the path elsewhere.
func commandOf(name, path string) string {
	if found, err := exec.LookPath(name); err == nil && SameFile(found, path) {
		return name
	}
	return path
}

// wrongVersion returns why a program of an entry is not this one, or built with it: it does not run, or is of another
// version. It returns "" for one that is.
func (s settings) wrongVersion(ctx context.Context, program string) string {
	path, err := exec.LookPath(program)
	if err != nil {
		return fmt.Sprintf("does not run: %v", terminal.Reason(err))
	}
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	said, err := exec.CommandContext(ctx, path, "version", "--json=false").Output()
	if err != nil {
		return fmt.Sprintf("does not run: %v", err)
	}
	if version := strings.TrimSpace(string(said)); version != s.Version {
		return fmt.Sprintf("is of version %s, and this program of %s", parley.Quoted(version, 80), s.Version)
	}
	return ""
}

// SameFile reports whether two paths lead to one file or folder.
func SameFile(a, b string) bool {
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
}
