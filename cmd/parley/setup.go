//go:build !client

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"parley"
	"parley/capabilities"
	"parley/cmd/parley/hook"
	"parley/cmd/parley/interview"
	"parley/cmd/parley/setup"
	"parley/cmd/parley/terminal"
	"parley/events"
	"parley/gateway/api"
)

func setupCommand(env *environment) *cobra.Command {
	var remove bool
	c := &cobra.Command{
		Use:   "setup",
		Short: "Set up your coding agents to ask you",
		Long: `Enters the permission hook and the MCP server in a coding agent's settings, or takes them out again. Without a name it looks
which coding agents are installed here, says what it would change, asks, starts the node, and has a first question come to you.`,
		Example: "  parley setup\n  parley setup claude-code --print\n  parley setup codex --project\n  parley setup --remove",
	}
	c.Flags().BoolVar(&remove, "remove", false, "take out what was entered, for all coding agents")
	c.RunE = func(c *cobra.Command, _ []string) error {
		switch {
		case remove:
			return removeSetups(c.Context(), env)
		case !env.interactive() || env.options.json:
			return usage(c, "missing: %s", strings.Join(agentNames(), " or "))
		}
		return guideSetup(c.Context(), env)
	}
	for _, agent := range hook.Agents() {
		c.AddCommand(setupAgentCommand(env, agent))
	}
	return c
}

// setupFlags are the flags of "parley setup NAME".
type setupFlags struct {
	print, remove, project, user bool
	taken                        *int // counts the files from which something was taken out, of all agents; nil for one agent
	away                         string
	guided                       bool // the person was told what happens where nobody can be asked
	team                         string
}

func setupAgentCommand(env *environment, agent hook.Agent) *cobra.Command {
	var flags setupFlags
	c := &cobra.Command{
		Use:   agent.Name,
		Short: "Set up " + agent.Title + " to ask you",
		Long: fmt.Sprintf(`Enters the permission hook and the MCP server in the settings of %s: in a Git repository those of the folder
that this is run in, and anywhere else those of the person who runs it. --project and --user choose. What is there stays.
The file as it was before the first entry is kept beside it with %s at its end, and an entry of an earlier setup is
replaced. A file that cannot be read is left alone, and so is one of a project that leads out of it.

--remove takes out what was entered, of the folder and of the person, and leaves what else was changed since.`, agent.Title, setup.BackupSuffix),
		Example: "  parley setup " + agent.Name + " --print\n  parley setup " + agent.Name + " --remove",
		Args:    exactly(),
	}
	c.Flags().BoolVar(&flags.print, "print", false, "only show what would be entered or taken out, and where")
	c.Flags().BoolVar(&flags.remove, "remove", false, "take out what was entered")
	c.Flags().BoolVar(&flags.project, "project", false, "for this folder (default in a Git repository)")
	c.Flags().BoolVar(&flags.user, "user", false, "for whoever runs this (default elsewhere)")
	c.Flags().StringVar(&flags.team, "team", "", "put the sessions of this folder in a `team` of the running node: they write to each other and to its members")
	c.MarkFlagsMutuallyExclusive("project", "user")
	c.MarkFlagsMutuallyExclusive("team", "remove")
	c.MarkFlagsMutuallyExclusive("team", "print")
	if standard := awayDefault(agent); standard != "" {
		c.Flags().StringVar(&flags.away, "when-away", "", "where nobody can be asked: "+agent.AwayNames()+" (default "+standard+")")
		c.MarkFlagsMutuallyExclusive("when-away", "remove")
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		if _, err := agent.ReadAway(flags.away); err != nil || flags.away == "" && c.Flags().Changed("when-away") {
			return usage(c, "unknown choice %q: want %s", flags.away, agent.AwayNames())
		}
		return runSetup(c.Context(), env, agent, flags)
	}
	return c
}

// awayDefault says what a hook does where nobody can be asked, of an agent for which that can be chosen; "" for another.
func awayDefault(agent hook.Agent) string {
	switch agent.Name {
	case hook.ClaudeCode().Name:
		return "ask in a terminal, deny with -p"
	case hook.GeminiCLI().Name, hook.QwenCode().Name:
		return "deny"
	}
	return ""
}

// joinTeam puts the agent of this folder, and so its sessions, in a team.
func joinTeam(ctx context.Context, env *environment, agent hook.Agent, team string) error {
	folder, err := os.Getwd()
	if err != nil {
		return err
	}
	return api.SetTeam.Run(ctx, env, api.SetTeamRequest{Team: team, Coder: &api.TeamCoder{Program: agent.Name, Title: agent.Title, Folder: folder}})
}

func runSetup(ctx context.Context, env *environment, agent hook.Agent, flags setupFlags) error {
	projects := []bool{flags.project}
	switch {
	case flags.remove && !flags.project && !flags.user:
		projects = []bool{true, false}
	case !flags.project && !flags.user:
		inside, err := inProject(env)
		if err != nil {
			return err
		}
		projects = []bool{inside}
	}
	claude := agent.Name == hook.ClaudeCode().Name
	if claude && flags.away == "" && !flags.guided && !flags.print && !flags.remove && !env.options.json && env.interactive() {
		var err error
		if flags.away, err = askAway(ctx, env); err != nil {
			return err
		}
	}
	var files []setup.File
	nodes := []stateFolder{defaultState(env.lookup)}
	for _, project := range projects {
		o, err := setupOptions(env, project)
		if err != nil {
			return err
		}
		o.Remove, o.Away = flags.remove, flags.away
		more, err := setup.Files(ctx, agent, o)
		if err != nil {
			return err
		}
		for _, node := range setup.Nodes(agent, more, o) {
			nodes = append(nodes, stateFolder(node))
		}
		for _, f := range more { // in the home folder the project's settings are the person's
			if !slices.ContainsFunc(files, func(g setup.File) bool { return g.Path == f.Path }) {
				files = append(files, f)
			}
		}
	}
	if !flags.print {
		if err := env.checkOutside(ctx, nodes...); err != nil {
			return err
		}
	}
	if flags.team != "" {
		if err := joinTeam(ctx, env, agent, flags.team); err != nil {
			return err
		}
	}
	switch {
	case flags.remove:
		var failed []error
		if files, failed = setup.TakeOut(files, flags.print); len(failed) > 0 {
			return removedInPart(env, files, failed, flags.print)
		}
	case !flags.print:
		if err := setup.Write(files); err != nil {
			return err
		}
	}
	if flags.taken != nil && !env.options.json { // of all agents only what there was
		files = slices.DeleteFunc(files, func(f setup.File) bool { return !f.Changed && !f.Gone })
		if *flags.taken += len(files); len(files) == 0 {
			return nil
		}
	}
	if err := env.print(files, func() string { return setup.Text(files, flags.print) }); err != nil || flags.remove || flags.print {
		return err
	}
	return noteSetup(ctx, env, agent, projects[0], flags.away, files[0].Changed)
}

// removedInPart prints what was taken out, and each file that could not be changed but the last, which it returns.
func removedInPart(env *environment, files []setup.File, failed []error, whole bool) error {
	if err := env.print(files, func() string { return setup.Text(files, whole) }); err != nil {
		return err
	}
	last := len(failed) - 1
	for _, err := range failed[:last] {
		fmt.Fprintf(env.stderr, "warning: %s\n", terminal.Visible(terminal.Message(err)))
	}
	return failed[last]
}

// noteSetup says on standard error for whom the hooks are entered, and what "parley doctor" would say of them.
func noteSetup(ctx context.Context, env *environment, agent hook.Agent, project bool, away string, changed bool) error {
	o, err := setupOptions(env, project)
	if err != nil {
		return err
	}
	claude := agent.Name == hook.ClaudeCode().Name
	if project {
		without := ""
		if claude {
			without = ", and blocks their calls where Parley is not installed, and not below that folder, nor in a worktree of it (--worktree) before the file is committed"
		}
		fmt.Fprintf(env.stderr, "note: for this project: it takes effect where %s is started in %s, for everybody%s; --user enters it for all your folders\n",
			agent.Title, terminal.Visible(o.Folder), without)
	} else {
		fmt.Fprintf(env.stderr, "note: for you, in all folders; --project enters it for one folder alone\n")
	}
	if claude {
		fmt.Fprintf(env.stderr, "note: where no node runs, or nobody follows the inbox: %s; --when-away changes it\n", setup.WhenAway(agent, hook.Away(away)))
	} else if changed && agent.Name == hook.Codex().Name {
		fmt.Fprintf(env.stderr, "note: Codex runs a hook once it is trusted: type /hooks there\n")
	}
	words, good := setup.Check(ctx, agent, o)
	kind := "note"
	if !good {
		kind = "warning"
	}
	fmt.Fprintf(env.stderr, "%s: %s %s\n", kind, agent.Title, terminal.Visible(words))
	return nil
}

// askAway asks on the terminal what a hook does where nobody can be asked. Enter takes the default.
func askAway(ctx context.Context, env *environment) (string, error) {
	const field, byDefault = "when_away", "default"
	options := []events.Option{{Value: byDefault, Description: setup.WhenAway(hook.ClaudeCode(), "")}}
	for _, a := range hook.ClaudeCode().Aways {
		options = append(options, events.Option{Value: string(a), Description: setup.WhenAway(hook.ClaudeCode(), a)})
	}
	texts, err := interview.Ask(ctx, env.stdin, env.stdout, "Claude Code's calls are asked in Parley.", "parley setup", []events.Field{{
		Name: field, Label: "Where no node runs, or nobody follows the inbox", Type: events.Select, Required: true,
		Options: options, Default: capabilities.String(byDefault),
	}})
	if err != nil {
		return "", err
	}
	for _, t := range texts {
		if t.Name == field && t.Text != byDefault {
			return t.Text, nil
		}
	}
	return "", nil
}

// inProject reports whether the folder is in a Git repository. The home folder is none: its settings are the person's.
func inProject(env *environment) (bool, error) {
	here, err := os.Getwd()
	if err != nil {
		return false, fmt.Errorf("find this folder: %w", err)
	}
	home, _ := env.lookup("HOME")
	root := setup.Repository(here)
	return root != "" && !setup.SameFile(root, home) && !setup.SameFile(here, home), nil
}

func setupOptions(env *environment, project bool) (setup.Options, error) {
	here, err := os.Getwd()
	if err != nil {
		return setup.Options{}, fmt.Errorf("find this folder: %w", err)
	}
	home, ok := env.lookup("HOME")
	if !project && (!ok || !filepath.IsAbs(home)) {
		return setup.Options{}, parley.Refuse(parley.InvalidArgument, "there is no home folder to keep settings in").WithHint("use --project")
	}
	_, running, _ := env.options.state.holder() // a lock that cannot be read is no node
	return setup.Options{
		Project: project, Folder: here, Home: home, As: env.options.as, Env: env.lookup, Managed: setup.ManagedFolder(),
		State: string(env.options.state), Default: string(defaultState(env.lookup)), Version: version(), Running: running,
	}, nil
}
