package runtime

import (
	"os"
	"slices"
	"strings"
)

// ordinary returns the names of the variables that every program gets from its node's environment. A name that ends in *
// means all that begin so. None of them carries authority: no token, no key, no path of a socket.
func ordinary() []string {
	return []string{
		"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR", "TERM",
		"SystemRoot", "ComSpec", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "APPDATA", "LOCALAPPDATA", // on Windows
	}
}

// own is the beginning of the node's own variables, which no * passes on.
const own = "PARLEY_"

// environment returns the environment of a program: of the node's what names allow, then the program's own. Of two variables
// of one name the last counts.
func environment(names []string, more ...string) []string {
	var env []string
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); passes(names, name) {
			env = append(env, v)
		}
	}
	return append(env, more...)
}

// passes reports whether a list of names has a variable.
func passes(names []string, variable string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		begin, many := strings.CutSuffix(name, "*")
		if !many {
			return name == variable
		}
		return strings.HasPrefix(variable, begin) && !strings.HasPrefix(variable, own)
	})
}
