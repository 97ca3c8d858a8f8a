package main

import (
	"strings"

	"github.com/spf13/cobra"

	"parley/actors/view"
	"parley/cmd/parley/terminal"
	"parley/gateway/api"
)

func attentionCommand(env *environment) *cobra.Command {
	var (
		all                        bool
		quiet, zone, interruptions string
	)
	c := &cobra.Command{
		Use:   "attention",
		Short: "Set how mail reaches the sessions of a coding agent",
		Long: `Sets how mail reaches the sessions of a coding agent in a folder, for the folder's agent. Without flags, it shows what is set.

With --all-sessions each session is told of the mail for the folder's agent, and not only the one that was active last. In a time of quiet nothing
comes by itself, whatever its priority: mail waits until a person types a prompt, a session starts, or the time is over. --interruptions is the least
priority that comes between two calls of a turn; what comes at the end of a turn is normal and urgent. A client of MCP without hooks is told of its mail
at the end of results, but not in a time of quiet.`,
		Example: `  parley agent attention --as claude-code-shop-1f3c9a --quiet 22:00-07:00 --tz Europe/Berlin
  parley agent attention --as claude-code-shop-1f3c9a --all-sessions --interruptions none
  parley agent attention --as claude-code-shop-1f3c9a --quiet never`,
		Args: exactly(),
	}
	f := c.Flags()
	f.BoolVar(&all, "all-sessions", false, "tell each session of the mail for the folder's agent; =false: the one that was active last")
	f.StringVar(&quiet, "quiet", "", "when nothing comes by itself: `hours` of a day (22:00-07:00), always or never")
	f.StringVar(&zone, "tz", "", "the time `zone` of --quiet, as Europe/Berlin (default: the node's)")
	f.StringVar(&interruptions, "interruptions", "", "the least `priority` that comes in the middle of a turn: urgent, normal, low or none (default urgent)")
	notFromEnvironment(f, "quiet") // PARLEY_QUIET is the option of that name of all other commands
	c.RunE = func(c *cobra.Command, _ []string) error {
		change := api.SetAttentionRequest{Acting: env.acting()}
		changes := false
		for name, set := range map[string]func(){
			"all-sessions":  func() { change.AllSessions = &all },
			"quiet":         func() { change.Quiet = &quiet },
			"tz":            func() { change.Zone = &zone },
			"interruptions": func() { change.Interruptions = &interruptions },
		} {
			if c.Flags().Changed(name) {
				set()
				changes = true
			}
		}
		text := func(now view.Attention) string { return attentionText(now, env.screen()) }
		if changes {
			return perform(c.Context(), env, api.SetAttention, change, text)
		}
		return perform(c.Context(), env, api.GetAttention, api.GetAttentionRequest{Acting: env.acting()}, text)
	}
	return c
}

// attentionText returns what is set, a line each.
func attentionText(a view.Attention, s terminal.Screen) string {
	lines := []string{"mail for it: " + a.SessionWords(), "quiet: " + terminal.Visible(a.QuietWords()), "in the middle of a turn: " + a.InterruptionWords()}
	if a.IsQuiet {
		now := ", and so now"
		if a.QuietUntil != 0 {
			now += " until " + s.Moment(a.QuietUntil.Std(), a.QuietUntil.String())
		}
		lines[1] += now
	}
	return strings.Join(lines, "\n")
}
