package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"parley"
	"parley/actors"
	"parley/gateway"
	"parley/gateway/client"
	"parley/mailbox"
)

func (p *program) permitCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "permit",
		Short: "Decide on the calls that agents ask permission for",
		Example: `  parley permit ls
  parley permit allow fae
  parley permit deny fae 12 --message 'not on a Friday'
  parley permit allow fae --always`,
		Args: p.exactly(),
		RunE: func(c *cobra.Command, _ []string) error { return usage(c, "missing: ls, allow or deny") },
	}
	c.AddCommand(p.permitListCommand(), p.permitAllowCommand(), p.permitDenyCommand())
	return c
}

func (p *program) permitListCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the calls that wait for permission",
		Args:    p.exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			waiting, err := p.permissions(c.Context())
			if err != nil {
				return err
			}
			raw := make([]json.RawMessage, len(waiting))
			for i, w := range waiting {
				raw[i] = w.raw
			}
			return p.say(raw, func() string {
				lines := make([]string, len(waiting))
				for i, w := range waiting {
					lines[i] = w.line()
				}
				return strings.Join(lines, "\n")
			})
		},
	}
}

// permission is an approval that waits to be decided.
type permission struct {
	envelope
	raw json.RawMessage
}

func (p *program) permissions(ctx context.Context) ([]permission, error) {
	waiter := p.waiter(false)
	defer waiter.Close()
	waiting := []permission{}
	for m, err := range waiter.List(ctx, client.View{Pending: true, All: true}) {
		if err != nil {
			return nil, err
		}
		if m.Type != approvalType {
			continue
		}
		w := permission{raw: m.Raw}
		if err := json.Unmarshal(m.Raw, &w.envelope); err != nil {
			return nil, notANode(err)
		}
		waiting = append(waiting, w)
	}
	return waiting, nil
}

const approvalType = "approval"

func (p *program) permitAllowCommand() *cobra.Command {
	c, always := p.decideCommand("allow AGENT [FORM]", "Allow a call that an agent asks permission for")
	c.RunE = func(c *cobra.Command, args []string) error {
		return p.permit(c.Context(), args, decision(*always, mailbox.Once, mailbox.Always), "")
	}
	return c
}

func (p *program) permitDenyCommand() *cobra.Command {
	c, always := p.decideCommand("deny AGENT [FORM]", "Deny a call that an agent asks permission for")
	message := c.Flags().String("message", "", "say why, in `words`")
	c.RunE = func(c *cobra.Command, args []string) error {
		return p.permit(c.Context(), args, decision(*always, mailbox.Deny, mailbox.Never), *message)
	}
	return c
}

// decideCommand is what allowing and denying have in common.
func (p *program) decideCommand(use, short string) (c *cobra.Command, always *bool) {
	c = &cobra.Command{Use: use, Short: short, Args: p.between(1, 2, "AGENT", "FORM")}
	return c, c.Flags().Bool("always", false, "and all calls of its shape from now on")
}

// decision is the one for this call, or for all of its shape.
func decision(always bool, once, ever string) string {
	if always {
		return ever
	}
	return once
}

// permit decides on the one call that is meant.
func (p *program) permit(ctx context.Context, args []string, decision, reason string) error {
	which, err := p.pending(ctx, args)
	if err != nil {
		return err
	}
	texts := []gateway.Text{{Name: "decision", Text: decision}}
	if reason != "" {
		texts = append(texts, gateway.Text{Name: "reason", Text: reason})
	}
	number := strconv.FormatUint(which.Number, 10)
	var got json.RawMessage
	req := gateway.RespondFormRequest{Acting: p.acting(), Subject: gateway.About(number), Texts: texts}
	if err := p.call(ctx, "respond_form", req, &got); err != nil {
		return err
	}
	return p.sayOutcome(got, func(o *outcome) string {
		if o.Status != actors.StatusAnswered {
			return fmt.Sprintf("%s %s", o.Status, number)
		}
		return fmt.Sprintf("decided %s: %s", number, decision)
	})
}

// pending finds the approval that an agent, by the name that it is held under or its ID, waits for.
func (p *program) pending(ctx context.Context, args []string) (permission, error) {
	waiting, err := p.permissions(ctx)
	if err != nil {
		return permission{}, err
	}
	var found []permission
	for _, w := range waiting {
		if w.FromName != args[0] && w.From.String() != args[0] {
			continue
		}
		if len(args) == 1 || strconv.FormatUint(w.Number, 10) == args[1] || w.MessageID.String() == args[1] {
			found = append(found, w)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return permission{}, parley.Refuse(parley.NoPendingPermission, "%q waits for no permission", args[0]).
			WithHint("parley permit ls lists what waits")
	}
	numbers := make([]string, len(found))
	for i, w := range found {
		numbers[i] = strconv.FormatUint(w.Number, 10)
	}
	return permission{}, parley.Refuse(parley.Ambiguous, "%q waits for %d permissions: %s", args[0], len(found), strings.Join(numbers, ", ")).
		WithHint("name the one: parley permit allow %s %s", args[0], numbers[0])
}
