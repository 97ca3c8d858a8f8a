package runtime

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// shells are the programs that run the line of a hook. They are never a coding agent.
var shells = []string{"sh", "bash", "dash", "zsh", "fish", "ash", "ksh", "mksh", "csh", "tcsh", "busybox"}

// interpreters run a program that their first argument names, behind options.
var interpreters = []string{"node", "bun", "deno"}

// Coder returns the process of the coding agent that has started a process, such as its hook. It also returns the folder
// that the agent works in, "" if that cannot be read. The agent is the process named, if that is one above; 0 names none.
// Else it is the first process above that is no shell, if its program has the name of the agent. Coder returns false where
// there is none, as for a hook that a person runs.
func Coder(pid, named int, program string) (coder Process, folder string, found bool) {
	line, settled, err := lineage(pid)
	if err != nil || !settled {
		return Process{}, "", false
	}
	at := -1
	for i, s := range line[1:] {
		above := i + 1
		if s.pid == 1 || s.pid == os.Getpid() {
			break
		}
		if named != 0 {
			if s.pid == named {
				at = above
			}
			continue
		}
		if slices.Contains(shells, nameOf(s.pid)) {
			continue
		}
		if isProgram(s.pid, program) {
			at = above
		}
		break
	}
	if at < 0 && named != 0 { // a variable from before
		return Coder(pid, 0, program)
	}
	if at < 0 {
		return Process{}, "", false
	}
	folder, err = os.Readlink(fmt.Sprintf("/proc/%d/cwd", line[at].pid))
	if err != nil {
		folder = ""
	}
	return line[at].process(), folder, true
}

// fileOf returns the path of the file that a process runs; "" if that cannot be read.
func fileOf(pid int) string {
	path, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(path, " (deleted)") // it was replaced since
}

// nameOf returns the name of the file that a process runs.
func nameOf(pid int) string {
	path := fileOf(pid)
	if path == "" {
		return ""
	}
	return filepath.Base(path)
}

// ProgramOf returns the file that a coding agent runs, if that is the agent's alone: neither a shell nor what runs scripts, and in a folder
// or under a name of the agent's. It returns "" for any other. What registers may be anything, such as a link to a person's terminal under
// the agent's name.
func ProgramOf(coder Process, program string) string {
	path := fileOf(coder.PID)
	name := filepath.Base(path)
	own, _, _ := strings.Cut(program, "-")
	if own == "" || slices.Contains(shells, name) || slices.Contains(interpreters, name) || !coder.IsRunning() ||
		!slices.ContainsFunc(strings.Split(path, string(filepath.Separator)), func(part string) bool { return strings.HasPrefix(part, own) }) {
		return ""
	}
	return path
}

// IsBelow reports whether a process is, or is below, a coding agent that is known: a noted process or session, or a noted program.
func (l *Launcher) IsBelow(pid int) bool {
	owner, err := l.Owner(pid)
	return err == nil && (!owner.Agent.IsZero() || owner.Unheard || slices.Contains(l.Programs(), fileOf(pid)))
}

// wordsOf returns the command line of a process.
func wordsOf(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return nil
	}
	return strings.Split(string(bytes.TrimSuffix(text, []byte{0})), "\x00")
}

// isProgram reports whether a process runs the program of a coding agent: "claude" of claude-code, "codex" of codex.
func isProgram(pid int, program string) bool {
	name, _, _ := strings.Cut(program, "-")
	words := wordsOf(pid)
	if strings.HasPrefix(nameOf(pid), name) || len(words) > 0 && strings.HasPrefix(filepath.Base(words[0]), name) {
		return true
	}
	for len(words) > 1 && strings.HasPrefix(words[1], "-") { // an option of the interpreter, which Gemini CLI gives its own
		words = words[1:]
	}
	return len(words) > 1 && slices.Contains(interpreters, nameOf(pid)) && slices.ContainsFunc(
		strings.Split(words[1], string(filepath.Separator)), func(part string) bool { return strings.HasPrefix(part, name) })
}
