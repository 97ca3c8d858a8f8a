package main

import (
	"io"

	"github.com/spf13/cobra"

	"parley/cmd/parley/shell"
)

// completionCommand replaces the library's command of this name, whose scripts put words on a command line as they are where
// the shell then runs what is in them.
func (p *program) completionCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "completion",
		Short: "Print a script that completes commands in a shell",
		Long: `Prints a script that completes commands, names and message numbers in a shell. What others named is quoted, and left out
where it cannot be shown as it is.`,
		Example: "  source <(parley completion bash)\n  parley completion fish > ~/.config/fish/completions/parley.fish",
		Args:    p.exactly(),
		RunE:    func(c *cobra.Command, _ []string) error { return usage(c, "missing: bash, zsh, fish or powershell") },
	}
	for _, s := range shell.Shells() {
		var bare bool
		sub := &cobra.Command{
			Use:               s.Name,
			Short:             "Print the script for " + s.Name,
			Example:           "  parley completion " + s.Name,
			Args:              p.exactly(),
			ValidArgsFunction: cobra.NoFileCompletions,
			RunE: func(c *cobra.Command, _ []string) error {
				script, err := s.Script(c.Root(), !bare)
				if err != nil {
					return err
				}
				_, err = io.WriteString(p.stdout, script)
				return err
			},
		}
		sub.Flags().BoolVar(&bare, "no-descriptions", false, "words alone")
		c.AddCommand(sub)
	}
	return c
}
