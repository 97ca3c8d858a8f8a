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
	"parley/capabilities"
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
			calls := make([]pendingCall, len(waiting))
			for i, w := range waiting {
				calls[i] = w.call()
			}
			return p.say(calls, func() string {
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
type permission struct{ envelope }

// pendingCall is a call that an agent waits to make, as JSON says it.
type pendingCall struct {
	AgentID capabilities.ID   `json:"agentId"`
	Agent   string            `json:"agent,omitempty"` // the caller's name for it
	Form    capabilities.ID   `json:"form"`
	Number  uint64            `json:"number"` // of the approval, in the caller's mailbox
	Tool    string            `json:"tool"`
	Input   json.RawMessage   `json:"input"`
	AskedAt capabilities.Time `json:"askedAt"`
}

func (w permission) call() pendingCall {
	c := pendingCall{
		AgentID: w.From, Agent: w.FromName, Form: w.MessageID, Number: w.Number, Tool: w.Title, Input: json.RawMessage(w.Description), AskedAt: w.Date,
	}
	if !json.Valid(c.Input) { // a stranger's
		c.Input, _ = json.Marshal(w.Description) // a string, which can always be
	}
	return c
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
		w := permission{}
		if err := json.Unmarshal(m.Raw, &w.envelope); err != nil {
			return nil, notANode(err)
		}
		waiting = append(waiting, w)
	}
	return waiting, nil
}

const approvalType = "approval"

func (p *program) permitAllowCommand() *cobra.Command {
	c, how := p.decideCommand("allow AGENT [FORM]", "Allow a call that an agent asks permission for")
	c.Flags().Var(&how.until, "until", "with --always: the rule ends then, a `time` from now (8h) or a moment")
	c.RunE = func(c *cobra.Command, args []string) error {
		how.decision = mailbox.Once
		if how.always {
			how.decision = mailbox.Always
		}
		return p.permit(c, args, *how)
	}
	return c
}

func (p *program) permitDenyCommand() *cobra.Command {
	c, how := p.decideCommand("deny AGENT [FORM]", "Deny a call that an agent asks permission for")
	c.Flags().StringVar(&how.reason, "message", "", "say why, in `words`")
	c.Flags().Var(&how.until, "until", "with --always: the rule ends then, a `time` from now (8h) or a moment")
	c.RunE = func(c *cobra.Command, args []string) error {
		how.decision = mailbox.Deny
		if how.always {
			how.decision = mailbox.Never
		}
		return p.permit(c, args, *how)
	}
	return c
}

// decree is what is decided about calls.
type decree struct {
	decision, reason string
	always           bool   // for all calls of the same shape from now on
	until            moment // when that ends
	all              bool   // all that the agent waits to make
}

// decideCommand is what allowing and denying have in common.
func (p *program) decideCommand(use, short string) (*cobra.Command, *decree) {
	how := &decree{}
	verb, _, _ := strings.Cut(use, " ")
	c := &cobra.Command{
		Use:   use,
		Short: short,
		Long:  short + ". FORM is its number in parley permit ls, or the form's ID; it is needed where there are several.",

		Example:           "  parley permit " + verb + " fae\n  parley permit " + verb + " fae 12 --always --until 8h",
		Args:              p.between(1, 2, "AGENT", "FORM"),
		ValidArgsFunction: p.completeArguments(gateway.CompleteNames, gateway.CompletePending),
	}
	c.Flags().BoolVar(&how.always, "always", false, "and all calls of its shape from now on")
	c.Flags().BoolVar(&how.all, "all", false, "all calls that the agent waits to make")
	return c, how
}

// permit decides on the calls that are meant.
func (p *program) permit(c *cobra.Command, args []string, how decree) error {
	switch {
	case how.until.text != "" && !how.always:
		return usage(c, "--until is for a standing rule: give --always too")
	case how.all && len(args) > 1:
		return usage(c, "give a FORM or --all")
	}
	which, err := p.pending(c, args, how.all)
	if err != nil {
		return err
	}
	for _, w := range which {
		if err := p.rule(c.Context(), w, how); err != nil {
			return err
		}
	}
	return nil
}

// rule decides on one call.
func (p *program) rule(ctx context.Context, which permission, how decree) error {
	texts := []gateway.Text{{Name: "decision", Text: how.decision}}
	if how.reason != "" {
		texts = append(texts, gateway.Text{Name: "reason", Text: how.reason})
	}
	number := strconv.FormatUint(which.Number, 10)
	var got json.RawMessage
	req := gateway.RespondFormRequest{Acting: p.acting(), Subject: gateway.About(number), Texts: texts}
	if err := p.call(ctx, "respond_form", req, &got); err != nil {
		return err
	}
	if how.until.text != "" {
		req := gateway.LimitRuleRequest{Acting: p.acting(), Agent: which.From.String(), Form: which.MessageID, Until: capabilities.At(how.until.at)}
		if err := p.call(ctx, "limit_rule", req, nil); err != nil {
			return err
		}
	}
	return p.sayOutcome(got, func(o *outcome) string {
		if o.Status != actors.StatusAnswered {
			return fmt.Sprintf("%s %s", o.Status, number)
		}
		return fmt.Sprintf("decided %s: %s", number, how.decision)
	})
}

// pending finds the approvals that an agent waits for: the one that is meant, or all.
func (p *program) pending(c *cobra.Command, args []string, all bool) ([]permission, error) {
	_, agent, err := p.fetchAgent(c, args[0])
	if err != nil {
		return nil, err
	}
	waiting, err := p.permissions(c.Context())
	if err != nil {
		return nil, err
	}
	var found []permission
	for _, w := range waiting {
		if w.From == agent.ID && (len(args) == 1 || strconv.FormatUint(w.Number, 10) == args[1] || w.MessageID.String() == args[1]) {
			found = append(found, w)
		}
	}
	switch {
	case len(found) == 0:
		return nil, parley.Refuse(parley.NoPendingPermission, "%q waits for no permission", args[0]).
			WithHint("parley permit ls lists what waits")
	case len(found) == 1 || all:
		return found, nil
	}
	numbers := make([]string, len(found))
	for i, w := range found {
		numbers[i] = strconv.FormatUint(w.Number, 10)
	}
	return nil, parley.Refuse(parley.Ambiguous, "%q waits for %d permissions: %s", args[0], len(found), strings.Join(numbers, ", ")).
		WithHint("name the one, as in parley permit allow %s %s, or give --all", args[0], numbers[0])
}
