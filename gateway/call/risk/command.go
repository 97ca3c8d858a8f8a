package risk

import (
	"slices"
	"strings"
)

// command reads the words of a command and, for programs that run others, of the commands within it. It reports whether the
// command downloads, and whether it prints files of the folder.
func (a *analysis) command(words []word, in source) (net, lists bool) {
	name := base(words[0])
	if name == "" {
		if words[0].net {
			a.found(High, "Runs a download", "Runs what it downloads.", words[0])
		} else {
			a.unread("Which program it runs is known only as it runs.", words[0])
		}
		return words[0].net, false
	}
	if strings.Contains(words[0].text, "/") && !isProgramFolder(a.whole(words[0].text)) {
		a.names(a.place, words[0].text, reads, a.from(words[0]), a.to(words[0]))
	}
	if slices.ContainsFunc(a.downloads, func(d string) bool { return a.whole(d) == a.whole(words[0].text) }) {
		a.found(High, "Runs a download", "Runs "+shown(words[0].text)+", which it downloads.", words[0])
	}
	net = a.one(words, in)
	if isText(name, words) {
		return net, listsFiles(name, words)
	}
	// A word may be a command that this one runs: by sudo, env, xargs, find -exec, ssh, docker exec and many more.
	fed, seen := name == "xargs" || name == "parallel", 0
	for i := 1; i < len(words); i++ {
		inner := base(words[i])
		if strings.ContainsAny(words[i].text, " \t\n;|&") && words[i].isLiteral() && mayBeScript(words[i].text) && !isShell(name) {
			a.script(words[i].text, words[i], source{})
			continue
		}
		if inner == "" || !isKnown(inner) || strings.HasPrefix(words[i].text, "-") {
			continue
		}
		if seen++; seen > maxWithin {
			a.unread("Too many of its words may be commands.", words[i])
			break
		}
		from := source{is: in.is && fed, net: in.net, lists: in.lists}
		if fed {
			a.fed(inner, words[i:], in)
		}
		if a.one(words[i:], from) {
			net = true
		}
		if inner == "xargs" || inner == "parallel" {
			fed = true
		}
	}
	return net, listsFiles(name, words)
}

// fed adds what it means that a program has its operands from a pipe.
func (a *analysis) fed(name string, words []word, in source) {
	if deletesFiles(name) && !in.lists {
		a.found(High, "Deletes files", "Deletes what a pipe names.", words...)
	}
}

// listsFiles reports whether a command prints names of files of the folder alone.
func listsFiles(name string, words []word) bool {
	switch name {
	case "find", "fd", "ls", "rg", "grep":
		return !slices.ContainsFunc(words, func(w word) bool {
			return !w.isLiteral() || strings.HasPrefix(w.text, "/") || strings.HasPrefix(w.text, "~") || strings.Contains(w.text, "..")
		})
	case "git":
		return len(words) > 1 && (words[1].text == "ls-files" || words[1].text == "diff")
	}
	return false
}

// isText reports whether the words of a program are texts, patterns and files, and run nothing.
func isText(name string, words []word) bool {
	switch name {
	case "echo", "printf", "grep", "egrep", "fgrep", "rg", "ag", "which", "type", "man", "whatis", "apropos", "[", "test", "true", "false", "sleep", "date", "jq", "cat", "ls", "head", "tail", "less",
		"more", "wc", "stat", "file", "diff", "cmp", "sort", "uniq", "cut", "tr", "cd", "pushd", "popd", "mkdir", "touch", "basename", "dirname", "realpath", "readlink", "pwd", "du", "df", "tree", "rm", "cp", "mv", "ln", "chmod", "chown", "tee", "kill", "sha256sum", "md5sum", "column", "nl", "seq", "apt", "apt-get", "brew", "dpkg":
		return true
	case "git":
		sub, _ := subcommand(words, "-C", "-c", "--git-dir", "--work-tree", "--namespace")
		return sub != "submodule" && sub != "bisect" && sub != "rebase" && sub != "filter-branch"
	case "command":
		return len(words) > 1 && (words[1].text == "-v" || words[1].text == "-V")
	}
	return false
}

// isKnown reports whether a program has rules of its own, or runs other programs.
func isKnown(name string) bool {
	if isOtherUser(name) || isShell(name) || isInterpreter(name) || deletesFiles(name) || strings.HasPrefix(name, "mkfs") {
		return true
	}
	switch name {
	case "git", "docker", "podman", "nerdctl", "kubectl", "oc", "helm", "terraform", "tofu", "pulumi", "aws", "gcloud", "az", "ansible-playbook", "npm", "pnpm", "yarn", "cargo", "twine", "gem", "gh",
		"chmod", "chown", "dd", "tee", "crontab", "curl", "wget", "sed", "awk", "gawk", "eval", "source", "cp", "mv", "ln", "install", "xargs", "parallel", "ssh", "scp", "nsenter", "chroot", "systemctl", "launchctl",
		"psql", "mysql", "sqlite3", "mongosh", "shutdown", "reboot", "find", "fd", "env", "systemd-run", "osascript", "nc", "ncat", "socat", "trap":
		return true
	}
	return false
}

// mayBeScript reports whether a text begins as a command line that has something to find.
func mayBeScript(text string) bool {
	fields := strings.Fields(text)
	for i, f := range fields {
		f = strings.Trim(f, `'"();|&!{}`)
		if at := strings.LastIndexByte(f, '/'); at >= 0 {
			f = f[at+1:]
		}
		if isKnown(f) && (i == 0 || isOtherUser(f) || isShell(f) || deletesFiles(f) || strings.ContainsAny(fields[i-1], ";|&({") || strings.ContainsAny(fields[i], "(!")) {
			return true
		}
	}
	return false
}

func isOtherUser(name string) bool {
	switch name {
	case "sudo", "doas", "su", "runuser", "pkexec", "run0", "sudoedit", "gosu", "su-exec", "calife", "dzdo":
		return true
	}
	return false
}

func isShell(name string) bool {
	switch name {
	case "sh", "bash", "zsh", "dash", "ksh", "mksh", "fish", "ash", "csh", "tcsh", "pwsh", "powershell", "rbash", "busybox", "toybox":
		return true
	}
	return false
}

func isInterpreter(name string) bool {
	for _, one := range []string{"python", "perl", "ruby", "php", "lua", "node", "nodejs", "deno", "bun", "tclsh", "osascript", "expect", "Rscript", "julia", "groovy", "ipython", "pypy"} {
		if rest, ok := strings.CutPrefix(name, one); ok && strings.Trim(rest, "0123456789.") == "" {
			return true
		}
	}
	return false
}

func deletesFiles(name string) bool {
	switch name {
	case "rm", "rmdir", "shred", "unlink", "truncate", "srm", "wipe", "trash":
		return true
	}
	return false
}

// options returns whether a command has one of some options: long ones with what follows "=", and letters of short ones.
func hasOption(words []word, letters string, long ...string) bool {
	for _, w := range words[1:] {
		if w.text == "--" {
			return false
		}
		if strings.HasPrefix(w.text, "--") {
			name, _, _ := strings.Cut(w.text, "=")
			if slices.Contains(long, name) {
				return true
			}
		} else if len(w.text) > 1 && w.text[0] == '-' {
			if strings.ContainsAny(w.text[1:], letters) || slices.Contains(long, w.text) {
				return true
			}
		}
	}
	return false
}

// subcommand returns the first word that is no option, and those from it on. The options named take a value in the next word.
func subcommand(words []word, valued ...string) (string, []word) {
	for i := 1; i < len(words); i++ {
		switch text := words[i].text; {
		case slices.Contains(valued, text):
			i++
		case strings.HasPrefix(text, "-"):
		default:
			return text, words[i:]
		}
	}
	return "", nil
}

// operands returns the words behind the program that are no options.
func operands(words []word) (all []word) {
	ended := false
	for _, w := range words[1:] {
		if w.text == "--" && !ended {
			ended = true
			continue
		}
		if ended || !strings.HasPrefix(w.text, "-") || w.text == "-" {
			all = append(all, w)
		}
	}
	return all
}

func joined(words []word) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = w.text
	}
	return shown(strings.Join(texts, " "))
}

// one reads a command by its first word. It reports whether the command downloads.
func (a *analysis) one(words []word, in source) (net bool) {
	name := base(words[0])
	net = usesNetwork(name, words)
	if net {
		a.found(None, "", "Uses the network: "+joined(words)+".", words[0])
		for _, w := range words[1:] {
			a.host(w.text)
		}
	}
	a.files(name, words)
	a.touches(name, words)
	switch {
	case isOtherUser(name):
		text := "Runs as root: it can change anything on this computer."
		if len(words) > 1 {
			text = "Runs " + joined(words[1:]) + " as root: it can change anything on this computer."
		}
		a.found(High, "Runs as root", text, words[:min(2, len(words))]...)
		if name == "su" || name == "runuser" {
			a.shell(words, in)
		}
	case isShell(name):
		a.shell(words, in)
	case isInterpreter(name):
		a.interpreter(name, words, in)
	case deletesFiles(name):
		a.deletes(name, words)
	case strings.HasPrefix(name, "mkfs"), name == "fdisk", name == "parted", name == "wipefs", name == "sgdisk", name == "mkswap", name == "diskutil" && !hasWord(words, "list", "info"):
		a.found(High, "Full disk access", "Changes a disk: "+joined(words)+".", words...)
	default:
		a.named(name, words, in)
	}
	a.production(name, words)
	return net
}

// named reads the commands of programs that are told by their names.
func (a *analysis) named(name string, words []word, in source) {
	switch name {
	case "cd", "pushd":
		a.cd(words)
	case "eval":
		a.eval(words)
	case "source", ".":
		a.sourced(words, in)
	case "trap", "watch", "script", "at", "batch", "systemd-run", "crontab", "launchctl":
		a.later(name, words, in)
	case "env", "export":
		for _, w := range words[1:] {
			if variable, value, ok := strings.Cut(w.text, "="); ok {
				a.variable(variable, word{text: value, from: w.from, to: w.to})
			}
		}
		if hasOption(words, "S", "--split-string") {
			for _, w := range words[1:] {
				if text := strings.TrimPrefix(strings.TrimPrefix(w.text, "-S"), "--split-string="); strings.Contains(text, " ") {
					a.script(text, w, in)
				}
			}
		}
	case "git":
		a.git(words)
	case "find", "fd":
		a.find(words)
	case "sed", "gsed":
		a.sed(words)
	case "awk", "gawk", "mawk", "nawk":
		a.awk(words)
	case "docker", "podman", "nerdctl", "docker-compose":
		ofContainer(a, words)
	case "kubectl", "oc", "helm", "terraform", "tofu", "pulumi", "aws", "gcloud", "az", "ansible-playbook", "ansible", "flyctl", "fly", "heroku", "cdk", "eksctl", "serverless", "sls", "vercel", "netlify", "wrangler", "gh", "doctl", "vault", "consul", "nomad":
		ofCloud(a, name, words)
	case "npm", "pnpm", "yarn", "bun", "cargo", "twine", "gem", "poetry", "uv", "mvn", "gradle", "goreleaser", "lerna", "vsce", "flit", "hatch":
		ofPackages(a, name, words)
	case "npx", "uvx", "bunx", "pipx", "dlx":
		a.found(Notable, "Runs a package", "Downloads and runs a package: "+joined(words)+".", words...)
	case "chmod":
		a.chmod(words)
	case "chown", "chgrp", "setfacl", "chattr":
		if slices.ContainsFunc(operands(words), func(w word) bool { return a.reachOf(w.text) == root }) {
			a.found(High, "Full disk access", "Gives files of the whole disk to another: "+joined(words)+".", words...)
		}
	case "dd":
		for _, w := range words[1:] {
			if to, ok := strings.CutPrefix(w.text, "of="); ok {
				a.names(a.place, to, writes, a.from(w), a.to(w))
			}
			if from, ok := strings.CutPrefix(w.text, "if="); ok {
				a.names(a.place, from, reads, a.from(w), a.to(w))
			}
		}
	case "curl", "wget", "http", "https", "scp", "rsync", "nc", "ncat", "netcat", "socat", "ssh", "sftp", "ssh-copy-id", "ftp":
		ofTransfer(a, name, words, in)
	case "psql", "mysql", "mariadb", "sqlite3", "mongosh", "mongo", "redis-cli", "clickhouse-client", "cqlsh", "sqlcmd", "bq", "dropdb", "pg_restore", "mysqladmin":
		ofDatabase(a, name, words, in)
	case "shutdown", "reboot", "halt", "poweroff", "init":
		a.found(High, "Stops the computer", "Stops or restarts this computer.", words...)
	case "systemctl", "service", "rc-service", "brew":
		if hasWord(words, "start", "stop", "restart", "enable", "disable", "mask", "reload", "kill", "services") {
			a.found(Notable, "Changes services", "Changes a service of this computer: "+joined(words)+".", words...)
		}
	case "kill", "pkill", "killall":
		a.found(Notable, "Stops programs", "Stops programs: "+joined(words)+".", words...)
	case "nsenter", "chroot", "unshare", "mount", "umount", "modprobe", "insmod", "iptables", "nft", "ufw", "sysctl", "setcap", "visudo", "passwd", "useradd", "usermod", "userdel", "dscl", "spctl", "csrutil", "defaults":
		a.found(High, "Changes the system", "Changes this computer for all programs: "+joined(words)+".", words...)
	case "gpg", "gpg2", "security", "ssh-add", "ssh-keygen", "pass", "op", "bw", "keyctl", "secret-tool":
		if hasWord(words, "--export-secret-keys", "--export-secret-subkeys", "dump-keychain", "find-generic-password", "find-internet-password", "show", "read", "get", "lookup", "export") {
			a.found(High, "Private keys", "Reads keys or passwords: "+joined(words)+".", words...)
		}
	case "tar", "rsync-ssh", "vim", "vi", "nvim", "ex", "ed", "emacs", "less", "more":
		if slices.ContainsFunc(words[1:], func(w word) bool {
			return strings.Contains(w.text, "checkpoint-action") || strings.HasPrefix(w.text, "--to-command") || strings.HasPrefix(w.text, "--use-compress-program") || w.text == "-I" || strings.Contains(w.text, "!") || strings.Contains(w.text, "system(") || w.text == "--eval" || w.text == "--rsh"
		}) {
			a.unread("It can run other programs by an option: "+joined(words)+".", words...)
		}
	}
}

func hasWord(words []word, any ...string) bool {
	return slices.ContainsFunc(words[1:], func(w word) bool { return slices.Contains(any, w.text) })
}

// files reads the files that a command names.
func (a *analysis) files(name string, words []word) {
	how := either
	switch name {
	case "cat", "less", "more", "head", "tail", "ls", "stat", "wc", "diff", "cmp", "file", "grep", "egrep", "fgrep", "rg", "ag", "test", "[", "sort", "uniq", "cut", "find", "fd", "du", "df", "tree", "cd", "pushd", "source", ".", "sha256sum", "md5sum", "readlink", "realpath", "basename", "dirname", "git", "jq", "awk", "gawk", "base64", "xxd", "strings", "curl", "wget", "scp", "tar", "zip":
		how = reads
	case "tee", "touch", "mkdir", "chmod", "chown", "chgrp", "install":
		how = writes
	case "echo", "printf", "eval", "trap", "true", "sleep", "dd", "type", "which", "man", "chroot":
		return
	}
	if deletesFiles(name) {
		return // said with what is deleted
	}
	if name == "sed" && hasOption(words, "i", "--in-place") {
		how = writes
	}
	pattern := slices.Contains([]string{"grep", "egrep", "fgrep", "rg", "ag", "sed", "gsed", "awk", "gawk", "mawk", "jq", "tr"}, name) // the first operand is none
	last := -1
	if slices.Contains([]string{"cp", "mv", "ln", "rsync", "scp"}, name) {
		last = len(words) - 1
	}
	message := false
	for i, w := range words[1:] {
		text := w.text
		switch {
		case message:
			message = false
			continue
		case strings.HasPrefix(text, "-"):
			message = text == "-m" || text == "--message" || text == "-am" || text == "-H" || text == "--header"
			if _, value, ok := strings.Cut(text, "="); ok {
				text = value
			} else if at := strings.IndexAny(text, "/~"); at > 0 && at <= 3 && !strings.HasPrefix(text, "--") {
				text = text[at:] // -I/usr/include
			} else {
				continue
			}
		case pattern:
			pattern = false
			continue
		}
		if at := strings.Index(text, "@"); at >= 0 && at < 2 && (name == "curl" || name == "http") {
			text = text[at+1:]
		}
		use := how
		if i+1 == last {
			use = writes
		} else if last >= 0 {
			use = reads
		}
		if name == "git" {
			use = reads
		}
		if a.isPath(text) || use == writes && !strings.Contains(text, " ") || isSecret(a.whole(text)) || isEnvironment(a.whole(text)) && use != either {
			a.names(a.place, text, use, a.from(w), a.to(w))
		}
	}
}

// isPath reports whether a word is a path that may lead out of the folder.
func (a *analysis) isPath(text string) bool {
	if isAddress(text) {
		return false
	}
	if a.now != a.folder && !strings.HasPrefix(text, "-") && a.reachOf(".") != inside {
		return true // each file there is outside
	}
	return strings.HasPrefix(text, "/") || strings.HasPrefix(text, "~") || text == ".." || strings.HasPrefix(text, "../") || strings.Contains(text, "/../") || strings.HasSuffix(text, "/..") ||
		strings.Contains(text, ".git/hooks") || strings.HasSuffix(text, ".git/config") || strings.Contains(text, ".husky/") || strings.Contains(text, "=/") || strings.HasPrefix(text, unknown+"/")
}

// cd follows a change of the folder.
func (a *analysis) cd(words []word) {
	to := operands(words)
	switch {
	case len(to) == 0:
		a.now = "~"
	case !to[0].isLiteral() || to[0].text == "-":
		a.now = unknown
	default:
		a.now = a.whole(to[0].text)
	}
}

// deletes reads a command that deletes files.
func (a *analysis) deletes(name string, words []word) {
	all := operands(words)
	if name == "truncate" {
		all = slices.DeleteFunc(all, func(w word) bool { return strings.Trim(w.text, "0123456789KMG") == "" })
	}
	if len(all) == 0 {
		a.found(Notable, "Deletes files", "Deletes files: "+joined(words)+".", words...)
	}
	for _, w := range all {
		a.deletesAt(w, words)
	}
}

// deletesAt adds that a path is deleted.
func (a *analysis) deletesAt(w word, words []word) {
	switch where := a.reachOf(w.text); {
	case isDisk(a.whole(w.text)):
		a.names(a.place, w.text, writes, a.from(w), a.to(w))
	case where == root:
		a.found(High, "Deletes everything", "Deletes all of "+shown(w.text)+".", words...)
	case !w.isLiteral():
		a.found(High, "Deletes files", "What it deletes is known only as it runs: "+shown(w.text)+".", words...)
	case where == outside:
		a.found(High, "Deletes files", "Deletes "+shown(w.text)+", outside the folder.", words...)
	default:
		a.found(Notable, "Deletes files", "Deletes "+shown(w.text)+".", words...)
		if mark, phrase := startup(a.whole(w.text)); mark != "" {
			a.found(High, mark, "Changes "+shown(w.text)+": "+phrase+".", w)
		}
	}
}

// shell reads a command of a shell.
func (a *analysis) shell(words []word, in source) {
	for i, w := range words[1:] {
		if !strings.HasPrefix(w.text, "-") && !strings.HasPrefix(w.text, "+") {
			if base(words[0]) == "busybox" || base(words[0]) == "toybox" || base(words[0]) == "su" || base(words[0]) == "runuser" {
				continue
			}
			a.runs(w, in)
			return
		}
		isScript := w.text == "-c" || w.text == "--command" || w.text == "-Command" || len(w.text) > 1 && w.text[1] != '-' && strings.HasSuffix(w.text, "c")
		switch {
		case isScript && i+2 < len(words):
			script := words[i+2]
			switch {
			case script.net:
				a.found(High, "Runs a download", "Gives the download to "+shown(words[0].text)+": it can do anything that you can.", words...)
			case !script.isLiteral() && script.text == unknown || script.made:
				a.unread("What the shell runs is known only as it runs.", words...)
			default:
				a.script(strings.ReplaceAll(script.text, unknown, "$unknown"), script, in)
			}
			return
		case w.text == "-o" || w.text == "+o" || w.text == "-O" || w.text == "--rcfile" || w.text == "--init-file":
			if i+2 < len(words) && strings.HasSuffix(w.text, "file") {
				a.runs(words[i+2], in)
			}
			if i+2 < len(words) {
				words = slices.Concat(words[:i+2], []word{{text: "-", from: w.from, to: w.to}}, words[i+3:])
			}
		case w.text == "-s":
		}
	}
	a.input(words, in)
}

// input adds that a program runs its input.
func (a *analysis) input(words []word, in source) {
	switch {
	case in.net:
		a.found(High, "Runs a download", "Gives the download to "+joined(words)+": it can do anything that you can.", words...)
	case in.is:
		a.unread("Gives what comes through a pipe or from a file to "+joined(words)+".", words...)
	}
}

// runs adds that a file is run.
func (a *analysis) runs(w word, in source) {
	switch {
	case w.net || slices.ContainsFunc(a.downloads, func(d string) bool { return d != "" && a.whole(d) == a.whole(w.text) }):
		a.found(High, "Runs a download", "Runs what it downloads.", w)
	case w.text == "-" || w.text == "/dev/stdin" || strings.HasPrefix(w.text, "/dev/fd/"):
		a.input([]word{w}, in)
	case w.made || !w.isLiteral() && strings.Trim(w.text, unknown) == "":
		a.unread("What it runs is known only as it runs.", w)
	}
}

// interpreter reads a command of an interpreter.
func (a *analysis) interpreter(name string, words []word, in source) {
	for i, w := range words[1:] {
		text := w.text
		if !strings.HasPrefix(text, "-") || text == "-" {
			if sub := slices.Contains([]string{"run", "test", "install", "add", "x"}, text) && (name == "deno" || name == "bun"); sub {
				return
			}
			if name == "deno" && text == "eval" {
				a.unread("Runs code that is not read here: "+joined(words)+".", words...)
				return
			}
			a.runs(w, in)
			return
		}
		if text == "-m" && strings.HasPrefix(name, "python") {
			return
		}
		isCode := text == "--eval" || text == "--print" || strings.HasPrefix(text, "--eval=") || len(text) > 1 && text[1] != '-' && codeOption(name, text[1:])
		if isCode {
			if i+2 < len(words) && words[i+2].net || w.net {
				a.found(High, "Runs a download", "Gives the download to "+name+": it can do anything that you can.", words...)
				return
			}
			a.found(High, "Runs code", "Runs code of "+name+" that is not read here.", words...)
			return
		}
	}
	if len(words) == 1 || !slices.ContainsFunc(words[1:], func(w word) bool {
		return w.text == "--version" || w.text == "-V" || w.text == "-v" || w.text == "--help"
	}) {
		a.input(words, in)
	}
}

// codeOption reports whether letters of an option have code follow.
func codeOption(name, letters string) bool {
	switch {
	case strings.HasPrefix(name, "python"), strings.HasPrefix(name, "pypy"), name == "ipython", name == "expect":
		return strings.Contains(letters, "c")
	case name == "php":
		return strings.ContainsAny(letters, "rBRE")
	case strings.HasPrefix(name, "node"), name == "bun":
		return strings.ContainsAny(letters, "ep")
	}
	return strings.ContainsAny(letters, "eE")
}

// eval reads a command line that is put together.
func (a *analysis) eval(words []word) {
	var parts []string
	for _, w := range words[1:] {
		if w.net {
			a.found(High, "Runs a download", "Runs what it downloads.", words...)
			return
		}
		if !w.isLiteral() {
			a.unread("What it runs is known only as it runs.", words...)
			return
		}
		parts = append(parts, w.text)
	}
	if len(parts) > 0 {
		a.script(strings.Join(parts, " "), words[len(words)-1], source{})
	}
}

// sourced reads a script that a shell reads into itself.
func (a *analysis) sourced(words []word, in source) {
	if len(words) > 1 {
		a.runs(words[1], in)
		a.names(a.place, words[1].text, reads, a.from(words[1]), a.to(words[1]))
	}
}

// later reads commands that have others run later.
func (a *analysis) later(name string, words []word, in source) {
	switch name {
	case "trap":
		if len(words) > 2 && words[1].isLiteral() && words[1].text != "-" && words[1].text != "" {
			a.script(words[1].text, words[1], source{})
		} else if len(words) > 2 && !words[1].isLiteral() {
			a.unread("What it runs is known only as it runs.", words...)
		}
	case "watch", "script":
		if text := joined(words[1:]); slices.ContainsFunc(words[1:], func(w word) bool { return !w.isLiteral() }) {
			a.unread("What it runs is known only as it runs: "+text+".", words...)
		}
	case "crontab":
		if !hasOption(words, "l") || hasOption(words, "re") {
			a.found(High, "Runs later", "Changes what this computer runs by itself: "+joined(words)+".", words...)
		}
	case "launchctl":
		if !hasWord(words, "list", "print") {
			a.found(High, "Runs later", "Changes what this computer runs by itself: "+joined(words)+".", words...)
		}
	default:
		a.found(High, "Runs later", "Has commands run later: "+joined(words)+".", words...)
		if in.net {
			a.input(words, in)
		}
	}
}

// find reads a search that may delete what it finds.
func (a *analysis) find(words []word) {
	if !hasWord(words, "-delete") {
		runs := hasWord(words, "-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch")
		if !runs || !slices.ContainsFunc(words[1:], func(w word) bool { return deletesFiles(base(w)) }) {
			return
		}
	}
	var at []word
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
		at = []word{{text: ".", from: words[0].from, to: words[0].to}}
	}
	for _, w := range at {
		switch a.reachOf(w.text) {
		case inside:
			if w.isLiteral() {
				a.found(Notable, "Deletes files", "Deletes what it finds in "+shown(w.text)+".", words...)
				continue
			}
			fallthrough
		case outside:
			a.found(High, "Deletes files", "Deletes what it finds in "+shown(w.text)+", outside the folder.", words...)
		case root:
			a.found(High, "Deletes everything", "Deletes what it finds in all of "+shown(w.text)+".", words...)
		}
	}
}

// chmod reads a change of who may use files.
func (a *analysis) chmod(words []word) {
	all := operands(words)
	if len(all) == 0 {
		return
	}
	mode := all[0].text
	digits := strings.TrimLeft(mode, "0")
	open := len(digits) >= 3 && strings.Trim(digits, "01234567") == "" && strings.ContainsAny(digits[len(digits)-1:], "2367") || strings.Contains(mode, "o+w") || strings.Contains(mode, "a+w") || strings.Contains(mode, "a+rw") || strings.Contains(mode, "+rwx") && !strings.HasPrefix(mode, "u") || strings.Contains(mode, "o=rw") || strings.Contains(mode, "a=rw")
	special := strings.Contains(mode, "s") || len(digits) == 4 && strings.ContainsAny(digits[:1], "4567")
	for _, w := range all[1:] {
		switch where := a.reachOf(w.text); {
		case where == root:
			a.found(High, "Full disk access", "Changes who may use all of "+shown(w.text)+".", words...)
		case special:
			a.found(High, "Changes access", "Has whoever runs "+shown(w.text)+" act as its owner.", words...)
		case open && where == outside:
			a.found(High, "Changes access", "Lets everybody change "+shown(w.text)+".", words...)
		case open:
			a.found(Notable, "Changes access", "Lets everybody change "+shown(w.text)+".", words...)
		}
	}
}

// sed reads a script of sed, which can run commands and write files.
func (a *analysis) sed(words []word) {
	var scripts []word
	ops := operands(words)
	for i, w := range words[1:] {
		switch {
		case (w.text == "-e" || w.text == "--expression" || strings.HasPrefix(w.text, "-") && !strings.HasPrefix(w.text, "--") && strings.HasSuffix(w.text, "e") && !strings.HasPrefix(w.text, "-i")) && i+2 < len(words):
			scripts = append(scripts, words[i+2])
		case strings.HasPrefix(w.text, "--expression="), strings.HasPrefix(w.text, "-e") && len(w.text) > 2:
			scripts = append(scripts, word{text: strings.TrimPrefix(strings.TrimPrefix(w.text, "--expression="), "-e"), from: w.from, to: w.to})
		case w.text == "-f" || w.text == "--file" || strings.HasPrefix(w.text, "--file="):
			a.found(Notable, "Runs code", "Runs a script of sed that is in a file.", w)
			return
		}
	}
	if len(scripts) == 0 && len(ops) > 0 {
		scripts = ops[:1]
	}
	for _, s := range scripts {
		runs, writesFile := readSed(s.text)
		if runs {
			a.found(High, "Runs code", "sed runs what is in its text as commands.", s)
		}
		if writesFile {
			a.found(High, "Can't be read", "sed writes files that its script names.", s)
		}
	}
}

// readSed reports whether a script of sed runs commands or writes files. It takes too much for such rather than too little.
func readSed(script string) (runs, writesFile bool) {
	for at := 0; at < len(script); {
		switch c := script[at]; {
		case c == 's' || c == 'y':
			end, flags := sedReplace(script, at)
			if end < 0 {
				return true, false // it is not understood
			}
			if c == 's' {
				runs, writesFile = runs || strings.Contains(flags, "e"), writesFile || strings.Contains(flags, "w")
			}
			at = end
		case c == '/' || c == '\\' && at+1 < len(script):
			until := c
			if c == '\\' {
				at++
				until = script[at]
			}
			end := sedEnd(script, at+1, until)
			if end < 0 {
				return true, false
			}
			at = end + 1
		case c == 'e':
			return true, writesFile
		case c == 'w' || c == 'W':
			writesFile = true
			at = lineEnd(script, at)
		case strings.IndexByte("aic:btTrR#", c) >= 0:
			at = lineEnd(script, at)
		default:
			at++
		}
	}
	return runs, writesFile
}

func lineEnd(script string, at int) int {
	if end := strings.IndexByte(script[at:], '\n'); end >= 0 {
		return at + end + 1
	}
	return len(script)
}

// sedEnd returns the place of the delimiter that ends a pattern; -1 for none.
func sedEnd(script string, at int, until byte) int {
	class := false
	for ; at < len(script); at++ {
		switch c := script[at]; {
		case c == '\\':
			at++
		case class:
			class = c != ']'
		case c == '[' && until != '[':
			class = strings.IndexByte(script[at:], ']') >= 0
		case c == until:
			return at
		}
	}
	return -1
}

// sedReplace returns the end of a replacement that begins at a place, and its flags.
func sedReplace(script string, at int) (end int, flags string) {
	if at+1 >= len(script) {
		return -1, ""
	}
	until := script[at+1]
	middle := sedEnd(script, at+2, until)
	if middle < 0 {
		return -1, ""
	}
	for end = middle + 1; end < len(script) && script[end] != until; end++ {
		if script[end] == '\\' {
			end++
		}
	}
	if end >= len(script) {
		return -1, ""
	}
	end++
	from := end
	for end < len(script) && strings.IndexByte("gpiImMe0123456789", script[end]) >= 0 {
		end++
	}
	if end < len(script) && script[end] == 'w' {
		return lineEnd(script, end), script[from:end] + "w"
	}
	return end, script[from:end]
}

// awk reads a program of awk, which can run commands.
func (a *analysis) awk(words []word) {
	for _, w := range words[1:] {
		if strings.Contains(w.text, "system(") || strings.Contains(w.text, "system (") || strings.Contains(w.text, "getline") || strings.Contains(w.text, "|") && strings.Contains(w.text, `"`) && !strings.Contains(w.text, "||") || strings.HasPrefix(w.text, "@load") {
			a.found(High, "Runs code", "awk can run commands by its program.", w)
		} else if at := strings.Index(w.text, `> "`); at >= 0 {
			a.found(Notable, "Writes files", "awk writes files that its program names.", w)
		}
		if w.text == "-f" || strings.HasPrefix(w.text, "--file") {
			a.found(Notable, "Runs code", "Runs a program of awk that is in a file.", w)
		}
	}
}
