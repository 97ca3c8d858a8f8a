package runtime

import (
	"os"
	"slices"
	"strings"
)

// ordinary returns the names of the variables of the node that every program gets. A name that ends in * stands for all
// names with that prefix. None of them gives authority: no token, no key, no path of a socket.
func ordinary() []string {
	return []string{
		"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR", "TERM",
		"SystemRoot", "ComSpec", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "APPDATA", "LOCALAPPDATA", // on Windows
	}
}

// own is the prefix of the node's own variables, which no * matches.
const own = "PARLEY_"

// environment returns the environment of a program: the node's variables that names allow, then the program's own.
// Of two variables with one name the last is valid.
func environment(names []string, more ...string) []string {
	var env []string
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); passes(names, name) {
			env = append(env, v)
		}
	}
	return append(env, more...)
}

// passes reports whether a list of names matches a variable.
func passes(names []string, variable string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		begin, many := strings.CutSuffix(name, "*")
		if !many {
			return name == variable
		}
		return strings.HasPrefix(variable, begin) && !strings.HasPrefix(variable, own)
	})
}
