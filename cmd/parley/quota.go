package main

import (
	"fmt"
	"maps"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"parley/actors/view"
	"parley/gateway/api"
	"parley/mailbox/quota"
)

// peerQuota is the prefix for quotas of other nodes in --quota.
const peerQuota = "peer."

// quotaSettings returns the options for quotas that differ from the defaults.
func quotaSettings(prefix string, quotas view.Amounts, otherwise quota.Amounts) (settings []string) {
	if len(quotas) == 0 { // an older node's
		return nil
	}
	for i := range otherwise {
		q := quota.Quota(i)
		limit := amountOf(quotas, q)
		if limit == otherwise[q] {
			continue
		}
		amount := fmt.Sprint(limit)
		if limit == quota.Unlimited {
			amount = "none"
		}
		settings = append(settings, fmt.Sprintf("%s%s=%s", prefix, q, amount))
	}
	return settings
}

// amountOf returns the amount for a quota.
func amountOf(named view.Amounts, q quota.Quota) int64 {
	if n := named[q.String()]; n != -1 {
		return n
	}
	return quota.Unlimited
}

func quotaCommand(env *environment) *cobra.Command {
	var reset bool
	c := &cobra.Command{
		Use:   "quota AGENT [NAME=AMOUNT…]",
		Short: "Show or set an agent's quotas",
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
  approvals  open approvals that it asked for, which are not among its forms

An amount is a number, a number of KiB, MiB or GiB, or none. The node's host, and hosts that it made, have no quotas
unless some are set. "parley serve --quota" sets those of all others.`,
		Example: `  parley agent quota builder
  parley agent quota builder daily=1GiB forms=50000
  parley agent quota builder --reset`,
		Args: func(c *cobra.Command, args []string) error {
			return exactly("AGENT")(c, args[:min(len(args), 1)])
		},
		ValidArgsFunction: completeArguments(env, api.CompleteNames),
	}
	c.Flags().BoolVar(&reset, "reset", false, "drop what was set for the agent before")
	c.RunE = func(c *cobra.Command, args []string) error {
		quotas, err := quota.Parse(args[1:])
		if err != nil {
			return err
		}
		text := func(got view.AgentUse) string { return quotaTable(got.Used, got.Quotas) }
		if len(quotas) == 0 && !reset {
			return perform(c.Context(), env, api.GetQuota, api.GetQuotaRequest{Acting: env.acting(), AgentID: args[0]}, text)
		}
		return perform(c.Context(), env, api.SetQuota, api.SetQuotaRequest{Acting: env.acting(), AgentID: args[0], Quotas: quotas, Reset: reset}, text)
	}
	return c
}

func quotaTable(used, quotas view.Amounts) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for i := range (quota.Amounts{}) {
		q := quota.Quota(i)
		fmt.Fprintf(w, "%s\t%s\tof %s\n", q, q.Show(amountOf(used, q)), q.Show(amountOf(quotas, q)))
	}
	_ = w.Flush() // into memory
	return strings.TrimSuffix(b.String(), "\n")
}

// limitFlag is the option --limit.
type limitFlag struct{ api.Limits }

func (l *limitFlag) String() string { return l.Limits.String() }
func (l *limitFlag) Type() string   { return "stringArray" }

// Set adds key=value pairs to the former ones.
func (l *limitFlag) Set(text string) error {
	more, err := api.ParseLimits(text)
	if err != nil {
		return err
	}
	if l.Limits == nil {
		l.Limits = api.Limits{}
	}
	maps.Copy(l.Limits, more)
	return nil
}

// limitsHelp lists the keys of --limit.
func limitsHelp() string {
	var b strings.Builder
	b.WriteString("--limit keys and their defaults:\n")
	for _, k := range api.LimitKeys() {
		fmt.Fprintf(&b, "  %-20s %-10d %s\n", k.Key, k.Default, k.Help)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
