package main

import (
	"github.com/spf13/cobra"

	"parley/gateway"
)

func (p *program) policyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "policy AGENT always|on-miss|never|deny",
		Short: "Say what becomes of an agent's calls that need permission",
		Long: `Says what becomes of an agent's calls that need permission: every one is asked about (always), those that no
standing rule decides (on-miss, as it is where nothing is said), none, they are allowed (never), or none, they are denied
(deny). A rule that denies goes before all of these; nothing that expires is allowed.`,
		Example:           "  parley policy builder never",
		Args:              p.exactly("AGENT", "POLICY"),
		ValidArgsFunction: p.completeArguments(gateway.CompleteNames),
		RunE: func(c *cobra.Command, args []string) error {
			var got gateway.AgentResponse
			req := gateway.SetPolicyRequest{Acting: p.acting(), AgentID: args[0], Policy: args[1]}
			if err := p.call(c.Context(), "set_policy", req, &got); err != nil {
				return err
			}
			return p.say(got, silent)
		},
	}
}
