package main

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/cmd/parley/shell"
	"parley/cmd/parley/terminal"
	"parley/gateway/api"
)

// completionTime bounds the time for which a shell waits for the node.
const completionTime = 2 * time.Second

// completeArguments completes each argument by its subject, in order. Further arguments are free text.
func completeArguments(env *environment, of ...string) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) >= len(of) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return completions(env, c, of[len(args)], typed)
	}
}

func completeFlag(env *environment, of string) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return completions(env, c, of, typed)
	}
}

// completeFlagOf completes a flag of a command with one of a few words.
func completeFlagOf(c *cobra.Command, flag string, words ...string) {
	_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// isCompletable reports whether a word can be put on a command line as it is shown. Others may have chosen it: it may
// hide nothing, be no option, and mean nothing else to the shell's script.
func isCompletable(word string) bool {
	return word != "" && terminal.Visible(word) == word && !strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "_activeHelp_")
}

// completions asks the node for candidates. Without a node there are none, and no error.
func completions(env *environment, c *cobra.Command, of, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if fromEnvironment(c, env.lookup) != nil || env.options.settle(c, env.lookup) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx := c.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	as := env.acting()
	var found api.CompleteResponse
	if err := env.call(ctx, "complete", api.CompleteRequest{Acting: as, Of: of, Prefix: typed}, &found); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	words := make([]cobra.Completion, 0, len(found.Candidates))
	for _, c := range found.Candidates {
		if isCompletable(c.Word) {
			words = append(words, cobra.CompletionWithDesc(c.Word, terminal.Visible(c.Description)))
		}
	}
	return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// completionCommand replaces the library's command of this name, whose scripts put words on a command line unquoted.
func completionCommand(env *environment) *cobra.Command {
	c := &cobra.Command{
		Use:   "completion",
		Short: "Print a script that completes commands in a shell",
		Long: `Prints a script that completes commands, names and message numbers in a shell. What others named is quoted, and left out
where it cannot be shown as it is.`,
		Example: "  source <(parley completion bash)\n  parley completion fish > ~/.config/fish/completions/parley.fish",
		Args:    exactly(),
		RunE:    func(c *cobra.Command, _ []string) error { return usage(c, "missing: bash, zsh, fish or powershell") },
	}
	for _, s := range shell.Shells() {
		var bare bool
		sub := &cobra.Command{
			Use:               s.Name,
			Short:             "Print the script for " + s.Name,
			Example:           "  parley completion " + s.Name,
			Args:              exactly(),
			ValidArgsFunction: cobra.NoFileCompletions,
			RunE: func(c *cobra.Command, _ []string) error {
				script, err := s.Script(c.Root(), !bare)
				if err != nil {
					return err
				}
				_, err = io.WriteString(env.stdout, script)
				return err
			},
		}
		sub.Flags().BoolVar(&bare, "no-descriptions", false, "words alone")
		c.AddCommand(sub)
	}
	return c
}
