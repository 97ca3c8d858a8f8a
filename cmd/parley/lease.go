package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/terminal"
	"parley/gateway/api"
)

// leaseEnforced says what a lease does, once it is held.
const leaseEnforced = "coding agents are refused it in editing tools, and in commands that name it; for other programs it is a notice"

// leaseOptions are what a lease is like.
type leaseOptions struct {
	ttl, timeout duration
	purpose      string
	team         string
	shared, wait bool
}

func leaseCommand(env *environment) *cobra.Command {
	o := leaseOptions{ttl: duration(30 * time.Minute), timeout: duration(time.Hour)}
	c := &cobra.Command{
		Use:   "lease PATTERN...",
		Short: "Lease files or names, so that no other agent changes them",
		Long: `A pattern is of files: * and ? stand for some and for one character of a name, ** for any number of folders, and what is below a match is
covered too. Or it is a name with its kind, as port:3000 or branch:main. The lease ends with its time, with the agent's session, or with
"parley lease release". It counts among the members of the agent's team, or of --team; without a team, among the agents that are in none. Coding agents
are refused to edit what another has leased, also by commands that say so, and are told who has it. Reading is not refused, nor is what a script or a
build writes that a command runs.`,
		Example: `  parley lease 'src/checkout/**' --ttl 30m --for rounding
  parley lease port:3000 --wait
  parley lease ls`,
		Args: atLeast("PATTERN"),
		RunE: func(c *cobra.Command, args []string) error { return o.ask(c.Context(), env, args) },
	}
	f := c.Flags()
	f.Var(&o.ttl, "ttl", "it ends after so long (at most 24h)")
	f.StringVar(&o.purpose, "for", "", "what for, in some `words` that others read")
	f.StringVar(&o.team, "team", "", "of that `team`, for an agent that is in several")
	f.BoolVar(&o.shared, "shared", false, "others may have a shared lease at the same time")
	f.BoolVar(&o.wait, "wait", false, "wait in the queue until it is held")
	f.Var(&o.timeout, "timeout", "with --wait: wait so long at most (at most 24h)")
	return noun(c, listLeasesCommand(env), renewLeaseCommand(env), endLeaseCommand(env, "release", "Release a lease, or wait for it no longer", "released"),
		endLeaseCommand(env, "break", "Break the lease of another agent, as the host", "broken"))
}

func (o leaseOptions) ask(ctx context.Context, env *environment, patterns []string) error {
	if err := checkTTL(o.ttl); err != nil {
		return err
	}
	folder, err := os.Getwd()
	if err != nil {
		return err
	}
	r := api.LeaseRequest{
		Acting: env.acting(), Patterns: patterns, Folder: folder, Team: o.team, Shared: o.shared, For: o.purpose, TTLMs: time.Duration(o.ttl).Milliseconds(),
	}
	if o.wait {
		r.WaitMs = time.Duration(o.timeout).Milliseconds()
	}
	l, err := api.Lease.Do(ctx, env, r)
	if err != nil {
		return err
	}
	if l.State == view.LeaseWaiting {
		fmt.Fprintf(env.stderr, "lease %d waits behind %s\n", l.Lease, leaseNumbers(l.Behind))
		number := l.Lease
		if l, err = awaitLease(ctx, env, number); err != nil {
			given, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxWait)
			defer cancel()
			return errors.Join(err, api.ReleaseLease.Run(given, env, api.ReleaseLeaseRequest{Acting: env.acting(), Lease: number}))
		}
		if l.State == view.LeaseEnded {
			return parley.Refuse(parley.Timeout, "lease %d was not held in time", number).WithHint("parley lease ls shows who has it")
		}
	}
	return env.print(l, func() string {
		return fmt.Sprintf("lease %d is held until %s\n%s", l.Lease, env.screen().Moment(l.Until.Std(), l.Until.String()), leaseEnforced)
	})
}

// awaitLease returns a lease when it is held, or has ended.
func awaitLease(ctx context.Context, env *environment, number uint64) (view.Lease, error) {
	wait := maxWait.Milliseconds()
	for {
		l, err := api.AwaitLease.Do(ctx, env, api.AwaitLeaseRequest{Acting: env.acting(), Lease: number, WaitMs: &wait})
		if err != nil || l.State != view.LeaseWaiting {
			return l, err
		}
	}
}

func listLeasesCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Short:   "List leases: all of them for the host, and those that concern an agent for it",
		Example: "  parley lease ls\n  parley lease ls --as builder",
		RunE: func(c *cobra.Command, _ []string) error {
			all, err := api.ListLeases.Do(c.Context(), env, api.ListLeasesRequest{Acting: env.acting()})
			if err != nil {
				return err
			}
			env.noteNone(len(all.Leases), "nothing is leased")
			here, _ := os.Getwd() // only to show paths shorter
			return env.print(all.Leases, func() string {
				lines := make([]string, len(all.Leases))
				for i, l := range all.Leases {
					lines[i] = leaseLine(l, here, env.screen())
				}
				return strings.Join(lines, "\n")
			})
		},
	}
}

// leaseLine returns a lease as one line.
func leaseLine(l view.Lease, here string, screen terminal.Screen) string {
	patterns := make([]string, len(l.Patterns))
	for i, p := range l.Patterns {
		patterns[i] = terminal.Visible(strings.TrimPrefix(p, here+"/"))
	}
	who := l.Holder.String()
	if l.HolderName != "" {
		who = l.HolderName
	}
	line := fmt.Sprintf("%d. %s: %s", l.Lease, terminal.Visible(who), strings.Join(patterns, " "))
	if l.Shared {
		line += ", shared"
	}
	if l.Team != "" {
		line += ", of the team " + terminal.Quoted(l.Team)
	}
	if l.State == view.LeaseWaiting {
		line += ", waits behind " + leaseNumbers(l.Behind)
	} else {
		line += ", until " + screen.Moment(l.Until.Std(), l.Until.String())
	}
	if l.For != "" {
		line += ", for " + terminal.Quoted(l.For)
	}
	return line
}

func leaseNumbers(numbers []uint64) string {
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = strconv.FormatUint(n, 10)
	}
	return strings.Join(words, ", ")
}

// leaseNumber reads the number of a lease.
func leaseNumber(c *cobra.Command, text string) (uint64, error) {
	n, err := strconv.ParseUint(strings.TrimSuffix(text, "."), 10, 64)
	if err != nil {
		return 0, usage(c, "%s is no number of a lease: parley lease ls lists them", terminal.Quoted(text))
	}
	return n, nil
}

// checkTTL refuses a time that a request would leave out, and have the node's default for it.
func checkTTL(ttl duration) error {
	if time.Duration(ttl) < time.Millisecond {
		return parley.Refuse(parley.InvalidArgument, "--ttl %s: a lease is held for 1s to 24h", capabilities.Span(time.Duration(ttl))).WithHint("parley lease release ends one")
	}
	return nil
}

func renewLeaseCommand(env *environment) *cobra.Command {
	ttl := duration(30 * time.Minute)
	c := &cobra.Command{
		Use:     "renew NUMBER",
		Short:   "Have a lease end later",
		Example: "  parley lease renew 3 --ttl 1h",
		Args:    exactly("NUMBER"),
		RunE: func(c *cobra.Command, args []string) error {
			n, err := leaseNumber(c, args[0])
			if err != nil {
				return err
			}
			if err := checkTTL(ttl); err != nil {
				return err
			}
			return perform(c.Context(), env, api.RenewLease, api.RenewLeaseRequest{Acting: env.acting(), Lease: n, TTLMs: time.Duration(ttl).Milliseconds()}, func(l view.Lease) string {
				return fmt.Sprintf("lease %d is held until %s", n, env.screen().Moment(l.Until.Std(), l.Until.String()))
			})
		},
	}
	c.Flags().Var(&ttl, "ttl", "it ends so long from now (at most 24h)")
	return c
}

// endLeaseCommand returns a command that ends leases.
func endLeaseCommand(env *environment, verb, short, done string) *cobra.Command {
	return &cobra.Command{
		Use:     verb + " NUMBER",
		Short:   short,
		Example: "  parley lease " + verb + " 3",
		Args:    exactly("NUMBER"),
		RunE: func(c *cobra.Command, args []string) error {
			n, err := leaseNumber(c, args[0])
			if err != nil {
				return err
			}
			if err := api.ReleaseLease.Run(c.Context(), env, api.ReleaseLeaseRequest{Acting: env.acting(), Lease: n}); err != nil {
				return err
			}
			return env.print(map[string]uint64{done: n}, func() string { return fmt.Sprintf("lease %d is %s", n, done) })
		},
	}
}

// leasedTo returns the error of a call that writes what another agent has leased.
func leasedTo(l view.Lease) error {
	who := l.HolderName
	if who == "" {
		who = l.Holder.String()
	}
	return parley.Refuse(parley.Leased, "what the call writes, %s, is leased by %s (lease %d), until %s", parley.Quoted(strings.Join(l.Patterns, " "), 200), parley.Quoted(who, 80), l.Lease, l.Until).
		WithHint("parley send %s asks its holder; parley lease --wait waits for it", parley.Quoted(who, 80))
}
