package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/actors/view"
	"parley/cmd/parley/shell"
	"parley/cmd/parley/terminal"
	"parley/gateway/api"
)

// finished is the status of an agent that has nothing more to do.
type finished struct {
	AgentID string `json:"agentId"`
	view.Finish
}

// maxWait is the longest wait of one call. A longer wait is made of several, so that a node that went away is
// noticed.
const maxWait = 25 * time.Second

// exitStatus ends the program with an exit code and prints nothing.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// exit returns the error with the exit code for an agent's status.
func (f finished) exit() error {
	switch f.Status {
	case view.FinishError:
		return exitStatus(exitAgentFailed)
	case view.FinishPermission:
		return exitStatus(exitPermission)
	case view.FinishTimeout:
		return parley.Refuse(parley.Timeout, "%q still has something to do", f.called()).WithHint("it goes on; parley wait %s waits again", shell.Word(f.called()))
	}
	return nil
}

func (f finished) called() string {
	for _, name := range []string{f.Final.Name, f.Final.Title} {
		if name != "" {
			return name
		}
	}
	return f.AgentID
}

func (f finished) line() string {
	words := terminal.Visible(f.called()) + ": " + f.Status
	if f.Final.Error != "" {
		words += ": " + terminal.Visible(f.Final.Error)
	}
	for _, w := range f.Final.Pending {
		words += fmt.Sprintf("\n  asks for permission: %s %s", terminal.Visible(w.Tool), terminal.Visible(w.Input))
	}
	if n := f.Final.More; n > 0 {
		words += fmt.Sprintf("\n  asks for permission for %d earlier calls", n)
	}
	return words
}

func waitCommand(env *environment) *cobra.Command {
	var (
		timeout duration
		any     bool
	)
	c := &cobra.Command{
		Use:   "wait AGENT…",
		Short: "Wait until agents are idle",
		Long: `Waits until agents are idle, in error or wait for permission: at once if they are. The exit status is 0 for idle,
6 for error, 7 for permission and 4 when the timeout has passed; of several agents, that of the first that is not idle.`,
		Example: "  parley wait fae --timeout 10m\n  parley wait builder tester --any",
	}
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage(c, "missing: AGENT")
		}
		return nil
	}
	c.Flags().Var(&timeout, "timeout", "wait so `long` at most")
	c.Flags().BoolVar(&any, "any", false, "wait for the first of them only")
	c.ValidArgsFunction = completeFlag(env, api.CompleteNames)
	c.RunE = func(c *cobra.Command, args []string) error {
		done, err := waitForAll(c.Context(), env, args, time.Duration(timeout), any)
		if err != nil {
			return err
		}
		if err := printFinished(env, done, len(args) > 1 && !any); err != nil {
			return err
		}
		for _, f := range done {
			if err := f.exit(); err != nil {
				return err
			}
		}
		return nil
	}
	return c
}

func printFinished(env *environment, done []finished, several bool) error {
	var doc any = done
	if !several {
		doc = done[0]
	}
	return env.print(doc, func() string {
		lines := make([]string, len(done))
		for i, f := range done {
			lines[i] = f.line()
		}
		return strings.Join(lines, "\n")
	})
}

// waitForAll waits for several agents at once: for all of them, or for the first that finishes.
func waitForAll(ctx context.Context, env *environment, agents []string, timeout time.Duration, any bool) ([]finished, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type ended struct {
		at int
		f  finished
		error
	}
	ends := make(chan ended, len(agents))
	for i, a := range agents {
		go func() {
			f, err := waitFor(ctx, env, a, timeout)
			ends <- ended{i, f, err}
		}()
	}
	done := make([]finished, len(agents))
	for range agents {
		e := <-ends
		if e.error != nil {
			return nil, e.error
		}
		if any {
			return []finished{e.f}, nil
		}
		done[e.at] = e.f
	}
	return done, nil
}

// waitFor waits until an agent has finished or a timeout has passed. A timeout of 0 is none. It continues through
// restarts of the node.
func waitFor(ctx context.Context, env *environment, agent string, timeout time.Duration) (finished, error) {
	waiter := env.waiter(false)
	defer waiter.Close()
	for end := time.Now().Add(timeout); ; {
		wait := maxWait
		if timeout > 0 {
			wait = min(wait, time.Until(end))
		}
		req := api.WaitForFinishRequest{Acting: env.acting(), AgentID: agent, TimeoutMs: max(wait.Milliseconds(), 1)}
		finish, err := api.WaitForFinish.Do(ctx, waiter, req)
		if err != nil {
			return finished{}, err
		}
		f := finished{Finish: finish, AgentID: finish.Final.ID.String()}
		if f.Status != view.FinishTimeout || timeout > 0 && !time.Now().Before(end) {
			return f, nil
		}
		agent = f.AgentID // its name may be another agent's by the next call
	}
}

// asExit returns the exit code of an exitStatus.
func asExit(err error) (int, bool) {
	e, ok := errors.AsType[exitStatus](err)
	return int(e), ok
}
