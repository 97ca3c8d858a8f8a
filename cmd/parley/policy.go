package main

import (
	"github.com/spf13/cobra"

	"parley/gateway"
	"parley/gateway/api"
	"parley/mailbox"
)

func (p *program) policyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "policy AGENT always|on-miss|never|deny",
		Short: "Say what becomes of an agent's calls that need permission",
		Long: `Says what becomes of an agent's calls that need permission: every one is asked about (always), those that no
standing rule decides (on-miss, as it is where nothing is said), none, they are allowed (never), or none, they are denied
(deny). A rule that denies goes before all of these; nothing that expires is allowed.`,
		Example: "  parley policy builder never",
		Args:    p.exactly("AGENT", "POLICY"),
		ValidArgsFunction: func(c *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return policies(), cobra.ShellCompDirectiveNoFileComp
			}
			return p.completeArguments(gateway.CompleteNames)(c, args, typed)
		},
		RunE: func(c *cobra.Command, args []string) error {
			var got api.AgentResponse
			req := api.SetPolicyRequest{Acting: p.acting(), AgentID: args[0], Policy: args[1]}
			if err := p.call(c.Context(), "set_policy", req, &got); err != nil {
				return err
			}
			return p.say(got, silent)
		},
	}
}

// policies are what may become of calls that need permission.
func policies() []string {
	return []string{mailbox.AskAlways, mailbox.AskOnMiss, mailbox.AskNever, mailbox.DenyAll}
}
