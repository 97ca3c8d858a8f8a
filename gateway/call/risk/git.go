package risk

import (
	"slices"
	"strings"
)

// git reads a command of git.
func (a *analysis) git(words []word) {
	for i, w := range words[1:] {
		if w.text == "-c" && i+2 < len(words) {
			a.gitSetting(words[i+2].text, words[i+2])
		}
		if strings.HasPrefix(w.text, "--upload-pack") || strings.HasPrefix(w.text, "--receive-pack") || strings.HasPrefix(w.text, "--exec-path=") || w.text == "--open-files-in-pager" || strings.HasPrefix(w.text, "ext::") {
			a.found(High, "Runs other code", "git runs a program that an option names: "+shown(w.text)+".", w)
		}
	}
	sub, rest := subcommand(words, "-C", "-c", "--git-dir", "--work-tree", "--namespace")
	if rest == nil {
		return
	}
	said := "git " + joined(rest)
	switch sub {
	case "push":
		a.push(words, rest)
	case "reset":
		if hasOption(rest, "", "--hard", "--merge", "--keep") {
			a.found(High, "Discards changes", "Throws away changes that are not committed: "+said+".", words...)
		}
	case "clean":
		if hasOption(rest, "f", "--force") {
			a.found(Notable, "Deletes files", "Deletes files that git does not know: "+said+".", words...)
		}
	case "checkout", "restore", "switch":
		if hasOption(rest, "f", "--force", "--discard-changes") || hasWord(rest, "--", ".") || sub == "restore" && !hasOption(rest, "S", "--staged") {
			a.found(Notable, "Discards changes", "Throws away changes that are not committed: "+said+".", words...)
		}
	case "branch", "tag":
		if hasOption(rest, "dD", "--delete") {
			a.found(Notable, "Deletes branch", "Deletes a branch or tag: "+said+".", words...)
		} else if hasOption(rest, "fM", "--force") {
			a.found(Notable, "Rewrites history", "Moves a branch or tag that there is: "+said+".", words...)
		}
	case "filter-branch", "filter-repo", "update-ref", "replace", "fast-import":
		a.found(High, "Rewrites history", "Rewrites commits that there are: "+said+".", words...)
	case "reflog", "gc", "prune":
		if hasWord(rest, "expire", "delete", "--prune=now", "--prune=all") || sub == "prune" {
			a.found(High, "Rewrites history", "Deletes commits that nothing else has: "+said+".", words...)
		}
	case "rebase":
		if hasOption(rest, "x", "--exec") {
			for _, w := range rest[1:] {
				if strings.Contains(w.text, " ") {
					a.script(strings.TrimPrefix(strings.TrimPrefix(w.text, "--exec="), "-x"), w, source{})
				}
			}
		}
		a.found(Notable, "Rewrites history", "Rewrites commits of this branch: "+said+".", words...)
	case "commit":
		if hasOption(rest, "", "--amend") {
			a.found(Notable, "Rewrites history", "Rewrites the last commit.", words...)
		}
		if hasOption(rest, "n", "--no-verify") {
			a.found(Notable, "Skips checks", "Commits without the checks of the repository.", words...)
		}
	case "stash":
		if hasWord(rest, "drop", "clear") {
			a.found(Notable, "Discards changes", "Throws away changes that were put aside: "+said+".", words...)
		}
	case "rm":
		for _, w := range operands(rest) {
			a.deletesAt(w, words)
		}
	case "config":
		a.gitConfig(words, rest)
	case "remote":
		if hasWord(rest, "set-url", "add", "remove", "rm", "rename") {
			a.found(Notable, "Changes remote", "Changes where this repository is sent to: "+said+".", words...)
		}
	case "submodule", "bisect", "difftool", "mergetool":
		if hasWord(rest, "foreach", "run", "-x", "--extcmd") || sub == "difftool" && hasOption(rest, "x", "--extcmd") {
			for _, w := range rest[2:] {
				if strings.Contains(w.text, " ") && w.isLiteral() {
					a.script(w.text, w, source{})
				}
			}
		}
	}
}

// push reads git push.
func (a *analysis) push(words, rest []word) {
	said := "git " + joined(rest)
	ops := operands(rest)
	force := hasOption(rest, "f", "--force", "--force-with-lease", "--force-if-includes", "--mirror", "--prune")
	var refs []word
	if len(ops) > 1 {
		refs = ops[1:]
	}
	for _, r := range refs {
		force = force || strings.HasPrefix(r.text, "+")
	}
	if force {
		a.found(High, "Rewrites history", "Replaces commits that others have: "+said+".", words...)
	}
	if hasOption(rest, "d", "--delete") || slices.ContainsFunc(refs, func(r word) bool { return strings.HasPrefix(r.text, ":") && len(r.text) > 1 }) {
		a.found(High, "Deletes branch", "Deletes a branch or tag that others have: "+said+".", words...)
	}
	if hasOption(rest, "", "--no-verify") {
		a.found(Notable, "Skips checks", "Pushes without the checks of the repository.", words...)
	}
	to := "the remote"
	if len(ops) > 0 {
		to = shown(ops[0].text)
	}
	if len(refs) == 0 {
		a.found(Notable, "Shared branch", "Sends commits of the present branch, or of all, to "+to+".", words...)
	}
	for _, r := range refs {
		_, branch, has := strings.Cut(strings.TrimPrefix(r.text, "+"), ":")
		if !has {
			branch = strings.TrimPrefix(r.text, "+")
		}
		branch = strings.TrimPrefix(branch, "refs/heads/")
		if !r.isLiteral() || isShared(branch) {
			a.found(Notable, "Shared branch", "Sends commits to "+shown(branch)+" on "+to+".", r)
		} else {
			a.found(Notable, "Publishes", "Sends commits to "+shown(branch)+" on "+to+".", r)
		}
	}
}

// isShared reports whether many work on a branch of a name, as far as that tells.
func isShared(branch string) bool {
	switch name, _, _ := strings.Cut(strings.ToLower(branch), "/"); name {
	case "main", "master", "trunk", "develop", "development", "dev", "release", "releases", "staging", "stable", "prod", "production", "head", "tags", "next":
		return true
	}
	return false
}

// gitConfig reads git config.
func (a *analysis) gitConfig(words, rest []word) {
	ops := operands(rest)
	set := len(ops) > 1 && ops[0].text != "get" && ops[0].text != "list"
	if !set {
		return
	}
	if ops[0].text == "set" {
		ops = ops[1:]
	}
	if len(ops) > 1 {
		a.gitSetting(ops[0].text+"="+ops[1].text, words...)
	}
	if hasOption(rest, "", "--global", "--system") {
		a.found(Notable, "Outside folder", "Changes the settings of git for all repositories: git "+joined(rest)+".", words...)
	}
}

// gitSetting adds what a setting means by which git runs programs.
func (a *analysis) gitSetting(setting string, at ...word) {
	name, value, _ := strings.Cut(setting, "=")
	name = strings.ToLower(name)
	for _, one := range []string{"core.hookspath", "core.sshcommand", "core.pager", "core.editor", "core.fsmonitor", "core.gitproxy", "core.askpass", "sequence.editor", "credential.", "diff.external", "gpg.program", "pager.", "include.", "includeif.", "filter.", "uploadpack.", "protocol.ext"} {
		if strings.HasPrefix(name, one) && !(strings.HasPrefix(name, "core.pager") && value == "cat") {
			a.found(High, "Runs other code", "git runs other programs by the setting "+shown(setting)+".", at...)
			return
		}
	}
	for _, end := range []string{".textconv", ".command", ".cmd", ".driver", ".clean", ".smudge", ".path", ".insteadof", ".pushinsteadof"} {
		if strings.HasSuffix(name, end) {
			a.found(High, "Runs other code", "git runs other programs by the setting "+shown(setting)+".", at...)
			return
		}
	}
	if strings.HasPrefix(name, "alias.") && (strings.HasPrefix(value, "!") || strings.Contains(value, unknown)) {
		a.found(High, "Runs other code", "git runs other programs by the setting "+shown(setting)+".", at...)
		if script, ok := strings.CutPrefix(value, "!"); ok && len(at) > 0 && !strings.Contains(value, unknown) {
			a.script(script, at[0], source{})
		}
	}
}
