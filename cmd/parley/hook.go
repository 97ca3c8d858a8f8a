package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/cmd/parley/hook"
	"parley/cmd/parley/proc"
	"parley/cmd/parley/terminal"
	"parley/gateway/api"
	"parley/gateway/client"
	"parley/gateway/mcp"
)

// exitWakes is the exit code with which a hook that waits for no call wakes its agent. With any other event it would block: a
// hook that fails has another.
const exitWakes = 2

// wakesAgent is the error of a hook that ends with that.
type wakesAgent struct{ exitStatus }

// Unwrap returns the exit status.
func (w wakesAgent) Unwrap() error { return w.exitStatus }

// hookName is the command that coding agents run for each call.
const hookName = "hook"

func hookCommand(env *environment) *cobra.Command {
	c := &cobra.Command{
		Use:   hookName,
		Short: "Answer a coding agent's permission requests",
		Long: `Is run by a coding agent when it would ask for permission: reads the request on standard input, raises it as
an approval, waits, and prints the decision as that agent reads it. The approval is withdrawn when the one who asks
goes away, or the agent says that the call was decided elsewhere. "parley setup" enters it in the agent's settings.`,
		Example: "  parley hook claude-code < request.json\n  parley setup claude-code --print",
	}
	for _, agent := range hook.Agents() {
		c.AddCommand(hookAgentCommand(env, agent))
	}
	return c
}

func hookAgentCommand(env *environment, agent hook.Agent) *cobra.Command {
	var (
		waitAnyway, skipAsked, leases bool
		whenAway                      string
	)
	timeout := duration(agent.Waits())
	others := ""
	if _, err := agent.ReadAway(string(hook.Defer)); err == nil {
		others = `,
or "defer" until a session without a terminal is resumed`
	}
	c := &cobra.Command{
		Use:   agent.Name,
		Short: "Answer a permission request of " + agent.Title,
		Long: fmt.Sprintf(`Reads a permission request of %s on standard input and prints the decision.

The one who asks is the guest given by --as, else a guest of the host's, made when it is first needed: one for each
folder that %s works in, so that what is always allowed in one is asked again in another. From then on, what
the agent starts acts for that guest alone on the node's socket, and decides nothing.

Where no node runs, nobody follows the inbox, or the time is up, --when-away says what happens to the call: "ask" at the
prompt of %s, "deny", "mode" as its permission mode has it%s. By default it asks, and denies where there is no prompt.
A request that cannot be shown in full asks too, or is denied. A line on standard error says why, and the exit status is
0 all the same. It is not 0 only where nothing can be answered: the entry that setup makes denies the call then.
On PreToolUse a call without effect, and one that the agent's own settings allow, is left to it without a word.`,
			agent.Title, agent.Title, agent.Title, others),
		Args: exactly(),
	}
	c.Flags().Var(&timeout, "timeout", "wait so `long` at most; less than the hook itself is given")
	c.Flags().BoolVar(&waitAnyway, "wait-anyway", false, "ask also where nobody follows the inbox")
	c.Flags().BoolVar(&skipAsked, "skip-asked", false, "on PermissionRequest, ask only about calls that PreToolUse leaves")
	c.Flags().BoolVar(&leases, "leases", false, "on PreToolUse, deny only what another agent has leased")
	c.Flags().StringVar(&whenAway, "when-away", "", "`what` happens to a call where nobody decides")
	c.RunE = func(c *cobra.Command, _ []string) error {
		away, err := agent.ReadAway(whenAway)
		if err != nil {
			return usage(c, "--when-away: %s", terminal.Message(err))
		}
		token, _ := env.lookup(hook.ProbeVariable)
		switch {
		case token != "" && leases: // what is tried is the hook that asks
			return nil
		case token != "":
			if token == hook.ProbeDies {
				fmt.Fprintln(env.stderr, hook.ProbeDied)
				return dies()
			}
			agent.NoteProgram(c.Context(), hook.Options{Client: env.clientOf, Env: env.lookup, Dial: env.dial, Holder: env.options.state.nodeProcess})
			response, err := agent.RefuseProbe(env.stdin, hook.ProbeReason(token, string(env.options.state)))
			if err != nil || response == nil {
				return err
			}
			return env.printJSON(response)
		}
		ctx, cancel := context.WithCancel(c.Context())
		defer cancel()
		env.checkNode(agent)
		if out, ok := env.stdout.(*os.File); ok {
			var stop context.CancelFunc
			ctx, stop = hook.WhileRead(ctx, out)
			defer stop()
		}
		response, d, err := agent.Run(ctx, env.stdin, hook.Options{
			As: env.options.as, Timeout: time.Duration(timeout), WaitAnyway: waitAnyway, SkipAsked: skipAsked, LeasesOnly: leases, WhenAway: away, Client: env.clientOf, Env: env.lookup,
			Dial: env.dial, Holder: env.options.state.nodeProcess, Tools: mcp.ToolNames(), Unheard: env.options.state.in(api.UnheardFolder), Added: env.options.state.in(hook.AddedFolder),
		})
		if err != nil {
			return err
		}
		if (!d.Decided || d.Away) && d.Reason != "" {
			fmt.Fprintf(env.stderr, "parley: %s\n", terminal.Visible(d.Reason))
		}
		switch {
		case response == nil:
			return nil
		case response.Wake != "":
			fmt.Fprintln(env.stderr, terminal.Visible(response.Wake))
			return wakesAgent{exitStatus(exitWakes)}
		}
		return env.printJSON(response)
	}
	return c
}

// dies ends the process as a kill does.
func dies() error {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		return err
	}
	select {} // the signal ends it
}

// dial connects to the node's socket.
func (env *environment) dial(ctx context.Context) (net.Conn, error) {
	conn, err := client.Dial(ctx, env.options.state.socket())
	if err == nil && env.check != nil {
		if err = env.check(conn); err != nil {
			_ = conn.Close() // nothing was sent
			return nil, err
		}
	}
	return conn, err
}

// checkNode has all connections to the node looked at: what answers has to be the node, and nothing that the coding agent has started. A
// call that was allowed could otherwise put a program in the node's place, which allows all others.
func (env *environment) checkNode(agent hook.Agent) {
	named, name := agent.Process(env.lookup)
	env.check = func(conn net.Conn) error {
		pid := proc.Listener(conn)
		if pid == 0 {
			return nil
		}
		if err := env.options.state.checkHolder(pid); err != nil {
			return err
		}
		if proc.IsStartedBelowCoder(pid, named, name) {
			return parley.Refuse(parley.Timeout, "process %d answers on the node's socket, and a coding agent has started it", pid).
				WithHint("if it is the node: start it in a terminal of your own, with parley restart")
		}
		return nil
	}
}

// isHook reports whether a coding agent runs the command.
func isHook(c *cobra.Command) bool {
	return c != nil && strings.HasPrefix(c.CommandPath()+" ", "parley "+hookName+" ")
}
