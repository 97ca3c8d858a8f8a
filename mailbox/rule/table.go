package rule

import (
	"slices"

	"parley/events"
)

// command is a command for which a wider rule may be offered: it reads and displays, or is a git push or fetch. Options
// lists options that affect only the display. The table has no command that runs other programs. It has no option that
// runs a program, writes a file, reads a list of files or forces anything.
type command struct {
	words    []string
	options  []string
	operands string

	remote bool     // the next word is the name of a remote, and the rule is for that remote
	one    []string // the next word is one of these, and the rule is for that word
}

var (
	diffOptions = []string{
		"-p", "--patch", "--stat", "--shortstat", "--numstat", "--name-only", "--name-status", "--summary", "-w", "-b", "--word-diff",
		"--no-color", "--no-ext-diff", "--no-textconv", "-UN",
	}
	logOptions = slices.Concat(diffOptions, []string{
		"--oneline", "--graph", "--decorate", "--no-decorate", "--all", "--no-merges", "--merges", "--reverse", "--first-parent", "--follow", "--abbrev-commit",
		"-N", "-n N", "--max-count=N",
	})
	limitOptions = []string{"-L N", "--limit N", "--limit=N"}
)

// commands returns the table.
func commands() []command {
	return []command{
		{words: []string{"git", "status"}, options: []string{"-[sbv]", "--short", "--branch", "--porcelain", "--long", "--show-stash", "-uno", "-uall", "--ignored"}, operands: paths},
		{words: []string{"git", "diff"}, options: slices.Concat(diffOptions, []string{"--cached", "--staged", "--check"}), operands: revisions},
		{words: []string{"git", "log"}, options: logOptions, operands: revisions},
		{words: []string{"git", "show"}, options: logOptions, operands: revisions},
		{words: []string{"git", "blame"}, options: []string{"-w", "-s", "-e"}, operands: revisions},
		{words: []string{"git", "branch"}, options: []string{"-[arv]", "--all", "--remotes", "--list", "--show-current"}},
		{words: []string{"git", "remote"}, options: []string{"-v", "--verbose"}},
		{words: []string{"git", "tag"}, options: []string{"-l", "--list"}},
		{words: []string{"git", "stash", "list"}},
		{words: []string{"git", "describe"}, options: []string{"--tags", "--always", "--all", "--long"}, operands: branches},
		{words: []string{"git", "rev-parse"}, options: []string{"--abbrev-ref", "--short", "--show-toplevel", "--is-inside-work-tree", "--verify"}, operands: revisions},
		{words: []string{"git", "ls-files"}, options: []string{"-[mocd]", "--modified", "--others", "--cached", "--deleted", "--exclude-standard"}, operands: paths},
		{words: []string{"git", "push"}, operands: branches, remote: true},
		{words: []string{"git", "fetch"}, operands: branches, remote: true},

		{words: []string{"pwd"}},
		{words: []string{"ls"}, options: []string{"-[1aAdFhlrRStp]", "--all", "--almost-all", "--recursive", "--no-color"}, operands: paths},
		{words: []string{"cat"}, options: []string{"-[bns]"}, operands: paths},
		{words: []string{"head"}, options: []string{"-N", "-n N", "-nN", "-c N"}, operands: paths},
		{words: []string{"tail"}, options: []string{"-N", "-n N", "-nN", "-c N"}, operands: paths},
		{words: []string{"wc"}, options: []string{"-[clmwL]"}, operands: paths},
		{words: []string{"grep"}, options: []string{"-[cEFhHilnoqsvwx]", "-N", "-A N", "-B N", "-C N", "-AN", "-BN", "-CN", "-m N"}, operands: texts},
		{words: []string{"rg"}, options: []string{"-[cFilnNosSvw]", "-A N", "-B N", "-C N", "-AN", "-BN", "-CN", "-m N"}, operands: texts},

		{words: []string{"go", "version"}},
		{words: []string{"go", "env"}, options: []string{"-json"}, operands: names},
		{words: []string{"npm", "ls"}, options: []string{"-[al]", "--all", "--long", "--json", "--depth=N"}, operands: names},
		{words: []string{"docker", "ps"}, options: []string{"-[alqs]", "--all", "--quiet", "--latest", "--size", "--no-trunc"}},
		{words: []string{"docker", "images"}, options: []string{"-[aq]", "--all", "--quiet", "--digests", "--no-trunc"}, operands: names},
		{words: []string{"kubectl", "get"}, operands: names, one: []string{
			"pod", "pods", "deployment", "deployments", "service", "services", "node", "nodes", "namespace", "namespaces", "job", "jobs", "cronjob", "cronjobs",
			"replicaset", "replicasets", "statefulset", "statefulsets", "daemonset", "daemonsets", "ingress", "ingresses", "event", "events",
		}},
		{words: []string{"gh", "pr", "list"}, options: limitOptions},
		{words: []string{"gh", "pr", "status"}},
		{words: []string{"gh", "pr", "view"}, options: []string{"--comments"}, operands: names},
		{words: []string{"gh", "pr", "diff"}, options: []string{"--name-only", "--patch"}, operands: names},
		{words: []string{"gh", "pr", "checks"}, operands: names},
		{words: []string{"gh", "issue", "list"}, options: limitOptions},
		{words: []string{"gh", "issue", "view"}, options: []string{"--comments"}, operands: names},
		{words: []string{"gh", "run", "list"}, options: limitOptions},
	}
}

// patternFor returns the pattern to offer for a simple command, if there is one. It covers that command.
func patternFor(words []string, folder string) (events.CommandPattern, bool) {
	for _, c := range commands() {
		p, ok := c.pattern(words)
		if ok && coversCommand(&p, words, folder) {
			return p, true
		}
	}
	return events.CommandPattern{}, false
}

// pattern returns the pattern of a rule for words, if they are this command.
func (c command) pattern(words []string) (events.CommandPattern, bool) {
	begin := c.words
	if len(words) > 1 && words[0] == "git" && words[1] == "--no-pager" {
		begin = slices.Insert(slices.Clone(begin), 1, "--no-pager")
	}
	n := len(begin)
	if len(words) < n || !slices.Equal(words[:n], begin) {
		return events.CommandPattern{}, false
	}
	if c.remote || c.one != nil {
		if len(words) == n || c.remote && !isName(words[n]) || c.one != nil && !slices.Contains(c.one, words[n]) {
			return events.CommandPattern{}, false
		}
		n++
	}
	return events.CommandPattern{Words: slices.Clone(words[:n]), Options: c.options, Operands: c.operands}, true
}
