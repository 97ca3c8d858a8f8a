package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/actors/view"
	"parley/cmd/parley/shell"
	"parley/cmd/parley/show"
	"parley/cmd/parley/terminal"
	"parley/gateway/api"
	"parley/gateway/client"
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
	return completionsOf(env, c, api.CompleteRequest{Of: of, Prefix: typed})
}

func completionsOf(env *environment, c *cobra.Command, req api.CompleteRequest) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel, err := completing(env, c)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer cancel()
	req.Acting = env.acting()
	found, err := api.Complete.Do(ctx, env, req)
	if err != nil {
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

// anyMessage, anApproval and aForm choose what is offered of the messages that wait.
func anyMessage(view.Message) bool   { return true }
func anApproval(e view.Message) bool { return e.Type == approvalType }
func aForm(e view.Message) bool      { return e.Type == "form" }

// completeWaiting completes the first argument with the numbers of messages that wait for the agent's answer. Each has
// what it asks. It offers other subjects too. Further arguments are free text.
func completeWaiting(env *environment, wanted func(view.Message) bool, others ...string) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		words := waitingNumbers(env, c, wanted, typed)
		for _, of := range others {
			more, _ := completions(env, c, of, typed)
			words = append(words, more...)
		}
		return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// waitingNumbers returns the numbers of messages that wait, the newest first. Without a node there are none.
func waitingNumbers(env *environment, c *cobra.Command, wanted func(view.Message) bool, typed string) []cobra.Completion {
	ctx, cancel, err := completing(env, c)
	if err != nil {
		return nil
	}
	defer cancel()
	node := env.clientOf(client.Options{As: env.options.as, Patience: -1})
	defer node.Close()
	pending, err := listMessages(ctx, node, client.View{Pending: true})
	if err != nil {
		return nil
	}
	var words []cobra.Completion
	for _, m := range slices.Backward(pending) {
		number := strconv.FormatUint(m.Number, 10)
		if !wanted(m.Message) || !strings.HasPrefix(number, typed) {
			continue
		}
		words = append(words, cobra.CompletionWithDesc(number, show.Gist(m.Message)))
	}
	return words
}

// completeDecision completes an approval, or an agent and then an approval.
func completeDecision(env *environment) cobra.CompletionFunc {
	first := completeWaiting(env, anApproval, api.CompleteNames)
	return func(c *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 1 {
			return waitingNumbers(env, c, anApproval, typed), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		}
		return first(c, args, typed)
	}
}

// completing reads the options of a command that is being completed, and bounds its time.
func completing(env *environment, c *cobra.Command) (context.Context, context.CancelFunc, error) {
	if err := errors.Join(fromEnvironment(c, env.lookup), env.options.settle(c, env.lookup)); err != nil {
		return nil, nil, err
	}
	ctx := c.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	return ctx, cancel, nil
}

// completeAdopt completes a message that carries something, and then the words that it carries values under.
func completeAdopt(env *environment) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		switch len(args) {
		case 0:
			return completions(env, c, api.CompleteCarriers, typed)
		case 1:
			return completionsOf(env, c, api.CompleteRequest{Of: api.CompleteEdges, FormRef: api.RefTo(args[0]), Prefix: typed})
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// completionCommand replaces the library's command of this name, whose scripts put words on a command line unquoted.
func completionCommand(env *environment) *cobra.Command {
	c := &cobra.Command{
		Use:   "completion",
		Short: "Print a completion script for a shell",
		Long: `Prints a script that completes commands, names and message numbers in a shell. What others named is quoted, and left out
where it cannot be shown as it is.`,
		Example: "  source <(parley completion bash)\n  parley completion fish > ~/.config/fish/completions/parley.fish",
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
