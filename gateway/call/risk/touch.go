package risk

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"parley/mailbox/lease"
)

// Touch is a file or folder that a command line names, and that it changes or may change.
type Touch struct {
	Path  string // from the root, or from the home folder with "~/"; * and ? stand for what a shell puts there
	Below bool   // all that is below it too
	Maybe bool   // it is not known whether the command only reads it
}

// Bounds of what a line touches.
const (
	maxTouches = 64
	maxTouched = 1024 // bytes of a path
)

// Touches returns what a command line changes, or may change, of the files that its words name. All is false for a line that may change
// more of the folder than it names: it cannot be read, or a program of which that is known chooses the files. What the programs do that
// it runs nobody knows: a script, a build or a test may write anything. File is the parsed line, as Parse returned it.
func Touches(line string, file *syntax.File, folder, start string) (touched []Touch, all bool) {
	a := &analysis{place: place{folder, place{folder, folder}.whole(start)}, touching: true}
	a.file(line, file)
	return a.touched, !a.beyond
}

// touch adds what a word names. Surely is false where the command may only read it.
func (a *analysis) touch(w word, surely, below bool) { a.touchPath(w.text, surely, below) }

func (a *analysis) touchPath(name string, surely, below bool) {
	if !a.touching || name == "" || name == "-" || isQuietDevice(name) || isAddress(name) {
		return
	}
	whole := a.whole(name)
	cut := false
	if at := strings.IndexAny(whole, unknown+"[{"); at >= 0 { // what stands from here on in a path is known only as it runs
		whole, cut = whole[:at], true
		whole = whole[:max(strings.LastIndexByte(whole, '/'), 0)]
	}
	switch {
	case whole == "" || whole == "~" || whole[0] != '/' && !strings.HasPrefix(whole, "~/"):
		a.beyond = a.beyond || surely
		return
	case len(whole) > maxTouched || len(a.touched) >= maxTouches:
		a.beyond = true
		return
	}
	t := Touch{Path: whole, Below: below || cut, Maybe: !surely || cut}
	if !slices.Contains(a.touched, t) {
		a.touched = append(a.touched, t)
	}
}

func (a *analysis) touchAll(words []word, surely, below bool) {
	for _, w := range words {
		a.touch(w, surely, below)
	}
}

// touches reads what a command does to the files that its words name.
func (a *analysis) touches(name string, words []word) {
	if !a.touching {
		return
	}
	ops := operands(words)
	switch name {
	case "cat", "less", "more", "head", "tail", "ls", "stat", "wc", "diff", "cmp", "file", "grep", "egrep", "fgrep", "rg", "ag", "test", "[", "uniq", "cut", "du", "df", "tree", "cd", "pushd", "popd", "source", ".",
		"sha256sum", "md5sum", "readlink", "realpath", "basename", "dirname", "jq", "tr", "base64", "xxd", "strings", "nl", "column", "seq", "pwd", "date", "echo", "printf", "eval", "trap", "true", "false", "sleep", "type", "which",
		"apply_patch", "applypatch", // a.patches reads the patch
		"man", "kill", "export", "set", "unset", "read", "exit", "return", "shift", "wait":
	case "rm", "rmdir", "shred", "unlink", "srm", "wipe", "trash":
		a.touchAll(ops, true, true)
	case "truncate":
		a.touchAll(ops, true, false)
	case "touch", "mkdir", "tee":
		a.touchAll(ops, true, false)
	case "chmod", "chown", "chgrp", "chattr", "setfacl":
		a.touchAll(ops[min(1, len(ops)):], true, hasOption(words, "R", "--recursive"))
	case "cp", "mv", "ln", "install", "rsync", "scp":
		a.copies(name, words, ops)
	case "sed", "gsed":
		if hasOption(words, "i", "--in-place") {
			a.touchAll(ops, true, false)
		}
	case "sort", "curl", "wget":
		a.outputs(words)
	case "dd":
		for _, w := range words[1:] {
			if to, ok := strings.CutPrefix(w.text, "of="); ok {
				a.touchPath(to, true, false)
			}
		}
	case "git":
		a.gitTouches(words)
	case "find", "fd":
		if hasWord(words, "-delete", "-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch", "-fprint", "-fls", "-fprintf") {
			a.touchAll(searched(words), false, true)
		}
	case "xargs", "parallel":
		a.beyond = a.beyond || slices.ContainsFunc(words[1:], func(w word) bool {
			return deletesFiles(base(w)) || slices.Contains([]string{"sed", "mv", "cp", "tee", "touch", "perl", "gofmt", "prettier"}, base(w))
		})
	default:
		for _, w := range words[1:] {
			text := w.text
			if strings.HasPrefix(text, "-") {
				_, text, _ = strings.Cut(text, "=")
			}
			a.touchPath(text, false, true)
		}
	}
}

// patches reads a patch that a coding agent takes from a command line, where it has a tool for that: as the last word, or as the text
// that follows the line.
func (a *analysis) patches(c *syntax.CallExpr, from []*syntax.Redirect) {
	if !a.touching || len(c.Args) == 0 {
		return
	}
	if name := base(a.word(c.Args[0])); name != "apply_patch" && name != "applypatch" {
		return
	}
	texts := []*syntax.Word{c.Args[len(c.Args)-1]}
	for _, r := range from {
		texts = append(texts, r.Hdoc, r.Word)
	}
	for _, text := range texts {
		if text == nil {
			continue
		}
		for _, file := range lease.Patched(a.word(text).text) {
			a.touchPath(file, true, false)
		}
	}
}

// searched returns the folders that find searches.
func searched(words []word) (at []word) {
	for _, w := range words[1:] {
		if strings.HasPrefix(w.text, "-") || w.text == "(" || w.text == "!" {
			if len(at) > 0 || w.text != "-L" && w.text != "-H" && w.text != "-P" {
				break
			}
			continue
		}
		at = append(at, w)
	}
	if len(at) == 0 || base(words[0]) == "fd" {
		return []word{{text: "."}}
	}
	return at
}

// copies reads a command that copies or moves files: into a folder, under their own names, or to a file.
func (a *analysis) copies(name string, words, ops []word) {
	var to string
	for i, w := range words[1:] {
		if into, ok := strings.CutPrefix(w.text, "--target-directory="); ok {
			to = into
		} else if w.text == "-t" && i+2 < len(words) {
			to = words[i+2].text
			ops = slices.DeleteFunc(slices.Clone(ops), func(o word) bool { return o == words[i+2] })
		}
	}
	if to == "" {
		if len(ops) < 2 {
			return
		}
		to, ops = ops[len(ops)-1].text, ops[:len(ops)-1]
	}
	if name == "mv" {
		a.touchAll(ops, true, true)
	}
	a.touchPath(to, true, false)
	mirrors := name == "rsync" || hasOption(words, "rRaT", "--recursive", "--archive", "--no-target-directory")
	if mirrors { // what a folder has comes below
		a.touchPath(to, false, true)
	}
	for _, w := range ops {
		if own := strings.TrimRight(w.text, "/"); own != "" {
			a.touchPath(strings.TrimSuffix(to, "/")+"/"+own[strings.LastIndexByte(own, '/')+1:], true, mirrors || name == "mv")
		}
	}
}

// outputs reads the options that name a file for the output.
func (a *analysis) outputs(words []word) {
	for i, w := range words[1:] {
		if to, ok := strings.CutPrefix(w.text, "--output="); ok {
			a.touchPath(to, true, false)
		} else if to, ok := strings.CutPrefix(w.text, "--output-document="); ok {
			a.touchPath(to, true, false)
		} else if isOut := w.text == "-o" || w.text == "--output" || w.text == "-O" && base(words[0]) == "wget"; isOut && i+2 < len(words) {
			a.touch(words[i+2], true, false)
		}
	}
}

// gitTouches reads what a command of git does to files.
func (a *analysis) gitTouches(words []word) {
	now := a.now
	defer func() { a.now = now }()
	for i, w := range words[1:] {
		if w.text == "-C" && i+2 < len(words) {
			a.now = a.whole(words[i+2].text)
		}
	}
	sub, rest := subcommand(words, "-C", "-c", "--git-dir", "--work-tree", "--namespace")
	if rest == nil {
		return
	}
	ops := operands(rest)
	switch sub {
	case "rm", "mv":
		a.touchAll(ops, true, true)
	case "restore":
		if !hasOption(rest, "S", "--staged") || hasOption(rest, "W", "--worktree") {
			a.touchAll(ops, true, true)
		}
	case "checkout":
		if at := slices.IndexFunc(rest, func(w word) bool { return w.text == "--" }); at >= 0 {
			a.touchAll(rest[at+1:], true, true)
			return
		}
		a.touchAll(ops, false, true)
		a.touchPath(".", false, true)
	case "switch", "reset", "clean", "merge", "rebase", "pull", "apply", "am", "cherry-pick", "revert", "read-tree", "checkout-index", "sparse-checkout", "submodule", "bisect":
		if sub != "reset" || hasOption(rest, "", "--hard", "--merge", "--keep") {
			a.touchPath(".", false, true)
		}
	case "stash":
		if !hasWord(rest, "list", "show", "drop", "clear", "create") {
			a.touchPath(".", false, true)
		}
	}
}
