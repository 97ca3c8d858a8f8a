package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/terminal"
	"parley/gateway"
	"parley/gateway/api"
)

// inviting are the options of an invitation.
type inviting struct {
	expires      moment
	revoke, list bool
}

func (p *program) inviteCommand() *cobra.Command {
	var o inviting
	c := &cobra.Command{
		Use:   "invite NAME",
		Short: "Invite another node",
		Long: `Prints an invitation for the host of another node, who then takes it up with "parley accept". Afterwards
each of the two holds the other, this one under NAME. An invitation is good once, and for a day unless
--expires says otherwise. It is a secret: whoever has it can be NAME.`,
		Example: `  parley invite bob > invitation     give it to bob, who runs: parley accept alice < invitation
  parley invite bob --expires 1h
  parley invite --list
  parley invite --revoke bob`,
		Args: func(c *cobra.Command, args []string) error {
			if o.list {
				return p.exactly()(c, args)
			}
			return p.exactly("NAME")(c, args)
		},
		ValidArgsFunction: func(c *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if !o.revoke {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return p.completeArguments(gateway.CompleteInvitations)(c, args, typed)
		},
		RunE: func(c *cobra.Command, args []string) error { return p.invite(c, o, strings.Join(args, "")) },
	}
	c.Flags().Var(&o.expires, "expires", "it is good until then: a `time` from now (1h) or a moment (2026-01-31T12:00:00Z); default 24h")
	c.Flags().BoolVar(&o.revoke, "revoke", false, "take the open invitation for NAME back")
	c.Flags().BoolVar(&o.list, "list", false, "list the invitations that are open")
	return c
}

func (p *program) invite(c *cobra.Command, o inviting, name string) error {
	switch {
	case o.list && o.revoke:
		return usage(c, "--list and --revoke do not go together")
	case (o.list || o.revoke) && o.expires.text != "":
		return usage(c, "--expires is for a new invitation")
	case o.list:
		return p.listInvitations(c)
	case o.revoke:
		return p.change(c, "uninvite", api.NameRequest{Acting: p.acting(), Name: name}, name)
	}
	var made view.Invitation
	err := p.call(c.Context(), "invite", api.InviteRequest{
		Acting: p.acting(), Name: name, Expires: capabilities.At(o.expires.at),
	}, &made)
	if err != nil {
		return err
	}
	return p.say(made, func() string { return terminal.Visible(made.Locator) })
}

func (p *program) listInvitations(c *cobra.Command) error {
	open, err := listAll(c.Context(), p, "list_invitations",
		func(at api.Paging) any { return api.ListInvitationsRequest{Acting: p.acting(), Paging: at} },
		func(r api.ListInvitationsResponse) ([]view.Invitation, api.Paged) {
			return r.Invitations, r.Paged
		})
	if err != nil {
		return err
	}
	return p.say(open, func() string {
		shown := make([]string, len(open))
		for i, v := range open {
			shown[i] = fmt.Sprintf("%s until %s", terminal.Visible(v.Name), v.Until)
		}
		return strings.Join(shown, "\n")
	})
}

func (p *program) acceptCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "accept NAME [LOCATOR]",
		Short: "Take up another node's invitation",
		Long: `Takes up the invitation of another node's host, whom this node's host then holds under NAME. Without LOCATOR
the invitation is read from standard input, where other users of the machine do not see it. If the other node
cannot be reached now, nothing is used up: try again.`,
		Example: `  parley accept alice < invitation
  ssh alice@there parley invite bob | parley accept alice`,
		Args:              p.between(1, 2, "NAME", "[LOCATOR]"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			locator, err := p.invitation(args[1:])
			if err != nil {
				return err
			}
			var accepted view.Accepted
			err = p.call(c.Context(), "accept", api.AcceptRequest{Acting: p.acting(), Name: args[0], Locator: locator}, &accepted)
			if err != nil {
				return err
			}
			return p.say(accepted, func() string {
				return fmt.Sprintf("%s is the host of node %s", terminal.Visible(accepted.Name), accepted.Node)
			})
		},
	}
}

// maxInvitation bounds what is read of an invitation: a locator is far shorter.
const maxInvitation = 8 << 10

// invitation gives the locator that is the argument, if there is one, or comes on standard input.
func (p *program) invitation(given []string) (string, error) {
	text, from := strings.Join(given, ""), "the argument"
	if len(given) == 0 || text == "-" {
		if p.interactive() {
			fmt.Fprintln(p.stderr, "parley: paste the invitation and press Enter, then Ctrl-D")
		}
		from = "standard input"
		read, err := terminal.Read(p.stdin, from, maxInvitation)
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
		return "", parley.Refuse(parley.InvalidArgument, "%s has no invitation", from).WithHint(`the other node's host makes one with: parley invite NAME`)
	}
	return text, nil
}
