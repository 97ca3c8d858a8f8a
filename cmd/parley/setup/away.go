package setup

import (
	"slices"
	"strings"

	"parley/cmd/parley/hook"
)

// WhenAway says what a hook of a coding agent does about a call where nobody can be asked: where no node runs, or nobody
// follows the inbox. That of "" is the default.
func WhenAway(agent hook.Agent, away hook.Away) string {
	switch {
	case isOneFile(agent) && away == hook.Mode:
		return "the call runs"
	case away == hook.Deny, isOneFile(agent):
		return "the call is denied, and the model reads why"
	case agent.Name == hook.OpenCode().Name:
		return "OpenCode asks at its own prompt; opencode run has none, and rejects the call"
	case agent.Name == hook.Codex().Name: // it calls the hook where it would ask, in any mode
		return "Codex asks at its own prompt"
	case away == hook.Ask:
		return "Claude Code asks at its own prompt; with -p there is none, and it denies"
	case away == hook.Mode:
		return "the call runs if Claude Code's mode and rules allow it"
	case away == hook.Defer:
		return "with -p the run ends, and can be resumed"
	}
	return "Claude Code asks at its own prompt in a terminal, and the call is denied with -p"
}

// whenAway says what the hooks of the agent do where nobody can be asked, each choice once, and whether one of them lets
// calls run then.
func (s settings) whenAway(own []ownHook) (words string, runs bool) {
	var all []string
	for _, h := range own {
		if !h.asks() {
			continue
		}
		away := hook.Away(flagOf(h.args, "--when-away"))
		runs = runs || away == hook.Mode && s.agent.Name == hook.ClaudeCode().Name
		if said := WhenAway(s.agent, away); !slices.Contains(all, said) {
			all = append(all, said)
		}
	}
	return ". Where no node runs, or nobody follows the inbox: " + strings.Join(all, ", or "), runs
}

// flagOf returns the value of a flag among arguments, "" without it. The last one holds.
func flagOf(args []string, name string) (value string) {
	for i, arg := range args {
		if set, ok := strings.CutPrefix(arg, name+"="); ok {
			value = set
		} else if arg == name && i+1 < len(args) {
			value = args[i+1]
		}
	}
	return value
}
