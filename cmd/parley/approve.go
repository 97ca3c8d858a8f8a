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
	"parley/cmd/parley/shell"
	"parley/cmd/parley/terminal"
	"parley/gateway/api"
	"parley/mailbox"
	"parley/mailbox/form"
	"parley/mailbox/rule"
)

// decided is the result of asking for permission to make a call.
type decided struct {
	Allowed bool            `json:"allowed"`
	Form    capabilities.ID `json:"form,omitzero"`
	Rule    capabilities.ID `json:"rule,omitzero"`    // the standing rule that decided, if one has
	Mandate capabilities.ID `json:"mandate,omitzero"` // that it was charged to, if one covers it
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
		passkey  bool
	)
	c := &cobra.Command{
		Use:   "approve TOOL INPUT",
		Short: "Ask for permission to call a tool",
		Long: `Asks the agent's host whether a tool may be called with an input, a JSON document, and waits. A standing rule
answers at once. Rules are for calls in one folder. Allowed is exit status 0; denied is NOT_PERMITTED. With --editable
the call may be allowed with another input, which is printed: that is the call to make then.

With --need 2 the call needs the host and another that agree: one to whom the host has forwarded the question, or to whom
it is escalated. No standing rule allows such a call, and none is made of it. One denial ends it, or with --no-veto the
host's, and the one after which too few are left.

With --passkey the host allows the call on the page, signed with a passkey. No rule, mandate or reviewer allows it, and no
rule is made of it. Denying it needs no passkey.`,
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
	passkeyFlag(c, &passkey)
	f.BoolVar(&noWait, "no-wait", false, "print the form's ID and do not wait")
	c.RunE = func(c *cobra.Command, args []string) error {
		if !json.Valid([]byte(args[1])) {
			return usage(c, "the input is no JSON document")
		}
		reminders, steps, err := routeOf(c, remind, escalate)
		if err != nil {
			return err
		}
		where, err := callFolder(asks.Folder)
		if err != nil {
			return err
		}
		asked, err := askWithin(c.Context(), env, timeout, api.Approve, api.ApproveRequest{Acting: env.acting(), Approval: parley.Approval{
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
			Passkey:  passkey,
		}})
		switch {
		case err != nil:
			return err
		case asked.Leased != nil:
			return leasedTo(*asked.Leased)
		case asked.Decided:
			why := "a standing rule"
			if !asked.Mandate.IsZero() {
				why = "a mandate"
			}
			return printDecided(env, decided{Allowed: asked.Allowed, Rule: asked.Rule, Mandate: asked.Mandate, Reason: why})
		}
		env.noteVotes(c.Context(), votes, capabilities.NameHost, steps)
		if noWait {
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
		Short:   "List an agent's standing rules, try, propose and make others, pause and remove them",
		Long:    "A standing rule is made where a call is always allowed or denied. It covers that very call of that agent, or, where\na wider rule was chosen, the commands or files that its words name.",
		Example: "  parley agent rules ls fae\n  parley agent rules try 12\n  parley agent rules propose fae\n  parley agent rules rm fae 01JQ…@N…",
	}
	c.AddCommand(rulesListCommand(env), rulesTryCommand(env), rulesProposeCommand(env), rulesMakeCommand(env), rulesPauseCommand(env, "pause", "Pause"), rulesPauseCommand(env, "resume", "Resume"), rulesRemoveCommand(env))
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
			rules, err := api.All(c.Context(), env, api.ListRules, api.ListRulesRequest{Acting: env.acting(), Agent: args[0]},
				func(r api.ListRulesResponse) []view.Rule { return r.Rules })
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
	if r.Paused {
		ending += "  paused"
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

func rulesTryCommand(env *environment) *cobra.Command {
	var deny bool
	c := &cobra.Command{
		Use:   "try NUMBER|AGENT [RULE…]",
		Short: "Try rules on an agent's past calls, without making them",
		Long: `Says how many of the calls that an agent has asked about so far a rule would have decided, and how many of these against the decision
of whoever was asked. NUMBER is an approval: the rules are those that it offers, by their numbers or IDs in "parley permit show".
With an AGENT they are its standing rules, by their IDs. Without RULE all are tried. Calls that a rule decided are not among
those of the past: nobody decided them. A rule that says nothing against you in the past promises nothing of what is to come.`,
		Example: "  parley agent rules try 12\n  parley agent rules try 12 2\n  parley agent rules try fae",
		Args: func(c *cobra.Command, args []string) error {
			return exactly("NUMBER|AGENT")(c, args[:min(len(args), 1)])
		},
		ValidArgsFunction: completeArguments(env, api.CompleteNames),
	}
	c.Flags().BoolVar(&deny, "deny", false, "of an approval: try the rules as ones that deny")
	c.RunE = func(c *cobra.Command, args []string) error {
		r := api.TryRulesRequest{Acting: env.acting(), Deny: deny}
		if strings.Trim(args[0], "0123456789") == "" {
			w, _, err := findApproval(c.Context(), env, args[0])
			if err != nil {
				return err
			}
			r.FormRef = api.RefTo(args[0])
			for _, chosen := range args[1:] {
				id, err := offeredID(w, chosen)
				if err != nil {
					return err
				}
				r.Offers = append(r.Offers, id)
			}
		} else {
			r.Agent = args[0]
			for _, id := range args[1:] {
				rule, err := env.listedIDOf(c.Context(), id)
				if err != nil {
					return err
				}
				r.Rules = append(r.Rules, rule)
			}
		}
		t, err := api.TryRules.Do(c.Context(), env, r)
		if err != nil {
			return err
		}
		env.noteNone(len(t.Rules), "no standing rules")
		return env.print(t, func() string { return trialText(t) })
	}
	return c
}

func rulesProposeCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "propose AGENT",
		Short: "Propose rules that follow from what was always decided alike",
		Long: `Lists rules that an agent does not have, and that would have decided five calls or more of the past, all as you did. None is proposed
that covers a call of high risk. "parley agent rules make" makes one.`,
		Example:           "  parley agent rules propose fae",
		Args:              exactly("AGENT"),
		ValidArgsFunction: completeArguments(env, api.CompleteNames),
		RunE: func(c *cobra.Command, args []string) error {
			t, err := api.ProposeRules.Do(c.Context(), env, api.ProposeRulesRequest{Acting: env.acting(), Agent: args[0]})
			if err != nil {
				return err
			}
			env.noteNone(len(t.Rules), "no rules follow from what was decided")
			return env.print(t, func() string {
				text := trialText(t)
				for _, r := range t.Rules {
					text += "\nparley agent rules make " + shell.Word(args[0]) + " " + terminal.Visible(r.Proposal)
				}
				return text
			})
		},
	}
}

// triedRule returns a rule that was tried in words.
func triedRule(r view.TriedRule) string {
	return ruleWords(view.Rule{Tool: r.Tool, Words: r.Words, Allow: r.Allow})
}

// offeredID returns the ID of an offer by its number or ID; that of the very call too.
func offeredID(w permission, chosen string) (string, error) {
	offer, err := w.offer(chosen)
	if err == nil && offer.ID == "" {
		offer = mailbox.OffersOf(w.Permission)[0]
	}
	return offer.ID, err
}

// trialText says what rules would have decided.
func trialText(t view.Trial) string {
	var lines []string
	for i, r := range t.Rules {
		lines = append(lines, fmt.Sprintf("%d. %s", i+1, triedRule(r)), "   "+triedWords(r))
		for _, e := range r.Examples {
			lines = append(lines, fmt.Sprintf("   against it: %s", terminal.Visible(parley.Cut(e.Input, 200))))
		}
	}
	if len(t.Rules) == 0 {
		return ""
	}
	last := fmt.Sprintf("of %d past calls that were asked about", t.Calls)
	if t.Long > 0 {
		last += fmt.Sprintf("; %d of them are too long to try", t.Long)
	}
	if t.More {
		last += "; older ones were not tried"
	}
	if t.Behind > 0 {
		last += "; the newest are not indexed yet"
	}
	return strings.Join(append(lines, last), "\n")
}

// triedWords says how a rule did on the past.
func triedWords(r view.TriedRule) string {
	if r.Covered == 0 {
		return "would have decided none"
	}
	text := fmt.Sprintf("would have decided %d: %d you allowed, %d you denied", r.Covered, r.Allowed, r.Denied)
	if open := r.Covered - r.Allowed - r.Denied; open > 0 {
		text += fmt.Sprintf(", %d nobody decided", open)
	}
	if r.Against > 0 {
		text += fmt.Sprintf("; %d against your decision", r.Against)
	}
	return text
}

func rulesMakeCommand(env *environment) *cobra.Command {
	var (
		offer string
		never bool
		until moment
	)
	c := &cobra.Command{
		Use:   "make NUMBER | make AGENT PROPOSAL",
		Short: "Make a standing rule of what was decided",
		Long: `Makes a standing rule for calls like one that was allowed or denied before. It covers that very call, or with --rule what one of the
rules covers that the call offered: parley permit show lists them with their IDs. With an AGENT it makes a rule that
"parley agent rules propose" proposes, by the name that it has there. That is refused if the rule does not follow any more: something was
decided otherwise meanwhile.`,
		Example:           "  parley agent rules make 12\n  parley agent rules make 12 --never --until 8h\n  parley agent rules make fae always-commands-0b1c…",
		Args:              between(1, 2, "NUMBER|AGENT [PROPOSAL]"),
		ValidArgsFunction: completeArguments(env, api.CompleteNames),
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		r := api.MakeRuleRequest{Acting: env.acting(), Offer: offer, Never: never}
		if until.text != "" {
			r.Until = capabilities.At(until.at)
		}
		if len(args) == 2 {
			r.Agent, r.Proposal = args[0], args[1]
		} else {
			m, err := api.GetMessage.Do(c.Context(), env, api.MessageRequest{Acting: env.acting(), FormRef: api.RefTo(args[0])})
			if err != nil {
				return err
			}
			r.Agent, r.Form = m.From.String(), m.MessageID
		}
		return perform(c.Context(), env, api.MakeRule, r,
			func(made view.TriedRule) string { return "made: " + triedRule(made) + untilText(r.Until, env.screen()) })
	}
	f := c.Flags()
	f.StringVar(&offer, "rule", "", "the `ID` of a rule that the call offered (default: for that very call)")
	f.BoolVar(&never, "never", false, "deny such calls, in place of allowing them")
	f.Var(&until, "until", "its end: a `time` from now (2h) or a moment (2026-01-31T12:00:00Z)")
	return c
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
			return change(env, c, api.RemoveRule, api.RemoveRuleRequest{Acting: env.acting(), Agent: args[0], Rule: rule}, args[1], "removed "+terminal.Visible(args[1]))
		},
	}
}

// rulesPauseCommand returns the command that pauses a rule, or resumes it.
func rulesPauseCommand(env *environment, name, does string) *cobra.Command {
	return &cobra.Command{
		Use:     name + " AGENT RULE",
		Short:   does + " a standing rule",
		Long:    "A rule that is paused decides nothing: calls that no other rule decides are asked about, until it is resumed.",
		Example: "  parley agent rules " + name + " fae 01JQ…@N…",
		Args:    exactly("AGENT", "RULE"),

		ValidArgsFunction: completeArguments(env, api.CompleteNames),
		RunE: func(c *cobra.Command, args []string) error {
			rule, err := env.listedIDOf(c.Context(), args[1])
			if err != nil {
				return err
			}
			r := api.PauseRuleRequest{Acting: env.acting(), Agent: args[0], Rule: rule, Resume: name == "resume"}
			return change(env, c, api.PauseRule, r, args[1], strings.ToLower(does)+"d "+terminal.Visible(args[1]))
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
		return perform(c.Context(), env, api.GrantAnswer, r, func(made view.AnswerRight) string { return made.Secret })
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
		return settleForm(c.Context(), env, api.AnswerWith, r, "by the right")
	}
	return c
}
