package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"parley"
	"parley/cmd/parley/hook"
	"parley/cmd/parley/setup"
	"parley/cmd/parley/shell"
	"parley/cmd/parley/terminal"
	"parley/events"
	"parley/gateway/api"
)

func (p *program) setupCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "setup",
		Short:   "Enter Parley in a coding agent's settings",
		Long:    "Enters the permission hook and the MCP server in a coding agent's settings.",
		Example: "  parley setup claude-code --print\n  parley setup codex --project",
		Args:    p.exactly(),
		RunE:    func(c *cobra.Command, _ []string) error { return usage(c, "missing: claude-code or codex") },
	}
	for _, agent := range hook.Agents() {
		c.AddCommand(p.setupOf(agent))
	}
	return c
}

func (p *program) setupOf(agent hook.Agent) *cobra.Command {
	var printOnly, project, user bool
	c := &cobra.Command{
		Use:   agent.Name,
		Short: "Enter Parley in the settings of " + agent.Title,
		Long: fmt.Sprintf(`Enters the permission hook and the MCP server in the settings of %s: those of the person who runs it, or
with --project of the folder that this is run in. What is there stays, the file as it was is kept beside it with
%s at its end, and once entered nothing is changed again. A file that cannot be read is left alone.`, agent.Title, setup.BackupSuffix),
		Example: "  parley setup " + agent.Name + " --print",
		Args:    p.exactly(),
	}
	c.Flags().BoolVar(&printOnly, "print", false, "only show what would be entered, and where")
	c.Flags().BoolVar(&project, "project", false, "enter it for this folder")
	c.Flags().BoolVar(&user, "user", false, "enter it for whoever runs this (default)")
	c.MarkFlagsMutuallyExclusive("project", "user")
	c.RunE = func(c *cobra.Command, _ []string) error {
		o, err := p.setupOptions(project)
		if err != nil {
			return err
		}
		files, err := setup.Files(agent, o)
		if err != nil {
			return err
		}
		if !printOnly {
			if err := setup.Write(files); err != nil {
				return err
			}
			p.makeAsker(c.Context(), setup.Asker(agent, o))
		}
		return p.say(files, func() string { return setup.Text(files, printOnly) })
	}
	return c
}

func (p *program) setupOptions(project bool) (setup.Options, error) {
	here, err := os.Getwd()
	if err != nil {
		return setup.Options{}, fmt.Errorf("find this folder: %w", err)
	}
	home, ok := p.env("HOME")
	if !project && (!ok || !filepath.IsAbs(home)) {
		return setup.Options{}, parley.Refuse(parley.InvalidArgument, "there is no home folder to keep settings in").WithHint("use --project")
	}
	o := setup.Options{Project: project, Folder: here, Home: home, As: p.options.as, Env: p.env, Notes: p.stderr}
	if p.options.state != defaultState(p.env) {
		o.State = p.options.state
	}
	return o, nil
}

// makeAsker makes the agent for which the MCP server acts, or prints how to make it.
func (p *program) makeAsker(ctx context.Context, asker hook.Asker) {
	if p.options.as != "" {
		return
	}
	err := p.call(ctx, "make_agent", api.MakeAgentRequest{
		Kind: events.Guest, Name: asker.Name, Title: asker.Title, Labels: asker.Labels,
	}, nil)
	if err != nil && parley.CodeOf(err) != parley.NameTaken {
		fmt.Fprintf(p.stderr, "note: %s; once a node runs: parley mkguest %s\n", terminal.Visible(terminal.Message(err)), shell.Word(asker.Name))
	}
}
