package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/terminal"
	"parley/gateway"
	"parley/gateway/api"
)

func (p *program) rulesCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "rules",
		Short:   "List and end the standing rules that an agent's calls go by",
		Long:    "A standing rule is made where a call is always allowed or denied. It covers that very call of that agent, or, where\na wider rule was chosen, the commands or files that its words name.",
		Example: "  parley rules ls fae\n  parley rules rm fae 01JQ…@N…",
		Args:    p.exactly(),
		RunE:    func(c *cobra.Command, _ []string) error { return usage(c, "missing: ls or rm") },
	}
	c.AddCommand(p.rulesListCommand(), p.rulesRemoveCommand())
	return c
}

func (p *program) rulesListCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "ls AGENT",
		Aliases: []string{"list"},
		Short:   "List an agent's standing rules",
		Args:    p.exactly("AGENT"),

		ValidArgsFunction: p.completeArguments(gateway.CompleteNames),
		RunE: func(c *cobra.Command, args []string) error {
			rules, err := listAll(c.Context(), p, "list_rules",
				func(at api.Paging) any {
					return api.ListRulesRequest{Acting: p.acting(), Agent: args[0], Paging: at}
				},
				func(r api.ListRulesResponse) ([]view.Rule, api.Paged) { return r.Rules, r.Paged })
			if err != nil {
				return err
			}
			return p.say(rules, func() string {
				lines := make([]string, len(rules))
				for i, r := range rules {
					lines[i] = ruleLine(r)
				}
				return strings.Join(lines, "\n")
			})
		},
	}
}

func ruleLine(r view.Rule) string {
	line := fmt.Sprintf("%s  %s  used %d times", r.Rule, ruleWords(r), r.Uses)
	if r.Until != 0 {
		line += "  until " + r.Until.String()
	}
	if r.Stale != "" {
		line += "\n  decides nothing: " + terminal.Visible(r.Stale)
	}
	return line
}

// ruleWords says what a rule decides.
func ruleWords(r view.Rule) string {
	verb := "never"
	if r.Allow {
		verb = "always"
	}
	return verb + " " + terminal.Visible(r.Tool) + " " + terminal.Visible(r.Words)
}

// ruleText says what a rule that was made decides, and until when.
func ruleText(r view.Rule) string {
	if r.Until != 0 {
		return ruleWords(r) + ", until " + r.Until.String()
	}
	return ruleWords(r)
}

func (p *program) rulesRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "rm AGENT RULE",
		Short: "End a standing rule",
		Args:  p.exactly("AGENT", "RULE"),

		ValidArgsFunction: p.completeArguments(gateway.CompleteNames),
		RunE: func(c *cobra.Command, args []string) error {
			rule, err := capabilities.ParseID(args[1])
			if err != nil {
				return err
			}
			return p.change(c, "remove_rule", api.RemoveRuleRequest{Acting: p.acting(), Agent: args[0], Rule: rule}, args[1])
		},
	}
}
