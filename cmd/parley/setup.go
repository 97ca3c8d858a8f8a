package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"parley"
	"parley/events"
	"parley/gateway"
)

// settingUp is what is known while settings are made.
type settingUp struct {
	p       *program
	agent   codingAgent
	project bool
	folder  string // the project's
	home    string // the person's
	asker   asker  // for whom the MCP server acts
}

func (p *program) setupCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "setup",
		Short:   "Enter Parley in a coding agent's settings",
		Long:    "Enters the permission hook and the MCP server in a coding agent's settings.",
		Example: "  parley setup claude-code --print\n  parley setup codex --project",
		Args:    p.exactly(),
		RunE:    func(c *cobra.Command, _ []string) error { return usage(c, "missing: claude-code or codex") },
	}
	for _, agent := range codingAgents() {
		c.AddCommand(p.setupOf(agent))
	}
	return c
}

func (p *program) setupOf(agent codingAgent) *cobra.Command {
	var printOnly, project, user bool
	c := &cobra.Command{
		Use:   agent.name,
		Short: "Enter Parley in the settings of " + agent.title,
		Long: fmt.Sprintf(`Enters the permission hook and the MCP server in the settings of %s: those of the person who runs it, or
with --project of the folder that this is run in. What is there stays, the file as it was is kept beside it with
%s at its end, and once entered nothing is changed again. A file that cannot be read is left alone.`, agent.title, backupSuffix),
		Example: "  parley setup " + agent.name + " --print",
		Args:    p.exactly(),
	}
	c.Flags().BoolVar(&printOnly, "print", false, "only show what would be entered, and where")
	c.Flags().BoolVar(&project, "project", false, "enter it for this folder")
	c.Flags().BoolVar(&user, "user", false, "enter it for whoever runs this (default)")
	c.MarkFlagsMutuallyExclusive("project", "user")
	c.RunE = func(c *cobra.Command, _ []string) error {
		s, err := p.settingUp(agent, project)
		if err != nil {
			return err
		}
		files, err := agent.setup(s)
		if err != nil {
			return err
		}
		if !printOnly {
			if err := s.enter(c.Context(), files); err != nil {
				return err
			}
		}
		return p.say(files, func() string { return settingsText(files, printOnly) })
	}
	return c
}

// enter writes the files, or none where one of them cannot be.
func (s *settingUp) enter(ctx context.Context, files []settingsFile) error {
	for _, f := range files {
		if f.problem != nil {
			return f.problem
		}
	}
	for _, f := range files {
		if err := f.write(); err != nil {
			return err
		}
	}
	s.makeAsker(ctx)
	return nil
}

func (p *program) settingUp(agent codingAgent, project bool) (*settingUp, error) {
	here, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find this folder: %w", err)
	}
	home, ok := p.env("HOME")
	if !project && (!ok || !filepath.IsAbs(home)) {
		return nil, parley.Refuse(parley.InvalidArgument, "there is no home folder to keep settings in").WithHint("use --project")
	}
	s := &settingUp{p: p, agent: agent, project: project, folder: here, home: home, asker: agent.asker(here)}
	switch {
	case p.options.as != "":
		s.asker = asker{name: p.options.as}
	case !project:
		s.asker.name, s.asker.title = agent.name, agent.title
	}
	return s, nil
}

// arguments are those with which the settings run this program. The agent that asks is named only where one was: a
// hook finds it by its folder.
func (s *settingUp) arguments(command ...string) []string {
	if state := s.p.options.state; state != defaultState(s.p.env) {
		command = append(command, "--state", state)
	}
	return command
}

// hookCommand is the command line of the hook.
func (s *settingUp) hookCommand() (string, error) {
	self, err := s.program()
	args := []string{"hook", s.agent.name}
	if s.p.options.as != "" {
		args = append(args, "--as", s.p.options.as)
	}
	words := append([]string{self}, s.arguments(args...)...)
	for i, w := range words {
		words[i] = shellWord(w)
	}
	return strings.Join(words, " "), err
}

// program is how the settings call this program: by its name, where that finds it.
func (s *settingUp) program() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	if found, err := exec.LookPath("parley"); err == nil && sameFile(found, self) {
		return "parley", nil
	}
	return self, nil
}

func sameFile(a, b string) bool {
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
}

// makeAsker makes the agent for which the MCP server acts, or says how to.
func (s *settingUp) makeAsker(ctx context.Context) {
	if s.p.options.as != "" {
		return
	}
	err := s.p.call(ctx, "make_agent", gateway.MakeAgentRequest{
		Kind: events.Guest, Name: s.asker.name, Title: s.asker.title, Labels: s.asker.labels,
	}, nil)
	if err != nil && parley.CodeOf(err) != parley.NameTaken {
		fmt.Fprintf(s.p.stderr, "note: %s; once a node runs: parley mkguest %s\n", visible(messageOf(err)), shellWord(s.asker.name))
	}
}

// settingsText shows what is entered, or where it was.
func settingsText(files []settingsFile, whole bool) string {
	lines := make([]string, len(files))
	for i, f := range files {
		switch {
		case whole:
			lines[i] = "# " + f.Path + "\n" + strings.TrimRight(f.Entered, "\n")
		case f.Changed:
			lines[i] = "entered in " + f.Path
		default:
			lines[i] = "is in " + f.Path + " already"
		}
	}
	return strings.Join(lines, "\n")
}
