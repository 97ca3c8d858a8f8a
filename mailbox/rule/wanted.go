package rule

import (
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/bmatcuk/doublestar/v4"

	"parley"
	"parley/events"
)

// maxWanted bounds a command line or a glob from which a coverage is made, in bytes.
const maxWanted = 4 << 10

// Line returns the coverage of a command line in a folder: each of its commands exactly as it is or, with wide, in the way that approvals of
// such a command offer. It refuses with INVALID_ARGUMENT a line that is not understood and, with wide, one for which none is offered.
func Line(folder, line string, wide bool) (events.Coverage, error) {
	c := events.Coverage{Kind: events.CoversCommands, Folder: folder}
	commands, ok := parseLine(line)
	if !ok || folder == "" {
		return c, parley.Refuse(parley.InvalidArgument, "the command line %s is not understood", parley.Quoted(line, 200)).
			WithHint("a line of plain words in one folder is, joined by |, &&, || or ;")
	}
	for _, words := range commands {
		p := events.CommandPattern{Words: words}
		if wide {
			if p, ok = patternFor(words, folder); !ok {
				return c, parley.Refuse(parley.InvalidArgument, "no rule is offered for commands like %s", parley.Quoted(strings.Join(words, " "), 200)).
					WithHint("name the commands themselves")
			}
		}
		if !slices.ContainsFunc(c.Commands, func(q events.CommandPattern) bool { return coversSame(&p, &q) }) {
			c.Commands = append(c.Commands, p)
		}
	}
	return c, nil
}

// Files returns the coverage of the files of a folder that match a glob. It refuses with INVALID_ARGUMENT one that leads out of the folder,
// or to hidden files, which none covers.
func Files(folder, glob string) (events.Coverage, error) {
	c := events.Coverage{Kind: events.CoversFiles, Folder: folder, Glob: glob}
	switch {
	case folder == "" || folder == "/":
		return c, parley.Refuse(parley.InvalidArgument, "files are named within a folder")
	case glob == "" || len(glob) > maxWanted || !isShowable(glob) || !doublestar.ValidatePattern(glob):
		return c, parley.Refuse(parley.InvalidArgument, "%s is no glob", parley.Quoted(glob, 200)).WithHint("as in src/** or **/*.go")
	case path.IsAbs(glob) || path.Clean(glob) != glob || isHidden(glob):
		return c, parley.Refuse(parley.InvalidArgument, "%s is not within the folder, or is hidden", parley.Quoted(glob, 200)).WithHint("name files relative to the folder, without . and ..")
	}
	return c, nil
}

// Tool returns the coverage of all calls of a tool in a folder. It refuses with INVALID_ARGUMENT a tool that runs command lines, or reads
// or writes files: what it may do is named.
func Tool(folder, tool string) (events.Coverage, error) {
	c := events.Coverage{Kind: events.CoversTool, Folder: folder}
	if _, ofFile := fileTools()[tool]; ofFile || tool == EditTool || tool == ReadTool {
		return c, parley.Refuse(parley.InvalidArgument, "%s reads or writes files", tool).WithHint("name the files")
	}
	if runsLines(tool) {
		return c, parley.Refuse(parley.InvalidArgument, "%s runs command lines", tool).WithHint("name the commands")
	}
	if slices.ContainsFunc(wordsOf(tool), func(w string) bool { return slices.Contains(doAnything(), w) }) || len(wordsOf(tool)) == 0 {
		return c, parley.Refuse(parley.InvalidArgument, "%s may run commands or use files, by its name", parley.Quoted(tool, 80)).WithHint("name the very call, or answer each")
	}
	return c, nil
}

// doAnything returns the words in names of tools, of agents and of MCP servers, that do whatever their input says. What such a tool would do
// cannot be read from an input whose form is not known, so all its calls are never covered together.
func doAnything() []string {
	return []string{
		"sh", "bash", "zsh", "ksh", "fish", "shell", "powershell", "pwsh", "cmd", "terminal", "tty", "exec", "execute", "command", "commands", "process", "spawn",
		"script", "eval", "repl", "python", "monitor", "write", "edit", "patch", "file", "files", "fs", "filesystem", "grep", "glob", "ls", "dir", "directory", "folder", "notebook",
	}
}

// wordsOf returns the words of a name in lower case: they begin behind what is no letter, and with a capital letter behind a small one.
func wordsOf(name string) (words []string) {
	word := strings.Builder{}
	end := func() {
		if word.Len() > 0 {
			words = append(words, strings.ToLower(word.String()))
		}
		word.Reset()
	}
	small := false
	for _, r := range name {
		if !unicode.IsLetter(r) || small && unicode.IsUpper(r) {
			end()
		}
		if small = unicode.IsLower(r); unicode.IsLetter(r) {
			word.WriteRune(r)
		}
	}
	end()
	return words
}

// Readers returns the tools that only read files.
func Readers() []string { return []string{"Read", ReadTool} }
