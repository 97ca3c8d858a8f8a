package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/terminal"
	"parley/gateway/api"
	"parley/mailbox/quota"
)

func nodesCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "nodes",
		Short: "List the other nodes",
		Long: `Lists the other nodes that this one knows: the host's name for theirs, or - for a node known only because
another told of it; whether it can be reached now; and how much mail waits for that. What waits is on disk, and
is sent when it can.`,
		Example: "  parley node ls\n  parley node ls --json",
		RunE: func(c *cobra.Command, _ []string) error {
			known, err := api.All(c.Context(), env, api.ListNodes, api.ListNodesRequest{Acting: env.acting()},
				func(r api.ListNodesResponse) []view.Peer { return r.Nodes })
			if err != nil {
				return err
			}
			return printList(env, known, "no other nodes", func() string { return nodeTable(known, env.screen()) })
		},
	}
}

func nodeTable(nodes []view.Peer, s terminal.Screen) string {
	rows := make([][]string, len(nodes))
	for i, n := range nodes {
		reachable, heard := s.Paint(terminal.Wrong, "unreachable"), "never heard"
		if n.Reachable {
			reachable = s.Paint(terminal.Right, "reachable")
		}
		if n.LastHeard != 0 {
			heard = "last heard " + s.Time(n.LastHeard.Std(), n.LastHeard.String())
		}
		rows[i] = []string{cell(n.Name), n.Node.String(), reachable, heard, fmt.Sprintf("%d waiting", n.Waiting)}
	}
	return s.Table([]terminal.Column{{Name: "NAME", Shrink: true}, {Name: "NODE", Shrink: true}, {Name: "STATE"}, {Name: "HEARD"}, {Name: "MAIL"}}, rows, false)
}

// noteUnreachable notes that an accepted message is sent later. JSON output has that in the result.
func (env *environment) noteUnreachable(unreachable bool, whose string) {
	if unreachable && !env.options.json {
		fmt.Fprintf(env.stderr, "parley: note: the node of %s cannot be reached now; it is sent when it can\n", whose)
	}
}

func peersCommand(env *environment) *cobra.Command {
	c := nodesCommand(env)
	c.Use, c.Short = "peers", "List, limit and remove other nodes"
	c.Example = "  parley node ls\n  parley node limit bob inbox=64MiB\n  parley node drop bob"
	c.Args = exactly()
	c.AddCommand(limitPeerCommand(env), dropPeerCommand(env))
	return c
}

func limitPeerCommand(env *environment) *cobra.Command {
	var reset bool
	c := &cobra.Command{
		Use:   "limit NODE [NAME=AMOUNT…]",
		Short: "Show or set another node's quotas",
		Long: `Shows what another node has this one hold, and its quotas; or sets some of them. NODE is its ID, or the
host's name for its host. Each quota but processor is for every mailbox that the node sends to: forms, daily, inbox,
grants (see "parley agent quota --help"). Mail over a quota is refused with QUOTA_EXCEEDED, and its sender is told.`,
		Example: "  parley node limit bob\n  parley node limit bob inbox=64MiB forms=100\n  parley node limit bob --reset",
		Args: func(c *cobra.Command, args []string) error {
			return exactly("NODE")(c, args[:min(len(args), 1)])
		},
	}
	c.Flags().BoolVar(&reset, "reset", false, "drop what was set for the node before")
	c.RunE = func(c *cobra.Command, args []string) error {
		quotas, err := quota.Parse(args[1:])
		if err != nil {
			return err
		}
		return perform(c.Context(), env, api.LimitPeer, api.LimitPeerRequest{Acting: env.acting(), Node: args[0], Quotas: quotas, Reset: reset},
			func(got view.Peer) string { return quotaTable(got.Use.Used, got.Use.Quotas) })
	}
	return c
}

func dropPeerCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "drop NODE",
		Short: "Remove another node",
		Long: `Ends what this node has to do with another: its connection is cut, its mail is refused, what waits for it is
given up, what its agents were given is revoked, and the nodes that only it had introduced are forgotten. NODE is its
ID, or the host's name for its host. A new invitation brings it back.`,
		Example: "  parley node drop bob",
		Args:    exactly("NODE"),
		RunE: func(c *cobra.Command, args []string) error {
			return perform(c.Context(), env, api.DropPeer, api.DropPeerRequest{Acting: env.acting(), Node: args[0]}, func(got view.DroppedPeer) string {
				return fmt.Sprintf("dropped %s: %d names freed, %d grants revoked, %d outbox items given up, %d nodes forgotten that it had introduced",
					got.Node, got.Names, got.Revoked, got.Given, got.Introduced)
			})
		},
	}
}

func nodeKeyCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "key",
		Short: "Print the node's public key",
		Long: `Prints the node's public key, which is its ID. Whoever has it verifies by it what the node has signed, as "parley proof verify" does. It
is no secret.`,
		Example: "  parley node key",
		Args:    exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			got, err := api.Status.Do(c.Context(), env, api.NodeRequest{Acting: env.acting()})
			if err != nil {
				return err
			}
			return env.print(map[string]capabilities.NodeID{"key": got.Node}, func() string { return got.Node.String() })
		},
	}
}

// inviteOptions are the options of an invitation.
type inviteOptions struct {
	expires      moment
	revoke, list bool
}

func inviteCommand(env *environment) *cobra.Command {
	var o inviteOptions
	c := &cobra.Command{
		Use:   "invite NAME",
		Short: "Create an invitation for another node",
		Long: `Prints an invitation for the host of another node, who then takes it up with "parley node accept". Afterwards
each of the two holds the other, this one under NAME. An invitation is good once, and for a day unless
--expires says otherwise. It is a secret: whoever has it can be NAME.`,
		Example: `  parley node invite bob > invitation     give it to bob, who runs: parley node accept alice < invitation
  parley node invite bob --expires 1h
  parley node invite --list
  parley node invite --revoke bob`,
		Args: func(c *cobra.Command, args []string) error {
			if o.list {
				return exactly()(c, args)
			}
			return exactly("NAME")(c, args)
		},
		ValidArgsFunction: func(c *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if !o.revoke {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return completeArguments(env, api.CompleteInvitations)(c, args, typed)
		},
		RunE: func(c *cobra.Command, args []string) error { return runInvite(env, c, o, strings.Join(args, "")) },
	}
	c.Flags().Var(&o.expires, "expires", "it is good until then: a `time` from now (1h) or a moment (2026-01-31T12:00:00Z); default 24h")
	c.Flags().BoolVar(&o.revoke, "revoke", false, "take the open invitation for NAME back")
	c.Flags().BoolVar(&o.list, "list", false, "list the invitations that are open")
	return c
}

func runInvite(env *environment, c *cobra.Command, o inviteOptions, name string) error {
	switch {
	case o.list && o.revoke:
		return usage(c, "--list and --revoke do not go together")
	case (o.list || o.revoke) && o.expires.text != "":
		return usage(c, "--expires is for a new invitation")
	case o.list:
		return printInvitations(env, c)
	case o.revoke:
		return change(env, c, api.Uninvite, api.NameRequest{Acting: env.acting(), Name: name}, name, "invitation taken back: "+terminal.Quoted(name))
	}
	made, err := api.Invite.Do(c.Context(), env, api.InviteRequest{
		Acting: env.acting(), Name: name, Expires: capabilities.At(o.expires.at),
	})
	if err != nil {
		return err
	}
	return env.print(made, func() string { return terminal.Visible(made.Locator) })
}

func printInvitations(env *environment, c *cobra.Command) error {
	open, err := api.All(c.Context(), env, api.ListInvitations, api.ListInvitationsRequest{Acting: env.acting()},
		func(r api.ListInvitationsResponse) []view.Invitation { return r.Invitations })
	if err != nil {
		return err
	}
	return printList(env, open, "no open invitations", func() string {
		shown, s := make([]string, len(open)), env.screen()
		for i, v := range open {
			shown[i] = fmt.Sprintf("%s until %s", terminal.Visible(v.Name), s.Moment(v.Until.Std(), v.Until.String()))
		}
		return strings.Join(shown, "\n")
	})
}

func acceptCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "accept NAME [LOCATOR]",
		Short: "Accept an invitation",
		Long: `Takes up the invitation of another node's host, whom this node's host then holds under NAME. Without LOCATOR
the invitation is read from standard input, where other users of the machine do not see it. If the other node
cannot be reached now, nothing is used up: try again.`,
		Example: `  parley node accept alice < invitation
  ssh alice@there parley node invite bob | parley node accept alice`,
		Args:              between(1, 2, "NAME", "[LOCATOR]"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			locator, err := readInvitation(env, args[1:])
			if err != nil {
				return err
			}
			return perform(c.Context(), env, api.Accept, api.AcceptRequest{Acting: env.acting(), Name: args[0], Locator: locator}, func(accepted view.Accepted) string {
				return fmt.Sprintf("%s is the host of node %s", terminal.Visible(accepted.Name), accepted.Node)
			})
		},
	}
}

// maxInvitation bounds the input of an invitation. A locator is far shorter.
const maxInvitation = 8 << 10

// readInvitation returns the locator in the argument, or else on standard input.
func readInvitation(env *environment, given []string) (string, error) {
	text, from := strings.Join(given, ""), "the argument"
	if len(given) == 0 || text == "-" {
		if env.interactive() {
			fmt.Fprintln(env.stderr, "parley: paste the invitation and press Enter, then Ctrl-D")
		}
		from = "standard input"
		read, err := terminal.Read(env.stdin, from, maxInvitation)
		if err != nil {
			return "", err
		}
		text = string(read)
	}
	text = strings.TrimSpace(text)
	switch {
	case len(text) > maxInvitation:
		return "", terminal.TooLong(from, maxInvitation)
	case text == "":
		return "", parley.Refuse(parley.InvalidArgument, "%s has no invitation", from).WithHint(`the other node's host makes one with: parley node invite NAME`)
	}
	return text, nil
}
