package risk

import (
	"path"
	"slices"
	"strings"
)

// place is a folder against which paths are read.
type place struct {
	folder string // of the call, an absolute path; "" if that is not known
	now    string // in which a command runs, after those that change it: an absolute path, or one that begins with "~" or unknown
}

// unknown stands in a word for a part that is known only as the command runs.
const unknown = "\x00"

// whole returns a path from the root, or one that begins with "~" or unknown.
func (p place) whole(name string) string {
	switch {
	case name == "~" || strings.HasPrefix(name, "~/"):
		return strings.TrimSuffix("~"+path.Clean("/"+strings.TrimPrefix(name, "~")), "/")
	case strings.HasPrefix(name, "~"), strings.HasPrefix(name, unknown):
		return name
	case path.IsAbs(name):
		return path.Clean(name)
	case strings.HasPrefix(p.now, "~"):
		rest := path.Clean("/h/" + strings.TrimPrefix(p.now, "~") + "/" + name)
		if in, ok := strings.CutPrefix(rest, "/h"); ok && (in == "" || in[0] == '/') {
			return "~" + in
		}
		return rest
	case p.now == "" || strings.HasPrefix(p.now, unknown):
		if clean := path.Clean(name); p.now == "" && clean != ".." && !strings.HasPrefix(clean, "../") {
			if clean == "." {
				return ""
			}
			return clean
		}
		return unknown
	}
	return path.Clean(p.now + "/" + name)
}

// reach is where a path leads.
type reach uint8

const (
	inside  reach = iota // the folder of the call
	outside              // it, or it is not known whether
	root                 // all of the disk, or of a home
)

// reachOf returns where a path leads, as its text tells.
func (p place) reachOf(name string) reach {
	whole := p.whole(name)
	switch base := strings.TrimRight(whole, "/*."); {
	case base == "" && path.IsAbs(whole), base == "~", isTop(base):
		return root
	case strings.Contains(whole, unknown), strings.HasPrefix(whole, "~"):
		return outside
	case !path.IsAbs(whole):
		return inside // of a folder that is not known
	case p.folder == "":
		return outside
	}
	folder := path.Clean(p.folder)
	if whole == folder || folder == "/" || strings.HasPrefix(whole, strings.TrimSuffix(folder, "/")+"/") {
		return inside
	}
	if strings.HasPrefix(folder, strings.TrimSuffix(whole, "/*")+"/") {
		return root // it has the folder itself in it
	}
	return outside
}

// isTop reports whether a path is one of the folders in which a system or all its users are.
func isTop(name string) bool {
	return slices.Contains([]string{"/etc", "/usr", "/var", "/bin", "/sbin", "/lib", "/lib64", "/boot", "/home", "/root", "/opt", "/System", "/Library", "/Users", "/Applications", "/private", "/dev"}, name)
}

// isProgramFolder reports whether a program is where a system has its programs.
func isProgramFolder(name string) bool {
	dir := path.Dir(name)
	return slices.Contains([]string{"/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/opt/homebrew/bin", "/snap/bin"}, dir)
}

// isQuietDevice reports whether a path is of a device that keeps nothing.
func isQuietDevice(name string) bool {
	return slices.Contains([]string{"/dev/null", "/dev/zero", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/urandom", "/dev/random", "/dev/full"}, name) ||
		strings.HasPrefix(name, "/dev/fd/")
}

// isDisk reports whether a path is of a device with more than that.
func isDisk(name string) bool {
	return strings.HasPrefix(name, "/dev/") && !isQuietDevice(name) && !strings.HasPrefix(name, "/dev/pts/") && !strings.HasPrefix(name, "/dev/shm/") && name != "/dev/shm"
}

// isSecret reports whether a file has private keys or the like, whoever reads it.
func isSecret(whole string) bool {
	base := path.Base(whole)
	switch {
	case strings.HasSuffix(base, ".pub"), base == "known_hosts", base == "authorized_keys":
		return false
	case strings.Contains(whole, "/.ssh/"), strings.HasSuffix(whole, "/.ssh"), strings.Contains(whole, "/.gnupg"), strings.Contains(whole, "/.aws/"), strings.Contains(whole, "/.password-store"):
		return true
	case strings.HasPrefix(base, "id_rsa"), strings.HasPrefix(base, "id_ed25519"), strings.HasPrefix(base, "id_ecdsa"), strings.HasSuffix(base, ".pem"), strings.HasSuffix(base, ".key"), strings.HasSuffix(base, ".p12"), strings.HasSuffix(base, ".pfx"), strings.HasSuffix(base, ".keychain-db"):
		return true
	case base == ".netrc", base == ".pgpass", base == ".git-credentials", base == "shadow" && strings.HasSuffix(whole, "/etc/shadow"), base == "node.key":
		return true
	}
	return strings.HasSuffix(whole, "/.kube/config") || strings.HasSuffix(whole, "/.docker/config.json") || strings.HasSuffix(whole, "/.config/gh/hosts.yml") || strings.HasSuffix(whole, "application_default_credentials.json")
}

// isEnvironment reports whether a file has the settings of a project with its secrets.
func isEnvironment(whole string) bool {
	base := path.Base(whole)
	return (base == ".env" || strings.HasPrefix(base, ".env.") && !slices.Contains([]string{".env.example", ".env.sample", ".env.template"}, base)) || base == ".npmrc" || base == ".pypirc"
}

// startup returns what a file that is written has happen later, as a mark and a phrase; "" for any other file.
func startup(whole string) (mark, phrase string) {
	base := path.Base(whole)
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(whole, p) })
	}
	home := strings.HasPrefix(whole, "~") || strings.HasPrefix(whole, "/home/") || strings.HasPrefix(whole, "/root/") || strings.HasPrefix(whole, "/Users/")
	switch {
	case has("/.git/hooks/") || strings.HasSuffix(whole, "/.git/hooks") || strings.HasPrefix(whole, ".git/hooks") || has("/.husky/") || strings.HasPrefix(whole, ".husky/"):
		return "Runs in git", "git runs it at the next commit, push or the like"
	case strings.HasSuffix(whole, ".git/config") || base == ".gitconfig" || has("/.config/git/"):
		return "Runs in git", "git can be told to run programs by it"
	case has("/.ssh/") || strings.HasSuffix(whole, "/.ssh") || has("/etc/ssh/"):
		return "Changes access", "it says who may sign in, and how"
	case has("/etc/sudoers", "/etc/passwd", "/etc/shadow", "/etc/pam.d", "/etc/group"):
		return "Changes access", "it says who may do what on this computer"
	case has("/etc/cron", "/var/spool/cron", "/systemd/", "/LaunchAgents", "/LaunchDaemons", "/etc/init.d", "/etc/rc.", "/.config/autostart", "/etc/profile.d", "/etc/ld.so"):
		return "Runs later", "it is run by itself later"
	case home && slices.Contains([]string{".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".kshrc", ".cshrc", ".tcshrc", ".xinitrc", ".xprofile", ".inputrc", ".vimrc", ".emacs", "config.fish", ".pam_environment"}, base),
		has("/.config/fish/"), slices.Contains([]string{"/etc/profile", "/etc/bash.bashrc", "/etc/zshrc", "/etc/environment"}, whole):
		return "Runs at login", "each new shell runs it"
	}
	return "", ""
}

// use is what a call does with a file.
type use uint8

const (
	reads  use = iota
	writes     // also deletes
	either     // it is not known which
)

// names adds what it means that a call uses a file.
func (l *list) names(p place, name string, how use, from, to int) {
	if name == "" || isQuietDevice(name) {
		return
	}
	whole := p.whole(name)
	if isDisk(whole) {
		level, text := Notable, "Reads the device "+shown(name)+"."
		if how != reads {
			level, text = High, "Writes to the device "+shown(name)+": what is on it is lost."
		}
		l.add(Finding{level, "Full disk access", text, from, to})
		return
	}
	switch {
	case how == writes:
	case isSecret(whole):
		l.add(Finding{High, "Private keys", "Reads " + shown(name) + ", which has keys or passwords.", from, to})
	case isEnvironment(whole):
		l.add(Finding{Notable, "Reads secrets", "Reads " + shown(name) + ", which may have passwords.", from, to})
	}
	if mark, phrase := startup(whole); mark != "" && how != reads {
		l.add(Finding{High, mark, "Changes " + shown(name) + ": " + phrase + ".", from, to})
		return
	}
	if p.reachOf(name) != inside {
		said := "Uses " + shown(name) + ", outside the folder."
		if how == writes {
			said = "Changes " + shown(name) + ", outside the folder."
		}
		l.add(Finding{Notable, "Outside folder", said, from, to})
	}
}

// shown returns a word with parts that are not known as an ellipsis.
func shown(word string) string { return short(strings.ReplaceAll(word, unknown, "…")) }
