package risk

import (
	"slices"
	"strings"
)

// ofContainer reads a command of docker and the like.
func ofContainer(a *analysis, words []word) {
	sub, rest := subcommand(words, "-H", "--host", "-c", "--context", "--config", "-f", "--file", "-p", "--project-name", "--profile", "--env-file")
	if sub == "container" || sub == "image" || sub == "compose" || sub == "buildx" || sub == "volume" || sub == "network" || sub == "system" || sub == "builder" {
		if len(rest) > 1 {
			if inner, more := subcommand(rest, "-f", "--file", "-p", "--project-name", "--profile", "--env-file"); inner != "" {
				sub, rest = inner, more
			}
		}
	}
	if rest == nil {
		return
	}
	switch sub {
	case "run", "exec", "create", "start", "up", "build":
		ofOptions(a, rest)
		if sub == "exec" {
			a.found(Notable, "Runs elsewhere", "Runs "+joined(rest[1:])+" in a container.", words...)
		}
	case "rm", "rmi", "prune", "kill", "stop", "down", "remove":
		if sub == "down" && !hasOption(rest, "v", "--volumes", "--rmi") {
			a.found(Notable, "Stops programs", "Stops containers: "+joined(words)+".", words...)
			return
		}
		a.found(Notable, "Deletes containers", "Stops or deletes containers, or what they have: "+joined(words)+".", words...)
	case "push", "login":
		a.found(Notable, "Publishes", "Sends an image or a password to a registry: "+joined(words)+".", words...)
	case "cp":
		a.found(Notable, "Runs elsewhere", "Copies files of a container: "+joined(words)+".", words...)
	}
}

// ofOptions reads the options by which a container is less apart from the computer.
func ofOptions(a *analysis, words []word) {
	for i, w := range words[1:] {
		name, value, has := strings.Cut(w.text, "=")
		next := w
		if !has && i+2 < len(words) {
			value, next = words[i+2].text, words[i+2]
		}
		glued := strings.HasPrefix(w.text, "-v") && len(w.text) > 2 && !strings.HasPrefix(w.text, "--")
		if glued {
			name, value, next = "-v", strings.TrimPrefix(w.text[2:], "="), w
		}
		switch name {
		case "--privileged":
			if !has || value != "false" {
				a.found(High, "Full disk access", "The container may do all that this computer may.", w)
			}
		case "-v", "--volume", "--mount":
			ofMount(a, value, next)
		case "--device":
			a.found(High, "Full disk access", "Gives the container a device: "+shown(value)+".", w, next)
		case "--pid", "--ipc", "--uts", "--userns", "--network", "--net":
			if value == "host" {
				level := High
				if name == "--network" || name == "--net" {
					level = Notable
				}
				a.found(level, "Joins the host", "The container shares "+strings.TrimLeft(name, "-")+" with this computer.", w, next)
			}
		case "--cap-add", "--security-opt":
			a.found(High, "Full disk access", "Gives the container more rights: "+shown(value)+".", w, next)
		}
		if !strings.HasPrefix(w.text, "-") && i > 0 && !strings.HasPrefix(words[i].text, "-") {
			return // options of the program in it
		}
	}
}

// ofMount reads what of the computer a container is given.
func ofMount(a *analysis, value string, at word) {
	from := value
	if strings.Contains(value, "type=") || strings.Contains(value, "src=") || strings.Contains(value, "source=") {
		from = ""
		for part := range strings.SplitSeq(value, ",") {
			if key, v, ok := strings.Cut(part, "="); ok && (key == "src" || key == "source") {
				from = v
			}
		}
	} else {
		from, _, _ = strings.Cut(value, ":")
	}
	if from == "" || !strings.ContainsAny(from, "/~."+unknown) {
		return // a volume by its name
	}
	switch whole := a.whole(from); {
	case strings.HasSuffix(whole, "docker.sock") || strings.HasSuffix(whole, "containerd.sock") || strings.HasSuffix(whole, "podman.sock"):
		a.found(High, "Full disk access", "Gives the container all containers of this computer, and by them all of it.", at)
	case a.reachOf(from) == root:
		a.found(High, "Full disk access", "Mounts all of "+shown(from)+": any file there can be read or changed.", at)
	case a.reachOf(from) == outside:
		a.names(a.place, from, either, a.from(at), a.to(at))
	}
}

// ofCloud reads a command of a program that changes what runs elsewhere.
func ofCloud(a *analysis, name string, words []word) {
	said := joined(words)
	has := func(verbs ...string) bool {
		return slices.ContainsFunc(words[1:], func(w word) bool {
			if strings.HasPrefix(w.text, "-") || strings.Contains(w.text, "/") {
				return false
			}
			return slices.ContainsFunc(parted(w.text), func(p string) bool { return slices.Contains(verbs, p) })
		})
	}
	dry := slices.ContainsFunc(words[1:], func(w word) bool {
		return strings.HasPrefix(w.text, "--dry-run") && w.text != "--dry-run=none" || w.text == "--dryrun"
	})
	if dry {
		return
	}
	switch {
	case has("get", "describe", "list", "ls", "show", "status", "logs", "view", "top", "explain", "version", "diff", "plan", "validate", "fmt", "history", "whoami") && !has("delete", "destroy", "exec", "apply", "create", "rm") && name != "vault":
		if (name == "kubectl" || name == "oc") && has("secret", "secrets") || has("get") && has("value") && has("secret", "secretsmanager", "parameter") {
			a.found(High, "Private keys", "Reads passwords that run elsewhere: "+said+".", words...)
		}
	case has("delete", "destroy", "terminate", "remove", "rm", "rb", "uninstall", "purge", "drain", "evict", "prune", "drop"):
		level := Notable
		if name == "terraform" || name == "tofu" || name == "pulumi" || a.prod {
			level = High
		}
		mark := "Deletes elsewhere"
		if a.prod {
			mark = "Deletes in prod"
		}
		a.found(level, mark, "Deletes what runs elsewhere: "+said+".", words...)
	case name == "terraform" || name == "tofu" || name == "pulumi" || name == "cdk":
		if has("apply", "up", "deploy", "import", "taint", "state", "refresh", "cancel", "force") {
			a.found(High, "Changes infra", "Changes what runs elsewhere, as its files and its state say: "+said+".", words...)
		}
	case strings.HasPrefix(name, "ansible"):
		if !hasOption(words, "C", "--check") {
			a.found(High, "Changes infra", "Runs commands on other computers: "+said+".", words...)
		}
	case has("exec", "attach", "debug", "ssh", "cp", "port"):
		ofElsewhere(a, said, words)
	case has("apply", "create", "patch", "replace", "edit", "set", "scale", "rollout", "upgrade", "install", "deploy", "rollback", "run", "cordon", "taint", "label", "annotate", "put", "update", "start", "stop", "reboot", "sync", "mv", "promote", "publish", "write", "merge", "release", "secret", "config"):
		level, mark := Notable, "Changes infra"
		if a.prod {
			level = High
		}
		if name == "gh" {
			mark = "Publishes"
		}
		a.found(level, mark, "Changes what runs elsewhere: "+said+".", words...)
	case name != "gh" && len(words) > 1 && !hasOption(words, "h", "--help", "--version"):
		a.found(Notable, "Changes infra", "It is not known what it does elsewhere: "+said+".", words...)
	}
}

// ofElsewhere adds that a command runs on another computer or in a container there.
func ofElsewhere(a *analysis, said string, words []word) {
	level := Notable
	if a.prod {
		level = High
	}
	a.found(level, "Runs elsewhere", "Runs a command elsewhere: "+said+".", words...)
}

// parted returns the parts of a word in lower case, as of terminate-instances and db:migrate.
func parted(word string) []string {
	return strings.FieldsFunc(strings.ToLower(word), func(r rune) bool { return r == '-' || r == '_' || r == ':' || r == '.' || r == '/' || r == '=' })
}

// ofPackages reads a command that may publish.
func ofPackages(a *analysis, name string, words []word) {
	said := joined(words)
	sub, rest := subcommand(words, "-C", "--prefix", "--filter", "-w", "--workspace")
	switch sub {
	case "publish", "upload", "push", "deploy", "release", "unpublish", "deprecate", "yank", "owner", "access", "dist-tag", "token", "login", "adduser":
		if !hasOption(words, "", "--dry-run") {
			a.found(Notable, "Publishes", "Others get what it sends: "+said+".", words...)
		}
	case "exec", "x", "dlx", "tool":
		a.found(Notable, "Runs a package", "Downloads and runs a package: "+said+".", words...)
	case "config":
		if len(rest) > 1 && rest[1].text == "set" {
			a.found(Notable, "Outside folder", "Changes settings of "+name+": "+said+".", words...)
		}
	}
	if len(rest) > 0 && hasOption(rest, "g", "--global") {
		a.found(Notable, "Outside folder", "Changes programs of this computer: "+said+".", words...)
	}
}

// ofTransfer reads a command that sends or fetches.
func ofTransfer(a *analysis, name string, words []word, in source) {
	ops := operands(words)
	switch name {
	case "curl", "wget", "http", "https":
		ofRequest(a, name, words, in)
	case "scp", "rsync", "sftp", "ftp":
		if len(ops) > 0 && strings.Contains(ops[len(ops)-1].text, ":") || name == "sftp" || name == "ftp" {
			a.found(Notable, "Sends data", "Sends files elsewhere: "+joined(words)+".", words...)
		}
		if name == "rsync" {
			if hasOption(words, "", "--delete", "--delete-after", "--delete-before", "--remove-source-files", "--delete-excluded") {
				a.found(Notable, "Deletes files", "Deletes what the other side does not have: "+joined(words)+".", words...)
			}
			if hasOption(words, "e", "--rsh", "--rsync-path") {
				for _, w := range words[1:] {
					if strings.Contains(w.text, " ") && w.isLiteral() {
						a.script(strings.TrimPrefix(w.text, "--rsh="), w, source{})
					}
				}
			}
		}
	case "ssh":
		for i, w := range words[1:] {
			option := strings.ToLower(w.text)
			if option == "-o" && i+2 < len(words) {
				option = strings.ToLower(words[i+2].text)
			}
			if strings.Contains(option, "proxycommand") || strings.Contains(option, "localcommand") {
				a.found(High, "Runs other code", "ssh runs a command of an option: "+shown(w.text)+".", w)
			}
		}
		if len(ops) > 1 {
			ofElsewhere(a, joined(words), words)
			if rest := ops[1:]; len(rest) == 1 && strings.Contains(rest[0].text, " ") {
				if !rest[0].isLiteral() {
					a.unread("What it runs elsewhere is known only as it runs.", words...)
				}
			}
		} else if in.is {
			a.unread("Gives what comes through a pipe or from a file to a shell elsewhere.", words...)
		}
	case "ssh-copy-id":
		a.found(High, "Changes access", "Lets a key sign in elsewhere: "+joined(words)+".", words...)
	default: // nc and the like
		level, text := Notable, "Connects programs with the network: "
		if hasOption(words, "ec", "--exec", "--sh-exec") || slices.ContainsFunc(words[1:], func(w word) bool {
			return strings.HasPrefix(strings.ToUpper(w.text), "EXEC:") || strings.HasPrefix(strings.ToUpper(w.text), "SYSTEM:")
		}) {
			level, text = High, "Has the network give commands to a program: "
		}
		a.found(level, "Sends data", text+joined(words)+".", words...)
	}
}

// ofRequest reads a request of curl or wget.
func ofRequest(a *analysis, name string, words []word, in source) {
	sends := false
	for i, w := range words[1:] {
		text := w.text
		next := ""
		if i+2 < len(words) {
			next = words[i+2].text
		}
		option, value, has := strings.Cut(text, "=")
		if !has {
			value = next
		}
		switch {
		case name == "wget" && (option == "-O" || option == "--output-document"), name == "curl" && (option == "-o" || option == "--output"):
			if value != "-" {
				a.names(a.place, value, writes, a.from(w), a.to(w))
				a.downloads = append(a.downloads, value)
			}
		case name == "curl" && strings.HasPrefix(text, "-") && !strings.HasPrefix(text, "--") && strings.HasSuffix(text, "o"):
			a.names(a.place, next, writes, a.from(w), a.to(w))
			a.downloads = append(a.downloads, next)
		case !strings.HasPrefix(text, "-") && (name == "wget" || hasOption(words, "O", "--remote-name", "--remote-name-all")):
			if at := strings.LastIndexByte(text, '/'); at+1 < len(text) {
				a.downloads = append(a.downloads, text[at+1:])
			}
		case option == "-X" || option == "--request" || option == "--method":
			if method := strings.ToUpper(value); method != "GET" && method != "HEAD" {
				sends = true
			}
		case option == "-K" || option == "--config":
			a.unread("Its options are in a file.", w)
		case strings.HasPrefix(option, "--data"), option == "-d", option == "-F", option == "--form", option == "-T", option == "--upload-file", option == "--json", strings.HasPrefix(option, "--post-"), strings.HasPrefix(option, "--body-"), strings.HasPrefix(text, "-d") && !strings.HasPrefix(text, "--") && name == "curl", strings.HasPrefix(text, "-X") && !strings.HasSuffix(text, "GET"):
			sends = true
		}
	}
	if sends {
		a.found(Notable, "Sends data", "Sends data: "+joined(words)+".", words...)
	}
}

// ofDatabase reads a command of a client of a database.
func ofDatabase(a *analysis, name string, words []word, in source) {
	mark, level := "Changes data", Notable
	if a.prod {
		level = High
	}
	switch {
	case name == "dropdb" || name == "pg_restore" || name == "mysqladmin":
		a.found(level, mark, "Changes a database: "+joined(words)+".", words...)
	case in.is || hasOption(words, "f", "--file"):
		a.found(level, mark, "Gives a database commands of a file or a pipe: "+joined(words)+".", words...)
	case slices.ContainsFunc(words[1:], func(w word) bool { return changesData(w.text) || !w.isLiteral() && strings.Contains(w.text, " ") }):
		a.found(level, mark, "Changes a database: "+joined(words)+".", words...)
	}
}

// changesData reports whether a text has a statement that changes data.
func changesData(text string) bool {
	for _, field := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !('a' <= r && r <= 'z' || r == '_') }) {
		switch field {
		case "insert", "update", "delete", "drop", "truncate", "alter", "create", "grant", "revoke", "merge", "replace", "flushall", "flushdb", "set", "del", "copy", "call", "do", "deleteone", "deletemany", "insertone", "updateone", "updatemany", "dropdatabase", "attach", "vacuum":
			return true
		}
	}
	return false
}

// production adds that a command with the verb of a change names what is in production.
func (a *analysis) production(name string, words []word) {
	if !a.prod || isText(name, words) || name == "git" {
		return
	}
	all := joined(words)
	for _, w := range words {
		for _, verb := range parted(w.text) {
			switch verb {
			case "delete", "destroy", "drop", "truncate", "purge", "wipe", "terminate":
				if a.has("Deletes in prod", all) { // as what runs elsewhere
					return
				}
				a.found(High, "Deletes in prod", "Deletes something of what is named production: "+all+".", words...)
				return
			case "apply", "deploy", "deployment", "migrate", "rollback", "release", "promote", "restart", "scale":
				a.found(High, "Changes prod", "Changes something of what is named production: "+all+".", words...)
				return
			}
		}
	}
}

// usesNetwork reports whether a command is known to use the network, or names an address.
func usesNetwork(name string, words []word) bool {
	if slices.ContainsFunc(words[1:], func(w word) bool { return isAddress(w.text) }) && !isPrinter(name) {
		return true
	}
	first, _ := subcommand(words, "-C", "-c")
	switch name {
	case "curl", "wget", "http", "https", "nc", "ncat", "netcat", "socat", "telnet", "ssh", "scp", "sftp", "rsync", "ftp", "npx", "uvx", "bunx", "apt", "apt-get", "brew", "kubectl", "gh", "aws", "gcloud", "az", "lynx", "aria2c", "fetch":
		return true
	case "git":
		return slices.Contains([]string{"push", "fetch", "pull", "clone", "remote", "submodule", "ls-remote"}, first)
	case "npm", "pnpm", "yarn", "bun", "pip", "pip3", "uv", "poetry", "cargo", "gem", "go", "composer", "bundle":
		return slices.Contains([]string{"install", "i", "ci", "add", "get", "publish", "update", "upgrade", "sync", "download", "exec", "dlx"}, first)
	case "docker", "podman":
		return slices.Contains([]string{"pull", "push", "run", "login", "build"}, first)
	}
	return false
}

// isPrinter reports whether a program only prints its words or files.
func isPrinter(name string) bool {
	switch name {
	case "echo", "printf", "grep", "rg", "cat", "sed", "awk", "jq", "git", "test", "[":
		return true
	}
	return false
}

func isAddress(word string) bool {
	return strings.HasPrefix(word, "http://") || strings.HasPrefix(word, "https://") || strings.HasPrefix(word, "ssh://") || strings.HasPrefix(word, "git@") || strings.HasPrefix(word, "ftp://")
}
