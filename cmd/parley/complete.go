package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/cmd/parley/terminal"
	"parley/gateway/api"
)

// completionTime bounds how long a shell waits for the node.
const completionTime = 2 * time.Second

// completeArguments completes each argument by its subject, in order; what comes after is free text.
func (p *program) completeArguments(of ...string) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) >= len(of) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return p.completions(c, of[len(args)], typed)
	}
}

func (p *program) completeFlag(of string) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return p.completions(c, of, typed)
	}
}

// completeFlagOf completes a flag that the command has, with one of a few words.
func completeFlagOf(c *cobra.Command, flag string, words ...string) {
	_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// isCompletable reports whether a word, which somebody else may have chosen, can be put on a command line as it is shown:
// it hides nothing, is no option, and is nothing else to the shell's script.
func isCompletable(word string) bool {
	return word != "" && terminal.Visible(word) == word && !strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "_activeHelp_")
}

// completions asks the node. Where there is none, there is nothing to offer and nothing to complain about.
func (p *program) completions(c *cobra.Command, of, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if fromEnvironment(c, p.env) != nil || p.options.settle(c, p.env) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx := c.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	as := p.acting()
	var found api.CompleteResponse
	if err := p.call(ctx, "complete", api.CompleteRequest{Acting: as, Of: of, Prefix: typed}, &found); err != nil {
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
