package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/shell"
	"parley/cmd/parley/terminal"
	"parley/gateway/api"
)

func runCommand(env *environment) *cobra.Command {
	var (
		req     api.RunAgentRequest
		labels  []string
		limit   duration
		timeout duration
		prompt  string
		detach  bool
		wrap    string
	)
	c := &cobra.Command{
		Use:   "run [flags] -- COMMAND …",
		Short: "Make an agent that runs a program",
		Long: `Makes an agent that runs a program for every message that it gets, which the caller then holds under a name. The
program begins at once, and its output is shown until it ends; with --prompt it has that as its first message. With the
runtime exec both sides write one JSON object a line; with acp they speak the Agent Client Protocol.`,
		Example: `  parley run --title builder -- ./agent.py
  parley run --runtime acp --prompt 'make the tests pass' -- some-coding-agent --acp
  parley run --detach --keep --label team=web -- ./serve.sh`,
	}
	f := c.Flags()
	f.SetInterspersed(false)
	f.StringVar(&req.Name, "name", "", "the `name` to hold it under (default: after the command)")
	f.StringVar(&req.Title, "title", "", "a `title` for people")
	f.StringArrayVar(&labels, "label", nil, "a label as `key=value`; may be repeated")
	f.StringVar(&req.Runtime, "runtime", "exec", "how to talk to it: `exec or acp`")
	f.StringVar(&req.Folder, "folder", "", "the `folder` that it runs in (default: this one)")
	f.StringArrayVar(&req.Environment, "set", nil, "a variable of its environment as `NAME=value`, which is stored as it is; may be repeated")
	f.StringSliceVar(&req.Inherit, "env", nil, "`names` of variables that it gets from the node's environment at each start; what they hold is not stored")
	f.StringVar(&req.User, "user", "", "the system's `user` that it runs as, on a node that may do that (default: the node's)")
	f.StringVar(&wrap, "wrap", "", "a `command` that it is wrapped in, as 'bwrap --ro-bind / / --dev /dev'")
	f.BoolVar(&req.Keep, "keep", false, "one process serves one message after the other")
	f.Var(&limit, "run-time", "how `long` a run may take, in whole seconds (default: as long as it takes)")
	f.StringSliceVar(&req.Access, "access", nil, "what it may do through the node without asking: `read,write,terminal`")
	f.StringVar(&req.Policy, "policy", "", "what becomes of calls that need permission: `always, on-miss, never or deny`")
	f.StringVar(&prompt, "prompt", "", "its first message, in `words`")
	f.BoolVar(&detach, "detach", false, "return once it is made")
	f.Var(&timeout, "timeout", "wait so `long` at most; the agent goes on")
	completeFlagOf(c, "runtime", "exec", "acp")
	completeFlagOf(c, "policy", policies()...)
	completeFlagOf(c, "access", "read", "write", "terminal")
	_ = c.MarkFlagDirname("folder") // the flag exists
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage(c, "missing: COMMAND")
		}
		return nil
	}
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		if req.Labels, err = parseLabels(c, labels); err != nil {
			return err
		}
		if req.Wrap, err = shell.Split(wrap); err != nil {
			return err
		}
		if req.Folder, err = absoluteFolder(env, req.Folder); err != nil {
			return err
		}
		req.Acting, req.Command, req.Wait = env.acting(), args, prompt != ""
		req.Seconds = uint64(math.Ceil(time.Duration(limit).Seconds()))
		return runAgent(c.Context(), env, req, prompt, detach, time.Duration(timeout))
	}
	return c
}

// absoluteFolder returns the absolute path of the folder for a program. The node, behind a socket of this machine,
// sees the same folder.
func absoluteFolder(env *environment, given string) (string, error) {
	folder, err := filepath.Abs(given)
	if err != nil {
		return "", err
	}
	if about, err := os.Stat(folder); err != nil {
		return "", parley.Refuse(parley.InvalidArgument, "no folder %s: %v", folder, terminal.Reason(err))
	} else if !about.IsDir() {
		return "", parley.Refuse(parley.InvalidArgument, "%s is no folder", folder)
	}
	return folder, nil
}

// runAgent makes the agent, sends its first message, and prints its output.
func runAgent(ctx context.Context, env *environment, req api.RunAgentRequest, prompt string, detach bool, timeout time.Duration) error {
	made, err := api.RunAgent.Do(ctx, env, req)
	if err != nil {
		return err
	}
	if prompt != "" {
		if _, err := sendPrompt(ctx, env, made.Agent.String(), prompt, ""); err != nil {
			return err
		}
	}
	if detach {
		doc := struct {
			AgentID capabilities.ID `json:"agentId"`
			Name    string          `json:"name"`
		}{made.Agent, made.Name}
		return env.print(doc, made.Agent.String)
	}
	return watchAgent(ctx, env, made.Agent, showOutput(env, 0), timeout)
}

func promptCommand(env *environment) *cobra.Command {
	var (
		noWait  bool
		key     string
		timeout duration
	)
	c := &cobra.Command{
		Use:   "prompt AGENT TEXT",
		Short: "Give an agent a prompt",
		Long: `Sends an agent a message to work on, in plain words. It is accepted when it is on disk and the agent, if it has a
program, runs; then what it puts out for the message is shown until it has nothing more to do. A message to an agent that
runs already waits for its turn. The exit status is that of parley wait, and so is what is said as JSON.`,
		Example:           "  parley prompt builder 'make the tests pass'\n  parley prompt builder 'and now the docs' --no-wait",
		Args:              exactly("AGENT", "TEXT"),
		ValidArgsFunction: completeArguments(env, api.CompleteNames),
	}
	f := c.Flags()
	f.BoolVar(&noWait, "no-wait", false, "return once it is accepted")
	f.StringVar(&key, "key", "", "idempotency `key`: the same key is the same message")
	f.Var(&timeout, "timeout", "wait so `long` at most; the agent goes on")
	c.RunE = func(c *cobra.Command, args []string) error {
		ctx := c.Context()
		if noWait {
			sent, err := sendPrompt(ctx, env, args[0], args[1], key)
			if err != nil {
				return err
			}
			return env.print(sent, sent.Message.String)
		}
		end, err := outputEnd(ctx, env, args[0], 0)
		if err != nil && parley.CodeOf(err) != parley.NotPermitted { // sending needs no access to the output
			return err
		}
		sent, err := sendPrompt(ctx, env, args[0], args[1], key)
		if err != nil {
			return err
		}
		s := showOutput(env, end.Cursor)
		s.message = sent.Message
		return watchAgent(ctx, env, sent.AgentID, s, time.Duration(timeout))
	}
	return c
}

// sentMessage is an accepted message.
type sentMessage struct {
	AgentID  capabilities.ID `json:"agentId"`
	Message  capabilities.ID `json:"message"`
	Accepted bool            `json:"accepted"`
	Queued   bool            `json:"queued"`
}

// sendPrompt sends an agent a message to work on.
func sendPrompt(ctx context.Context, env *environment, agent, text, key string) (sentMessage, error) {
	req := api.SendAgentMessageRequest{Acting: env.acting(), AgentID: agent, Text: text, MessageID: key}
	got, err := api.SendAgentMessage.Do(ctx, env, req)
	if err != nil {
		return sentMessage{}, err
	}
	if got.Error != nil {
		return sentMessage{}, got.Error
	}
	return sentMessage{AgentID: got.AgentID, Message: got.Message, Accepted: got.Accepted, Queued: got.Queued}, nil
}

// watchAgent prints an agent's output until it has nothing more to do, and then its status. All output before that is
// stored by then, so that the rest can be read.
func watchAgent(ctx context.Context, env *environment, agent capabilities.ID, s *shownOutput, timeout time.Duration) error {
	id := agent.String()
	showing, stop := context.WithCancel(ctx)
	defer stop()
	shown := make(chan error, 1)
	unshown := env.options.json || env.options.quiet
	if unshown {
		shown <- nil
	} else {
		go func() { shown <- s.follow(showing, id) }()
	}
	f, err := waitFor(ctx, env, id, timeout)
	stop()
	<-shown // rest reports the same error
	switch {
	case ctx.Err() != nil:
		return &interrupted{message: "the agent goes on", hint: fmt.Sprintf("parley attach %[1]s%[2]s shows it again, parley interrupt %[1]s%[2]s ends its run", id, env.asFlag())}
	case err != nil:
		return err
	case !unshown:
		if err := s.rest(ctx, id); err != nil && parley.CodeOf(err) != parley.NotPermitted { // sending needs no access to the output
			return err
		}
	}
	return printWatched(env, f)
}

// printWatched prints the status of a watched agent. Standard output has only the agent's output, or only its ID.
func printWatched(env *environment, f finished) error {
	switch {
	case env.options.json, env.options.quiet:
		if err := env.print(f, f.line); err != nil {
			return err
		}
	case f.Status != view.FinishIdle && f.Status != view.FinishTimeout:
		fmt.Fprintln(env.stderr, f.line())
		if f.Status == view.FinishPermission {
			fmt.Fprintf(env.stderr, "hint: parley permit allow %[1]s%[2]s, or: parley permit deny %[1]s%[2]s\n", shell.Word(terminal.Visible(f.called())), env.asFlag())
		}
	}
	return f.exit()
}

// attachedTail is the number of earlier lines with which attach begins.
const attachedTail = 20

func attachCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "attach AGENT",
		Short: "Attach to an agent: show its output and send it what is typed",
		Long: `Shows what an agent's program puts out, and sends each line of standard input to it as a message. It ends with
the keyboard's interrupt, or when the input has ended and the agent has nothing more to do: then the exit status is that
of parley wait.`,
		Example:           "  parley attach builder\n  echo 'make the tests pass' | parley attach builder",
		Args:              exactly("AGENT"),
		ValidArgsFunction: completeArguments(env, api.CompleteNames),
		RunE: func(c *cobra.Command, args []string) error {
			snap, err := fetchAgent(env, c, args[0])
			if err != nil {
				return err
			}
			return attachTo(c.Context(), env, snap.ID.String())
		},
	}
}

func attachTo(ctx context.Context, env *environment, agent string) error {
	s := showOutput(env, 0)
	if err := s.tail(ctx, agent, attachedTail); err != nil {
		return err
	}
	showing, stop := context.WithCancel(ctx)
	defer stop()
	shown := make(chan error, 1)
	go func() { shown <- s.follow(showing, agent) }()
	sent := make(chan error, 1)
	go func() { sent <- sendLines(ctx, env, agent) }() // it may outlast this function: nothing ends a read of the keyboard
	select {
	case err := <-sent:
		if err != nil {
			return err
		}
	case err := <-shown:
		return detachedError(ctx, err)
	}
	f, err := waitFor(ctx, env, agent, 0)
	stop()
	<-shown
	if err == nil {
		err = s.rest(ctx, agent)
	}
	if err != nil {
		return detachedError(ctx, err)
	}
	return printWatched(env, f)
}

// detachedError returns the error of attach while the agent continues.
func detachedError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &interrupted{} // the way to end it
	}
	return err
}

// sendLines sends the lines of standard input to an agent.
func sendLines(ctx context.Context, env *environment, agent string) error {
	lines := bufio.NewScanner(env.stdin)
	lines.Buffer(nil, maxInput)
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		if _, err := sendPrompt(ctx, env, agent, lines.Text(), ""); err != nil {
			return err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return terminal.TooLong("a line", maxInput)
	}
	return lines.Err()
}
