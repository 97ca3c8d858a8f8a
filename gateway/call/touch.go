package call

import (
	"strings"

	"parley/gateway/call/risk"
)

// Touched are the files that a call with a command line changes, as its words name them: absolute paths, or "~/" and a path below the home
// folder, in which * and ? stand for what a shell puts there.
type Touched struct {
	Files []string // it writes
	Trees []string // it changes, with all below
	Maybe []string // it may change, with all below
}

// Touches returns what a call of a tool touches that is given a command line; nothing for any other call, which names its files in its
// input. The folder is the one that the call is made in.
func Touches(tool, input, folder string) (t Touched) {
	in, ok := membersOf(input)
	switch {
	case folder == "" || strings.HasPrefix(tool, "mcp__"):
		return t
	case !ok: // the tool may read it in another way
		return Touched{Maybe: []string{folder}}
	}
	line, _ := commandOf(in)
	if line == "" || isPatch(tool) {
		return t
	}
	touched, all := risk.Touches(line, risk.Parse(line), folder, startOf(in, folder))
	for _, one := range touched {
		switch {
		case one.Maybe:
			t.Maybe = append(t.Maybe, one.Path)
		case one.Below:
			t.Trees = append(t.Trees, one.Path)
		default:
			t.Files = append(t.Files, one.Path)
		}
	}
	if !all {
		t.Maybe = append(t.Maybe, folder)
	}
	return t
}

// isPatch reports whether a tool is given a patch where others have a command line.
func isPatch(tool string) bool { return tool == "apply_patch" || tool == "patch" }
