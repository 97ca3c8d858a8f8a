package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"parley"
)

// How long a hook waits, and what setup gives it. Both agents let a command hook run for ten minutes where nothing
// else is said, and drop what one says that took longer: the hook has to end before.
const (
	hookTimeout = 10 * time.Minute
	hookWait    = hookTimeout - 30*time.Second
)

// hooking is how a hook asks.
type hooking struct {
	timeout    duration
	waitAnyway bool
}

// ruling is what became of a call that a hook asked about. What is not decided is left to the coding agent's own
// prompt, and reason says why.
type ruling struct {
	decided, allowed bool
	reason           string
}

func undecided(format string, args ...any) ruling {
	return ruling{reason: fmt.Sprintf(format, args...)}
}

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
	for _, agent := range codingAgents() {
		c.AddCommand(p.hookOf(agent))
	}
	return c
}

func (p *program) hookOf(agent codingAgent) *cobra.Command {
	o := hooking{timeout: duration(hookWait)}
	c := &cobra.Command{
		Use:   agent.name,
		Short: "Answer a permission request of " + agent.title,
		Long: fmt.Sprintf(`Reads a permission request of %s on standard input and prints the decision.

The one who asks is the agent given by --as, else a guest of the host's, made when it is first needed: one for each
folder that %s works in, so that what is always allowed in one is asked again in another.

Where no node runs, nobody follows the inbox, the request cannot be read or shown in full, or the time is up, nothing
is decided: %s asks at its own prompt. A line on standard error says why, and the exit status is 0 all the same.`,
			agent.title, agent.title, agent.title),
		Args: p.exactly(),
	}
	c.Flags().Var(&o.timeout, "timeout", "wait so `long` at most; less than the hook itself is given")
	c.Flags().BoolVar(&o.waitAnyway, "wait-anyway", false, "ask also where nobody follows the inbox")
	c.RunE = func(c *cobra.Command, _ []string) error { return p.hook(c.Context(), agent, o) }
	return c
}

// isHook reports whether a command is one that a coding agent runs.
func isHook(c *cobra.Command) bool {
	return c != nil && strings.HasPrefix(c.CommandPath()+" ", "parley hook ")
}

// hook answers one request. It fails only where the answer cannot be printed.
func (p *program) hook(ctx context.Context, agent codingAgent, o hooking) (err error) {
	var call toolCall
	defer func() {
		if crash := recover(); crash != nil { // which would end the program with the status that denies
			err = p.sayRuling(agent, call, undecided("the hook crashed: %v", crash))
		}
	}()
	text, err := readAll(p.stdin, "the request")
	if err != nil {
		return p.sayRuling(agent, call, undecided("%s", messageOf(err)))
	}
	if call, err = readCall(text); err != nil {
		return p.sayRuling(agent, call, undecided("%s", messageOf(err)))
	}
	if agent.asksItself(call) {
		return p.sayRuling(agent, call, undecided("%s is a question to whoever works with it", visible(call.tool)))
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	return p.sayRuling(agent, call, p.ruleOn(ctx, agent, call, o))
}

// sayRuling prints what the agent reads, and on standard error why nothing was decided.
func (p *program) sayRuling(agent codingAgent, call toolCall, r ruling) error {
	if !r.decided {
		r.reason = fmt.Sprintf("%s; %s asks at its own prompt", r.reason, agent.title)
		fmt.Fprintf(p.stderr, "parley: %s\n", visible(r.reason))
	}
	answer := agent.answer(call.event, r)
	if answer == nil {
		return nil
	}
	return p.sayJSON(answer)
}

// messageOf is an error in words, without its code.
func messageOf(err error) string {
	if e, ok := errors.AsType[*parley.Error](err); ok {
		return e.Message
	}
	return err.Error()
}
