package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/cmd/parley/hook"
	"parley/cmd/parley/terminal"
)

func (p *program) hookCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "hook",
		Short: "Answer a coding agent's permission requests",
		Long: `Is run by a coding agent when it would ask for permission: reads the request on standard input, raises it as
an approval, waits, and prints the decision as that agent reads it. "parley setup" enters it in the agent's settings.`,
		Example: "  parley hook claude-code < request.json\n  parley setup claude-code --print",
		Args:    p.exactly(),
		RunE:    func(c *cobra.Command, _ []string) error { return usage(c, "missing: claude-code or codex") },
	}
	for _, agent := range hook.Agents() {
		c.AddCommand(p.hookOf(agent))
	}
	return c
}

func (p *program) hookOf(agent hook.Agent) *cobra.Command {
	var waitAnyway bool
	timeout := duration(hook.Wait)
	c := &cobra.Command{
		Use:   agent.Name,
		Short: "Answer a permission request of " + agent.Title,
		Long: fmt.Sprintf(`Reads a permission request of %s on standard input and prints the decision.

The one who asks is the agent given by --as, else a guest of the host's, made when it is first needed: one for each
folder that %s works in, so that what is always allowed in one is asked again in another.

Where no node runs, nobody follows the inbox, the request cannot be read or shown in full, or the time is up, nothing
is decided: %s asks at its own prompt. A line on standard error says why, and the exit status is 0 all the same.`,
			agent.Title, agent.Title, agent.Title),
		Args: p.exactly(),
	}
	c.Flags().Var(&timeout, "timeout", "wait so `long` at most; less than the hook itself is given")
	c.Flags().BoolVar(&waitAnyway, "wait-anyway", false, "ask also where nobody follows the inbox")
	c.RunE = func(c *cobra.Command, _ []string) error {
		response, d := agent.Run(c.Context(), p.stdin, hook.Options{
			As: p.options.as, Timeout: time.Duration(timeout), WaitAnyway: waitAnyway, Client: p.clientOf, Env: p.env,
		})
		if !d.Decided {
			fmt.Fprintf(p.stderr, "parley: %s\n", terminal.Visible(d.Reason))
		}
		if response == nil {
			return nil
		}
		return p.sayJSON(response)
	}
	return c
}

// isHook reports whether a command is one that a coding agent runs.
func isHook(c *cobra.Command) bool {
	return c != nil && strings.HasPrefix(c.CommandPath()+" ", "parley hook ")
}
