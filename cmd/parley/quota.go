package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"parley/actors/view"
	"parley/gateway"
	"parley/gateway/api"
	"parley/mailbox"
)

// peerQuota begins the names of quotas of other nodes where both kinds stand together.
const peerQuota = "peer."

// readQuotas reads the quotas of agents and of other nodes.
func (s *serving) readQuotas() (agents, peers map[string]int64, err error) {
	var ofAgents, ofPeers []string
	for _, q := range s.quotas {
		if rest, ok := strings.CutPrefix(q, peerQuota); ok {
			ofPeers = append(ofPeers, rest)
		} else {
			ofAgents = append(ofAgents, q)
		}
	}
	if agents, err = mailbox.ParseQuotas(ofAgents); err != nil {
		return nil, nil, err
	}
	peers, err = mailbox.ParseQuotas(ofPeers)
	return agents, peers, err
}

// quotaSettings returns the options that make quotas of what they are otherwise.
func quotaSettings(prefix string, quotas view.Amounts, otherwise mailbox.Amounts) (settings []string) {
	if len(quotas) == 0 { // an older node's
		return nil
	}
	for i := range otherwise {
		q := mailbox.Quota(i)
		limit := amountOf(quotas, q)
		if limit == otherwise[q] {
			continue
		}
		amount := fmt.Sprint(limit)
		if limit == mailbox.Unlimited {
			amount = "none"
		}
		settings = append(settings, fmt.Sprintf("%s%s=%s", prefix, q, amount))
	}
	return settings
}

// amountOf returns the amount for a quota.
func amountOf(named view.Amounts, q mailbox.Quota) int64 {
	if n := named[q.String()]; n != -1 {
		return n
	}
	return mailbox.Unlimited
}

func (p *program) quotaCommand() *cobra.Command {
	var reset bool
	c := &cobra.Command{
		Use:   "quota AGENT [NAME=AMOUNT…]",
		Short: "Show or set what an agent may have the node hold",
		Long: `Shows what an agent, with those that it made, has the node hold, and its quotas; or sets some of them.
What is over a quota is refused with QUOTA_EXCEEDED. The quotas:

  forms      open forms that it asked
  names      names that it has
  agents     agents that it made
  bytes      bytes of its open forms and of what its names point to
  daily      bytes that it wrote since midnight UTC
  inbox      bytes of its mail in one other mailbox that is neither dismissed nor settled
  grants     grants that it made of one agent
  processor  milliseconds a minute for the patterns of its forms and answers

An amount is a number, a number of KiB, MiB or GiB, or none. The node's host, and hosts that it made, have no quotas
unless some are set. "parley serve --quota" sets those of all others.`,
		Example: `  parley quota builder
  parley quota builder daily=1GiB forms=50000
  parley quota builder --reset`,
		Args: func(c *cobra.Command, args []string) error {
			return p.exactly("AGENT")(c, args[:min(len(args), 1)])
		},
		ValidArgsFunction: p.completeArguments(gateway.CompleteNames),
	}
	c.Flags().BoolVar(&reset, "reset", false, "drop what was set for the agent before")
	c.RunE = func(c *cobra.Command, args []string) error {
		quotas, err := mailbox.ParseQuotas(args[1:])
		if err != nil {
			return err
		}
		var got view.AgentUse
		if len(quotas) == 0 && !reset {
			err = p.call(c.Context(), "get_quota", api.GetQuotaRequest{Acting: p.acting(), AgentID: args[0]}, &got)
		} else {
			err = p.call(c.Context(), "set_quota", api.SetQuotaRequest{Acting: p.acting(), AgentID: args[0], Quotas: quotas, Reset: reset}, &got)
		}
		if err != nil {
			return err
		}
		return p.say(got, func() string { return quotaTable(got.Used, got.Quotas) })
	}
	return c
}

func quotaTable(used, quotas view.Amounts) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for i := range (mailbox.Amounts{}) {
		q := mailbox.Quota(i)
		fmt.Fprintf(w, "%s\t%s\tof %s\n", q, q.Show(amountOf(used, q)), q.Show(amountOf(quotas, q)))
	}
	_ = w.Flush() // into memory
	return strings.TrimSuffix(b.String(), "\n")
}

func (p *program) peersCommand() *cobra.Command {
	c := p.nodesCommand()
	c.Use, c.Short = "peers", "List the other nodes, limit them, and drop them"
	c.Example = "  parley peers\n  parley peers limit bob inbox=64MiB\n  parley peers drop bob"
	c.Args = p.exactly()
	c.AddCommand(p.limitPeerCommand(), p.dropPeerCommand())
	return c
}

func (p *program) limitPeerCommand() *cobra.Command {
	var reset bool
	c := &cobra.Command{
		Use:   "limit NODE [NAME=AMOUNT…]",
		Short: "Show or set what another node may have this one hold",
		Long: `Shows what another node has this one hold, and its quotas; or sets some of them. NODE is its ID, or the
host's name for its host. Each quota but processor is for every mailbox that the node sends to: forms, daily, inbox,
grants (see "parley quota --help"). Mail over a quota is refused with QUOTA_EXCEEDED, and its sender is told.`,
		Example: "  parley peers limit bob\n  parley peers limit bob inbox=64MiB forms=100\n  parley peers limit bob --reset",
		Args: func(c *cobra.Command, args []string) error {
			return p.exactly("NODE")(c, args[:min(len(args), 1)])
		},
	}
	c.Flags().BoolVar(&reset, "reset", false, "drop what was set for the node before")
	c.RunE = func(c *cobra.Command, args []string) error {
		quotas, err := mailbox.ParseQuotas(args[1:])
		if err != nil {
			return err
		}
		var got view.Peer
		err = p.call(c.Context(), "limit_peer", api.LimitPeerRequest{Acting: p.acting(), Node: args[0], Quotas: quotas, Reset: reset}, &got)
		if err != nil {
			return err
		}
		return p.say(got, func() string { return quotaTable(got.Use.Used, got.Use.Quotas) })
	}
	return c
}

func (p *program) dropPeerCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "drop NODE",
		Short: "Have nothing more to do with another node",
		Long: `Ends what this node has to do with another: its connection is cut, its mail is refused, what waits for it is
given up, what its agents were given is revoked, and the nodes that only it had introduced are forgotten. NODE is its
ID, or the host's name for its host. A new invitation brings it back.`,
		Example: "  parley peers drop bob",
		Args:    p.exactly("NODE"),
		RunE: func(c *cobra.Command, args []string) error {
			var got view.DroppedPeer
			if err := p.call(c.Context(), "drop_peer", api.DropPeerRequest{Acting: p.acting(), Node: args[0]}, &got); err != nil {
				return err
			}
			return p.say(got, func() string {
				return fmt.Sprintf("dropped %s: %d names freed, %d grants revoked, %d parcels given up, %d nodes forgotten that it had introduced",
					got.Node, got.Names, got.Revoked, got.Given, got.Introduced)
			})
		},
	}
}

// checkQuotas warns of agents and nodes that use most of a quota.
func checkQuotas(q view.NodeQuotas) (string, string) {
	const much = 0.8
	near := map[string]bool{}
	for _, u := range q.Heaviest {
		if u.Share >= much {
			near[fmt.Sprintf("agent %s uses %.0f %% of %s", nameOr(u.Name, u.Agent.String()), 100*u.Share, u.Quota)] = true
		}
	}
	for _, u := range q.PeersUsed {
		if u.Share >= much {
			near[fmt.Sprintf("node %s uses %.0f %% of %s", nameOr(u.Name, u.Node.String()), 100*u.Share, u.Quota)] = true
		}
	}
	if len(near) == 0 {
		return fine, "nobody uses more than 80 % of a quota"
	}
	return dubious, strings.Join(slices.Sorted(maps.Keys(near)), "; ") + ": parley quota and parley peers limit raise it"
}

func nameOr(name, id string) string {
	if name == "" {
		return id
	}
	return name
}
