package main

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/capabilities"
	"parley/cmd/parley/shell"
	"parley/cmd/parley/terminal"
	"parley/gateway/api"
)

func (p *program) runCommand() *cobra.Command {
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
		if req.Folder, err = p.folder(req.Folder); err != nil {
			return err
		}
		req.Acting, req.Command, req.Wait = p.acting(), args, prompt != ""
		req.Seconds = uint64(math.Ceil(time.Duration(limit).Seconds()))
		return p.runAgent(c.Context(), req, prompt, detach, time.Duration(timeout))
	}
	return c
}

// folder gives the absolute path of the folder that a program is to run in. The node, on whose socket this is, sees the
// same one.
func (p *program) folder(given string) (string, error) {
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

// runAgent makes the agent, gives it its first message, and shows what comes of it.
func (p *program) runAgent(ctx context.Context, req api.RunAgentRequest, prompt string, detach bool, timeout time.Duration) error {
	var made api.MakeAgentResponse
	if err := p.call(ctx, "run_agent", req, &made); err != nil {
		return err
	}
	if prompt != "" {
		if _, err := p.sendPrompt(ctx, made.Agent.String(), prompt, ""); err != nil {
			return err
		}
	}
	if detach {
		doc := struct {
			AgentID capabilities.ID `json:"agentId"`
			Name    string          `json:"name"`
		}{made.Agent, made.Name}
		return p.say(doc, made.Agent.String)
	}
	return p.watch(ctx, made.Agent, p.showing(0), timeout)
}
