package main

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

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
  parley permit allow 12
  parley permit deny 12 --message 'not on a Friday'
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
					lines[i] = w.line() + w.rulesText()
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
	Digest  string            `json:"digest"` // of the tool and the input: it is decided by this, too
	Offers  []string          `json:"offers"` // the rules that --always --rule chooses from, that for the very call first
	Note    string            `json:"note,omitempty"`
	AskedAt capabilities.Time `json:"askedAt"`
}

func (w permission) call() pendingCall {
	c := pendingCall{
		AgentID: w.From, Agent: w.FromName, Form: w.MessageID, Number: w.Number, Tool: w.Title, Input: json.RawMessage(w.Description), Digest: w.Digest, AskedAt: w.Date,
		Offers: w.offers(), Note: w.note(),
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
	return p.allowing("allow NUMBER|ID|DIGEST|AGENT [FORM]", "Allow a call that an agent asks permission for", []string{"AGENT", "FORM"}, p.permit)
}

func (p *program) permitDenyCommand() *cobra.Command {
	return p.denying("deny NUMBER|ID|DIGEST|AGENT [FORM]", "Deny a call that an agent asks permission for", []string{"AGENT", "FORM"}, p.permit)
}

// allowCommand and denyCommand are for who has no time: they take what parley inbox and parley permit ls number.
func (p *program) allowCommand() *cobra.Command {
	c := p.allowing("allow NUMBER", "Allow the call of an approval", []string{"NUMBER"}, p.decideOne)
	c.Long = "Allows the call that an approval asks about, and prints it in full. NUMBER is that of parley inbox and parley permit ls;\nthe form's ID and the call's digest are taken too."
	c.Example = "  parley allow 12\n  parley allow 12 --always --until 8h"
	return c
}

func (p *program) denyCommand() *cobra.Command {
	c := p.denying("deny NUMBER [REASON]", "Deny the call of an approval", []string{"NUMBER", "REASON"}, func(c *cobra.Command, args []string, how decision) error {
		if len(args) == 2 {
			if how.reason != "" {
				return usage(c, "give the REASON once")
			}
			how.reason = args[1]
		}
		return p.decideOne(c, args[:1], how)
	})
	c.Long = "Denies the call that an approval asks about, and prints it in full. The agent is told the reason. NUMBER is that of\nparley inbox and parley permit ls; the form's ID and the call's digest are taken too."
	c.Example = "  parley deny 12 'not on a Friday'\n  parley deny 12 --always"
	return c
}

// allowing makes a command that allows calls.
func (p *program) allowing(use, short string, takes []string, decide func(*cobra.Command, []string, decision) error) *cobra.Command {
	c, how := p.deciding(use, short, takes)
	c.RunE = func(c *cobra.Command, args []string) error {
		how.choice = mailbox.Once
		if how.always {
			how.choice = mailbox.Always
		}
		return decide(c, args, *how)
	}
	return c
}

// denying makes a command that denies calls.
func (p *program) denying(use, short string, takes []string, decide func(*cobra.Command, []string, decision) error) *cobra.Command {
	c, how := p.deciding(use, short, takes)
	c.Flags().StringVar(&how.reason, "message", "", "say why, in `words`")
	c.RunE = func(c *cobra.Command, args []string) error {
		how.choice = mailbox.Deny
		if how.always {
			how.choice = mailbox.Never
		}
		return decide(c, args, *how)
	}
	return c
}

// deciding is what allowing and denying have in common.
func (p *program) deciding(use, short string, takes []string) (*cobra.Command, *decision) {
	how := &decision{}
	verb, _, _ := strings.Cut(use, " ")
	c := &cobra.Command{
		Use:   use,
		Short: short,
		Long: short + `, and print it in full. A call is named by its number in parley permit ls, by its form's ID or by
its digest. With an AGENT alone, a terminal is shown what the agent waits to do and asked about it; elsewhere it
is taken only if that is one call.`,

		Example:           "  parley permit " + verb + " 12\n  parley permit " + verb + " fae\n  parley permit " + verb + " fae 12 --always --until 8h\n  parley permit " + verb + " 12 --always --rule 2",
		Args:              p.between(1, len(takes), takes...),
		ValidArgsFunction: p.completeArguments(gateway.CompletePending),
	}
	c.Flags().BoolVar(&how.always, "always", false, "and from now on, by a standing rule: for that very call if no --rule is given; the rule is printed")
	c.Flags().StringVar(&how.rule, "rule", "", "with --always: make this rule, by its `number` or words in parley permit ls")
	c.Flags().Var(&how.until, "until", "with --always: the rule ends then, a `time` from now (8h) or a moment")
	if strings.Contains(use, "AGENT") {
		c.ValidArgsFunction = p.completeArguments(gateway.CompleteNames, gateway.CompletePending)
		c.Flags().BoolVar(&how.all, "all", false, "all calls that the agent waits to make")
	}
	return c, how
}
