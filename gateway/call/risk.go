package call

import (
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/idna"
)

// Risk is a note on what is risky in a call.
type Risk struct {
	Kind RiskKind
	Text string // in plain words, with words of the call
}

// RiskKind is the kind of a risk.
type RiskKind string

// The kinds of risks.
const (
	Privilege RiskKind = "privilege" // it runs as another user
	Force     RiskKind = "force"     // it overrides a safeguard
	Deletes   RiskKind = "deletes"
	Network   RiskKind = "network"
	Outside   RiskKind = "outside" // the folder of the call
	Unread    RiskKind = "unread"  // the command line is not understood
)

// maxRisks bounds the notes on one call.
const maxRisks = 12

// risks collects the risks of a call, each once.
type risks struct {
	folder string
	all    []Risk
}

func (r *risks) add(kind RiskKind, text string) {
	risk := Risk{kind, clip(Spelled(oneLine(text)), maxPhrase)}
	if len(r.all) < maxRisks && !slices.Contains(r.all, risk) {
		r.all = append(r.all, risk)
	}
}

// command adds the risks of a command line.
func (r *risks) command(p *parsed) {
	if p.file == nil {
		r.add(Unread, "this command line is not understood: read it with care")
		return
	}
	for _, words := range p.commands {
		r.words(words)
	}
	for _, name := range p.piped {
		if isShell(name) || isInterpreter(name) {
			r.add(Privilege, "runs what comes through a pipe: "+name)
		}
	}
	for _, target := range p.targets {
		if target != "/dev/null" {
			r.path(target)
		}
	}
}

// words adds the risks of one command.
func (r *risks) words(words []string) {
	if len(words) == 0 {
		return
	}
	inner := unwrapped(words)
	for _, w := range words[:len(words)-len(inner)] {
		if isOtherUser(path.Base(w)) {
			r.add(Privilege, "runs as another user: "+path.Base(w))
		}
	}
	words = inner
	name, args := path.Base(words[0]), words[1:]
	if isOtherUser(name) {
		r.add(Privilege, "runs as another user: "+name)
	}
	said := clip(strings.Join(strings.Fields(strings.Join(words, " ")), " "), 60)
	switch {
	case words[0] == "" || name == "eval":
		r.add(Unread, "runs a command that is made as it runs")
	case deletes(name, args):
		r.add(Deletes, "deletes: "+said)
	}
	if flag := forcing(name, args); flag != "" {
		r.add(Force, "forces: "+name+" "+flag)
	}
	if usesNetwork(name, args) {
		r.add(Network, "uses the network: "+said)
		for _, a := range args {
			r.host(a)
		}
	}
	for _, a := range args {
		if _, value, ok := strings.Cut(a, "="); ok && strings.HasPrefix(a, "-") {
			a = value
		}
		r.path(a)
	}
	r.path(words[0])
}

func isOtherUser(name string) bool {
	return name == "sudo" || name == "doas" || name == "su" || name == "runuser"
}

// deletes reports whether a command deletes files, branches or the like.
func deletes(name string, args []string) bool {
	has := func(words ...string) bool {
		return slices.ContainsFunc(args, func(a string) bool { return slices.Contains(words, a) })
	}
	switch name {
	case "rm", "rmdir", "shred", "unlink", "mkfs", "dd", "truncate":
		return true
	case "find", "fd":
		return has("-delete", "rm")
	case "git":
		return has("clean") || has("branch", "tag") && has("-D", "-d", "--delete") || has("push") && has("--delete", "-d", "--mirror", "--prune")
	case "kubectl", "docker", "podman", "terraform", "aws", "gcloud", "gh":
		return has("delete", "rm", "rmi", "prune", "destroy", "rb")
	}
	return false
}

// forcing returns the option with which a command overrides a safeguard.
func forcing(name string, args []string) string {
	for _, a := range args {
		option, _, _ := strings.Cut(a, "=")
		short := strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") && strings.Contains(a, "f")
		switch {
		case option == "--force", option == "--force-with-lease", option == "--no-verify", option == "--hard", option == "--privileged", option == "--no-preserve-root":
			return option
		case short && (name == "rm" || name == "git" && slices.Contains(args, "push") || name == "git" && slices.Contains(args, "clean")):
			return a
		case name == "git" && slices.Contains(args, "push") && len(a) > 1 && a[0] == '+':
			return a
		}
	}
	return ""
}

// usesNetwork reports whether a command is known to use the network, or names an address.
func usesNetwork(name string, args []string) bool {
	first := ""
	for _, a := range args {
		if !strings.HasPrefix(a, "-") {
			first = a
			break
		}
	}
	if slices.ContainsFunc(args, isAddress) {
		return true
	}
	switch name {
	case "curl", "wget", "nc", "ncat", "netcat", "socat", "telnet", "ssh", "scp", "sftp", "rsync", "ftp", "npx", "uvx", "bunx", "apt", "apt-get", "brew", "kubectl", "gh", "aws", "gcloud", "az":
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

func isInterpreter(name string) bool {
	switch name {
	case "python", "python3", "node", "perl", "ruby", "php", "xargs":
		return true
	}
	return false
}

func isAddress(word string) bool {
	return strings.HasPrefix(word, "http://") || strings.HasPrefix(word, "https://") || strings.HasPrefix(word, "ssh://") || strings.HasPrefix(word, "git@")
}

// value adds the risks of a value.
func (r *risks) value(v Value) {
	switch {
	case isAddress(v.Text):
		host := v.Text
		if u, err := url.Parse(v.Text); err == nil && u.Host != "" {
			host = u.Host
		}
		r.add(Network, "uses the network: "+host)
		r.host(v.Text)
	case isFileKey(v.Key):
		r.file(v.Text)
	}
}

// host tells the name of a host in ASCII, as the network takes it, if it has other letters: a name that is wholly of another
// script can look like one that is known.
func (r *risks) host(word string) {
	if _, rest, ok := strings.Cut(word, "://"); ok {
		word = rest
	}
	word, _, _ = strings.Cut(word, "/")
	name := word[strings.LastIndexByte(word, '@')+1:]
	name, _, _ = strings.Cut(name, ":")
	if strings.IndexFunc(name, func(c rune) bool { return c > unicode.MaxASCII }) < 0 || !strings.ContainsAny(name, ".。．｡") {
		return
	}
	ascii, err := idna.Lookup.ToASCII(name)
	if err != nil {
		ascii = "no host has it"
	}
	r.add(Network, "a host's name with letters that are not ASCII: "+ascii)
}

// file adds the risk of a file outside the folder.
func (r *risks) file(name string) {
	if name != "" && r.folder != "" && !r.isInside(name) {
		r.add(Outside, "outside the folder: "+name)
	}
}

// path is file for a word that may be no path.
func (r *risks) path(word string) {
	if strings.HasPrefix(word, "/dev/") {
		return
	}
	if path.IsAbs(word) || strings.HasPrefix(word, "~") || word == ".." || strings.HasPrefix(word, "../") || strings.Contains(word, "/../") {
		r.file(word)
	}
}

// isInside reports whether a path is in the folder, as its text tells.
func (r *risks) isInside(name string) bool {
	if strings.HasPrefix(name, "~") {
		return false
	}
	if !path.IsAbs(name) {
		name = r.folder + "/" + name
	}
	name = path.Clean(name)
	return name == r.folder || strings.HasPrefix(name, strings.TrimSuffix(r.folder, "/")+"/")
}
