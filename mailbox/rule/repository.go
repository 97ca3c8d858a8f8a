package rule

import (
	"path"
	"slices"
	"strings"

	"golang.org/x/text/cases"
)

// Git takes any folder for a repository that has a file HEAD and folders objects and refs: it need not be called .git. The
// config of such a folder names programs that git status runs. So a rule for files and a rule for git, each harmless, could
// run anything together. No rule that allows to write files covers what a repository consists of.

// repositoryFiles are files of a repository that make it one, or say which programs git runs in it.
var repositoryFiles = []string{"head", "config", "config.worktree", "commondir", "gitdir", "packed-refs"}

// repositoryFolders are folders of a repository whose files have no extension: objects, branches and hooks.
var repositoryFolders = []string{"objects", "refs", "hooks"}

// isOfRepository reports whether a relative path may be of a file of a repository of git. File systems may take letters for others: case is folded, and letters that some ignore are not looked behind.
func isOfRepository(rel string) bool {
	if strings.ContainsAny(rel, "\u115f\u1160\u3164\uffa0") {
		return true
	}
	parts := strings.Split(cases.Fold().String(rel), "/")
	last := len(parts) - 1
	if slices.Contains(parts, ".git") || slices.Contains(repositoryFiles, parts[last]) {
		return true
	}
	isFolder := func(part string) bool { return slices.Contains(repositoryFolders, part) }
	return path.Ext(parts[last]) == "" && slices.ContainsFunc(parts[:last], isFolder)
}

// writes reports whether a tool for files changes them.
func writes(tool string) bool { return tool != "Read" && tool != ReadTool }
