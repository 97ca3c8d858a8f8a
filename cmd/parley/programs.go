package main

import (
	"strings"

	"github.com/spf13/cobra"

	"parley/cmd/parley/shell"
	"parley/cmd/parley/terminal"
	"parley/gateway/api"
)

func (p *program) programsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "programs",
		Short: "Say how the node runs programs, and have a restored node start them",
		Long: `Says what holds for all programs of the node: which variables of its environment they get, which user they run as, and
the command that they are wrapped in.

A node that was restored from a backup starts no programs, whatever is queued for them, until "parley programs start". Make
sure first that the node runs nowhere else.`,
		Example: "  parley programs\n  parley programs start",
		Args:    p.exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			status, err := p.status(c.Context())
			if err != nil {
				return err
			}
			return p.say(status.Programs, func() string { return programsText(status.Programs) })
		},
	}
	c.AddCommand(&cobra.Command{
		Use:     "start",
		Short:   "Have a restored node start its programs",
		Example: "  parley programs start",
		Args:    p.exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			var done api.Done
			if err := p.call(c.Context(), "start_programs", api.NodeRequest{Acting: p.acting()}, &done); err != nil {
				return err
			}
			return p.say(done, func() string { return "programs run" })
		},
	})
	return c
}

func programsText(s api.ProgramsStatus) string {
	lines := []string{"programs run"}
	if s.Held {
		lines = []string{"programs are held since the node was restored: parley programs start"}
	}
	if len(s.Environment) > 0 {
		lines = append(lines, "environment: "+terminal.Visible(strings.Join(s.Environment, ",")))
	}
	if s.User != "" {
		lines = append(lines, "user: "+terminal.Visible(s.User))
	}
	if len(s.Wrap) > 0 {
		lines = append(lines, "wrapped in: "+terminal.Visible(shell.Join(s.Wrap)))
	}
	return strings.Join(lines, "\n")
}
