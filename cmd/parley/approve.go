package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/terminal"
	"parley/gateway/api"
	"parley/mailbox/form"
	"parley/mailbox/rule"
)

// decided is the result of asking for permission to make a call.
type decided struct {
	Allowed bool            `json:"allowed"`
	Form    capabilities.ID `json:"form,omitzero"`
	Rule    capabilities.ID `json:"rule,omitzero"` // the standing rule that decided, if one has
	Reason  string          `json:"reason,omitempty"`
	Input   string          `json:"editedInput,omitempty"` // that is allowed instead of the one asked about
	Digest  string          `json:"editedDigest,omitempty"`
}

func approveCommand(env *environment) *cobra.Command {
	var (
		key      string
		asks     parley.Permission
		deadline moment
		timeout  duration
		noWait   bool
		editable bool
		remind   []string
		escalate []string
		votes    voteOptions
	)
	c := &cobra.Command{
		Use:   "approve TOOL INPUT",
		Short: "Ask for permission to call a tool",
		Long: `Asks the agent's host whether a tool may be called with an input, a JSON document, and waits. A standing rule
answers at once. Rules are for calls in one folder. Allowed is exit status 0; denied is NOT_PERMITTED. With --editable
the call may be allowed with another input, which is printed: that is the call to make then.

With --need 2 the call needs the host and another that agree: one to whom the host has forwarded the question, or to whom
it is escalated. No standing rule allows such a call, and none is made of it. One denial ends it, or with --no-veto the
host's, and the one after which too few are left.`,
		Example: `  parley approve shell '{"command":"git push"}' --as fae && git push
  parley approve shell '{"command":"git push"}' --as fae --no-wait
  parley approve shell '{"command":"git push"}' --as fae --need 2 --remind 10m --escalate 1h:ops`,
		Args: exactly("TOOL", "INPUT"),
	}
	f := c.Flags()
	f.StringVar(&key, "key", "", "idempotency `key`: asking again with it gives the same form")
	f.StringVar(&asks.Folder, "folder", "", "the `folder` that the call is made in (default: this one)")
	f.StringVar(&asks.Reason, "reason", "", "why the call is made, in `words` that are shown as the agent's own")
	f.StringVar(&asks.Part, "part", "", "the `name` of the part of the agent that makes it, such as a subagent")
	f.Var(&deadline, "deadline", "it expires then: a `time` from now (2h) or a moment (2026-01-31T12:00:00Z)")
	f.Var(&timeout, "timeout", "wait so `long` at most; the question stays")
	f.BoolVar(&editable, "editable", false, "make the call with the input that is allowed, which may be another one")
	routeFlags(c, &remind, &escalate)
	votes.needFlags(c)
	f.BoolVar(&noWait, "no-wait", false, "print the form's ID and do not wait")
	c.RunE = func(c *cobra.Command, args []string) error {
		if !json.Valid([]byte(args[1])) {
			return usage(c, "the input is no JSON document")
		}
		reminders, steps, err := routeOf(c, remind, escalate)
		if err != nil {
			return err
		}
		var asked view.Permitted
		where, err := callFolder(asks.Folder)
		if err != nil {
			return err
		}
		err = askWithin(c.Context(), env, timeout, "approve", api.ApproveRequest{Acting: env.acting(), Approval: parley.Approval{
			Tool:     args[0],
			Input:    json.RawMessage(args[1]),
			Folder:   where,
			Reason:   asks.Reason,
			Part:     asks.Part,
			Key:      key,
			Deadline: capabilities.At(deadline.at),
			Editable: editable,
			Remind:   reminders,
			Escalate: steps,
			Need:     votes.need,
			Veto:     votes.veto(),
		}}, &asked)
		switch {
		case err != nil:
			return err
		case asked.Decided:
			return printDecided(env, decided{Allowed: asked.Allowed, Rule: asked.Rule, Reason: "a standing rule"})
		case noWait:
			asked.Outcome = nil
			return env.print(asked.Asked, asked.Form.String)
		}
		env.noteUnreachable(asked.Unreachable, "the host")
		return awaitDecision(c.Context(), env, asked, time.Duration(timeout))
	}
	return c
}

// callFolder returns the absolute path of the folder of a call; "" for a present folder that rules cannot name.
func callFolder(folder string) (string, error) {
	path, err := filepath.Abs(folder)
	if folder == "" && rule.CheckFolder(path) != nil {
		path = ""
	}
	return path, err
}

// awaitDecision blocks until an approval is decided, and prints the decision.
func awaitDecision(ctx context.Context, env *environment, asked view.Permitted, timeout time.Duration) error {
	o, err := waitForForm(ctx, env, asked.Form.String(), waiting{timeout: timeout, known: true})
	if err != nil {
		return err
	}
	if o.Status != view.StatusAnswered {
		return printOutcome(env, o, requestText)
	}
	return printDecided(env, decided{Allowed: o.Allowed, Form: asked.Form, Reason: o.Text("reason"), Input: o.EditedInput, Digest: o.EditedDigest})
}

func printDecided(env *environment, d decided) error {
	if d.Allowed {
		return env.print(d, func() string {
			if d.Input != "" {
				return "allowed with another input\n" + terminal.Visible(d.Input)
			}
			return "allowed"
		})
	}
	why := "the call was denied"
	if d.Reason != "" {
		why += ": " + terminal.Visible(d.Reason)
	}
	return parley.Refuse(parley.NotPermitted, "%s", why)
}

func rulesCommand(env *environment) *cobra.Command {
	c := &cobra.Command{
		Use:     "rules",
		Short:   "List and remove an agent's standing rules",
		Long:    "A standing rule is made where a call is always allowed or denied. It covers that very call of that agent, or, where\na wider rule was chosen, the commands or files that its words name.",
		Example: "  parley agent rules ls fae\n  parley agent rules rm fae 01JQ…@N…",
	}
	c.AddCommand(rulesListCommand(env), rulesRemoveCommand(env))
	return c
}

func rulesListCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:     "ls AGENT",
		Aliases: []string{"list"},
		Short:   "List an agent's standing rules",
		Example: "  parley agent rules ls fae",
		Args:    exactly("AGENT"),

		ValidArgsFunction: completeArguments(env, api.CompleteNames),
		RunE: func(c *cobra.Command, args []string) error {
			rules, err := listAll(c.Context(), env, "list_rules",
				func(at api.Paging) any {
					return api.ListRulesRequest{Acting: env.acting(), Agent: args[0], Paging: at}
				},
				func(r api.ListRulesResponse) ([]view.Rule, api.Paged) { return r.Rules, r.Paged })
			if err != nil {
				return err
			}
			return printList(env, rules, "no standing rules", func() string {
				lines := make([]string, len(rules))
				for i, r := range rules {
					lines[i] = ruleLine(r, env.screen())
				}
				return strings.Join(lines, "\n")
			})
		},
	}
}

// ruleLine returns a rule as an item of a list. Its words are cut on a terminal that is narrower.
func ruleLine(r view.Rule, s terminal.Screen) string {
	ending := fmt.Sprintf("  used %d times", r.Uses)
	if r.Until != 0 {
		ending += "  until " + s.Moment(r.Until.Std(), r.Until.String())
	}
	return s.FitBetween(listedID(r.Rule, s)+"  ", ruleWords(r), ending)
}

// ruleWords returns a rule in words.
func ruleWords(r view.Rule) string {
	verb := "never"
	if r.Allow {
		verb = "always"
	}
	return verb + " " + terminal.Visible(r.Tool) + " " + terminal.Visible(r.Words)
}

// ruleText returns a rule in words, with its end.
func ruleText(r view.Rule, s terminal.Screen) string { return ruleWords(r) + untilText(r.Until, s) }

// untilText returns the end of a rule in words, behind the rule; "" for none.
func untilText(end capabilities.Time, s terminal.Screen) string {
	if end == 0 {
		return ""
	}
	return ", until " + s.Moment(end.Std(), end.String())
}

func rulesRemoveCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:     "rm AGENT RULE",
		Short:   "Remove a standing rule",
		Example: "  parley agent rules rm fae 01JQ…@N…",
		Args:    exactly("AGENT", "RULE"),

		ValidArgsFunction: completeArguments(env, api.CompleteNames),
		RunE: func(c *cobra.Command, args []string) error {
			rule, err := env.listedIDOf(c.Context(), args[1])
			if err != nil {
				return err
			}
			return change(env, c, "remove_rule", api.RemoveRuleRequest{Acting: env.acting(), Agent: args[0], Rule: rule}, args[1], "removed "+terminal.Visible(args[1]))
		},
	}
}

func grantAnswerCommand(env *environment) *cobra.Command {
	var (
		r        api.GrantAnswerRequest
		from     string
		file     string
		until    moment
		outcomes []string
	)
	c := &cobra.Command{
		Use:   "grant-answer NUMBER",
		Short: "Let whoever has a secret answer a form",
		Long: `Prints a secret, this once. Whoever shows it answers the form in the agent's place, with parley answer-with. The right
ends with the form. parley grants lists it, and parley revoke ends it, with all that derive from it. Without --outcome it
denies or allows a call once, or answers or declines a form.

To hand a right on, make a narrower one: with --from, or with the secret alone (--of FILE, and no NUMBER).`,
		Example: `  parley form grant-answer 3 --uses 1 --until 2h --name phone
  parley form grant-answer 3 --outcome deny
  parley form grant-answer --of secret --outcome deny`,
		Args:              between(0, 1, "[NUMBER]"),
		ValidArgsFunction: completeArguments(env, api.CompletePending),
	}
	c.Flags().StringSliceVar(&outcomes, "outcome", nil, "what it may do: `deny,once,always,never` for a call, answer,decline for a form")
	c.Flags().Var(&until, "until", "its end: a `time` from now (2h) or a moment (2026-01-31T12:00:00Z)")
	c.Flags().Uint32Var(&r.Uses, "uses", 0, "it is good for so many `uses` (default: any number)")
	c.Flags().StringVar(&r.Name, "name", "", "who receives it, in `words`")
	c.Flags().StringVar(&from, "from", "", "the `grant` that it derives from")
	c.Flags().StringVar(&file, "of", "", "`file` with the secret of the right that it derives from; - for standard input")
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		if (len(args) == 0) != (file != "") || file != "" && from != "" {
			return usage(c, "which form? give a NUMBER, or --of FILE")
		}
		r.Acting, r.Outcomes, r.Until = env.acting(), outcomes, capabilities.At(until.at)
		if file != "" {
			if r.Secret, err = readToken(env, file); err != nil {
				return err
			}
		} else {
			r.FormRef = api.RefTo(args[0])
		}
		if from != "" {
			if r.From, err = env.listedIDOf(c.Context(), from); err != nil {
				return err
			}
		}
		var made view.AnswerRight
		if err := env.call(c.Context(), "grant_answer", r, &made); err != nil {
			return err
		}
		return env.print(made, func() string { return made.Secret })
	}
	return c
}

func answerWithCommand(env *environment) *cobra.Command {
	var r api.AnswerWithRequest
	c := &cobra.Command{
		Use:   "answer-with FILE OUTCOME [FIELD:VALUE...]",
		Short: "Answer a form with the secret of a right",
		Long: `Answers a form in the place of the agent that made the right (parley form grant-answer). FILE has the secret; - is standard
input. OUTCOME is deny, once, always or never for a call, and answer or decline for a form. Sending the same again is safe.`,
		Example: `  parley form answer-with secret once
  parley form answer-with secret answer port:443`,
		Args: atLeast("FILE", "OUTCOME"),
	}
	c.Flags().StringVar(&r.Reason, "reason", "", "why, in `words`")
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		r.Acting, r.Outcome = env.acting(), args[1]
		if r.Secret, err = readToken(env, args[0]); err != nil {
			return err
		}
		for _, a := range args[2:] {
			t, err := form.SplitText(a)
			if err != nil {
				return asUsage(c, err)
			}
			r.Texts = append(r.Texts, t)
		}
		return settleForm(c.Context(), env, "answer_with", r, "by the right")
	}
	return c
}
