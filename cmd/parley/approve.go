package main

import (
	"encoding/json"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/terminal"
	"parley/gateway/api"
	"parley/mailbox/rule"
)

// decided is what became of a call that permission was asked for.
type decided struct {
	Allowed bool            `json:"allowed"`
	Form    capabilities.ID `json:"form,omitzero"`
	Rule    capabilities.ID `json:"rule,omitzero"` // the standing rule that decided, if one has
	Reason  string          `json:"reason,omitempty"`
}

func (p *program) approveCommand() *cobra.Command {
	var (
		key      string
		folder   string
		deadline moment
		timeout  duration
		noWait   bool
	)
	c := &cobra.Command{
		Use:   "approve TOOL INPUT",
		Short: "Ask for permission to call a tool",
		Long: `Asks the agent's host whether a tool may be called with an input, a JSON document, and waits. A standing rule
answers at once. Rules are for calls in one folder. Allowed is exit status 0; denied is NOT_PERMITTED.`,
		Example: `  parley approve shell '{"command":"git push"}' --as fae && git push
  parley approve shell '{"command":"git push"}' --as fae --no-wait`,
		Args: p.exactly("TOOL", "INPUT"),
	}
	f := c.Flags()
	f.StringVar(&key, "key", "", "idempotency `key`: asking again with it gives the same form")
	f.StringVar(&folder, "folder", "", "the `folder` that the call is made in (default: this one)")
	f.Var(&deadline, "deadline", "it expires then: a `time` from now (2h) or a moment (2026-01-31T12:00:00Z)")
	f.Var(&timeout, "timeout", "wait so `long` at most; the question stays")
	f.BoolVar(&noWait, "no-wait", false, "print the form's ID and do not wait")
	c.RunE = func(c *cobra.Command, args []string) error {
		if !json.Valid([]byte(args[1])) {
			return usage(c, "the input is no JSON document")
		}
		var asked struct {
			accepted
			Decided bool            `json:"decided"`
			Allowed bool            `json:"allowed"`
			Rule    capabilities.ID `json:"rule"`
		}
		where, err := filepath.Abs(folder)
		if err != nil {
			return err
		}
		if folder == "" && rule.CheckFolder(where) != nil {
			where = "" // one that rules cannot name
		}
		err = p.call(c.Context(), "approve", api.ApproveRequest{
			Acting: p.acting(), Tool: args[0], Input: json.RawMessage(args[1]), Folder: where, Key: key, Deadline: capabilities.At(deadline.at),
		}, &asked)
		switch {
		case err != nil:
			return err
		case asked.Decided:
			return p.sayDecided(decided{Allowed: asked.Allowed, Rule: asked.Rule, Reason: "a standing rule"})
		case noWait:
			return p.say(asked.accepted, asked.Form.String)
		}
		p.noteUnreachable(asked.Unreachable, "the host")
		raw, err := p.await(c.Context(), asked.Form.String(), time.Duration(timeout), true)
		if err != nil {
			return err
		}
		var o struct {
			Status  view.FormStatus
			Allowed bool
			Values  struct{ Reason string }
		}
		if err := json.Unmarshal(raw, &o); err != nil {
			return notANode(err)
		}
		if o.Status != view.StatusAnswered {
			return p.sayOutcome(raw, (*outcome).requestText)
		}
		return p.sayDecided(decided{Allowed: o.Allowed, Form: asked.Form, Reason: o.Values.Reason})
	}
	return c
}

func (p *program) sayDecided(d decided) error {
	if d.Allowed {
		return p.say(d, func() string { return "allowed" })
	}
	why := "the call was denied"
	if d.Reason != "" {
		why += ": " + terminal.Visible(d.Reason)
	}
	return parley.Refuse(parley.NotPermitted, "%s", why)
}
