package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/interview"
	"parley/cmd/parley/show"
	"parley/cmd/parley/terminal"
	"parley/events"
	"parley/gateway/api"
	"parley/mailbox/form"
)

func answerCommand(env *environment) *cobra.Command {
	var (
		valueArgs []string
		valueFile string
		revision  uint64
		n         narrowing
	)
	c := &cobra.Command{
		Use:     "answer NUMBER [VALUE …]",
		Aliases: []string{"respond-form"},
		Short:   "Answer a form",
		Long: `Answers a form. Each value is read by its field's type: a number as 5, a checkbox or a choice of yes and no as yes, y,
no or n, a multiselect by repeating it, a capability as a name that the answerer holds, a file as @PATH. A VALUE is name:value, as with
--value, or, for a form of one field, the value alone. The first colon splits. Fields left out get their defaults. On a
terminal without values it asks field by field.

All users of a machine see the arguments of every process. So type a secret where it is asked for, or give it with
--values, by a file or standard input.

With --read-only and the flags after it, the asker gets less of what is given in the fields of the type capability.

A wrong answer is refused, says what is wrong with every field, and leaves the form open. --revision refuses the answer if
the asker has amended the form since.`,
		Example: `  parley answer 3
  parley answer 3 yes
  parley answer 0 --value projectName:my-app --value port:443
  parley answer 0 --values answer.json
  parley answer 4 --value plan:@plan.pdf
  parley answer 5 notes --read-only --below docs
  parley answer 1 --value region:eu --value region:us --value dryRun:true
  parley answer 2 --values - <<< '{"port":443}'`,
		Args:              atLeast("NUMBER"),
		ValidArgsFunction: completeWaiting(env, aForm),
	}
	c.Flags().StringArrayVar(&valueArgs, "value", nil, "a value as `name:value`; may be repeated")
	c.Flags().StringVar(&valueFile, "values", "", "JSON object of values in a `file`, or - for standard input")
	c.Flags().Uint64Var(&revision, "revision", 0, "the `number` of the revision that is answered")
	n.add(c.Flags())
	c.RunE = func(c *cobra.Command, args []string) error {
		answer := api.RespondFormRequest{Acting: env.acting(), FormRef: api.RefTo(args[0]), Answer: parley.Answer{Revision: revision}}
		err := gatherValues(env, c, &answer, valueArgs, valueFile)
		if err == nil && len(args) > 1 {
			err = addBareValues(env, c, &answer, args[1:])
		}
		if err == nil {
			err = storeAnswerFiles(c.Context(), env, &answer)
		}
		if err == nil {
			err = narrowAnswer(c, env, &answer, &n)
		}
		if err != nil {
			return err
		}
		if answer.Values == nil && answer.Texts == nil && env.interactive() {
			return answerInPerson(c.Context(), env, answer, args[0])
		}
		return settleForm(c.Context(), env, api.RespondForm, answer, args[0])
	}
	return c
}

// narrowAnswer narrows all capabilities in an answer.
func narrowAnswer(c *cobra.Command, env *environment, answer *api.RespondFormRequest, n *narrowing) error {
	f, err := n.facet(c)
	if err != nil || f.IsFull() {
		return err
	}
	e, err := api.GetMessage.Do(c.Context(), env, api.MessageRequest{Acting: answer.Acting, FormRef: answer.FormRef})
	if err != nil {
		return err
	}
	answer.Narrow = map[string]capabilities.Facet{}
	for i := range e.Fields {
		name := e.Fields[i].Name
		given := len(answer.Values)+len(answer.Texts) == 0 || slices.ContainsFunc(answer.Texts, func(t events.FieldText) bool { return t.Name == name })
		if _, byValue := answer.Values[name]; (given || byValue) && form.ControlOf(&e.Fields[i]) == form.Reference {
			answer.Narrow[name] = f
		}
	}
	if len(answer.Narrow) == 0 {
		return usage(c, "the form asks for no capability that could be narrowed")
	}
	return nil
}

// addBareValues adds the values that stand behind a form's number to an answer. A form of one field takes them without
// its name.
func addBareValues(env *environment, c *cobra.Command, answer *api.RespondFormRequest, args []string) error {
	e, err := api.GetMessage.Do(c.Context(), env, api.MessageRequest{Acting: answer.Acting, FormRef: answer.FormRef})
	if err != nil {
		return err
	}
	if e.Type == approvalType {
		return parley.Refuse(parley.InvalidArgument, "message %d asks permission for a call", e.Number).
			WithHint("parley allow %d allows it, parley deny %d denies it", e.Number, e.Number)
	}
	for _, a := range args {
		name, _, _ := strings.Cut(a, ":")
		if len(e.Fields) == 1 && name != e.Fields[0].Name {
			answer.Texts = append(answer.Texts, events.FieldText{Name: e.Fields[0].Name, Text: a})
			continue
		}
		t, err := form.SplitText(a)
		if err != nil && len(e.Fields) > 0 {
			names := make([]string, len(e.Fields))
			for i, f := range e.Fields {
				names[i] = f.Name
			}
			err = parley.AsError(err).WithHint("the form has the fields %s: name the one that is meant, as %s:%s", parley.Shown(strings.Join(names, ", "), maxNames), names[0], a)
		}
		if err != nil {
			return asUsage(c, err)
		}
		answer.Texts = append(answer.Texts, t)
	}
	return nil
}

// maxNames bounds the names of fields in a hint, in characters.
const maxNames = 200

// answerInPerson has the person at the terminal answer a form. A wrong answer is asked for again, with the former texts
// as defaults.
func answerInPerson(ctx context.Context, env *environment, answer api.RespondFormRequest, which string) error {
	e, err := api.GetMessage.Do(ctx, env, api.MessageRequest{Acting: answer.Acting, FormRef: answer.FormRef})
	if err != nil {
		return err
	}
	for {
		if len(e.Fields) > 0 && e.Outcome == nil { // else the node says why it cannot be answered
			texts, err := interview.Ask(ctx, env.stdin, env.stdout, e.Description, show.Sender(&e), e.Fields)
			if errors.Is(err, interview.ErrAborted) {
				return &interrupted{message: "nothing was answered; the form stays open"}
			}
			if err != nil {
				return err
			}
			answer.Texts, answer.Revision = texts, e.AnswerRevision()
		}
		err := storeAnswerFiles(ctx, env, &answer)
		if err != nil {
			return err
		}
		err = settleForm(ctx, env, api.RespondForm, answer, which)
		if parley.CodeOf(err) != parley.InvalidAnswer || len(answer.Texts) == 0 {
			return err
		}
		fmt.Fprintln(env.stderr, terminal.Visible(parley.AsError(err).Message))
		interview.Remember(e.Fields, answer.Texts)
	}
}

// gatherValues adds the values of options to an answer.
func gatherValues(env *environment, c *cobra.Command, answer *api.RespondFormRequest, args []string, file string) error {
	if file != "" {
		text, err := env.readInput(file)
		if err != nil {
			return err
		}
		if answer.Values, err = parseValues(text); err != nil {
			return err
		}
	}
	for _, a := range args {
		t, err := form.SplitText(a)
		if err != nil {
			return asUsage(c, err)
		}
		answer.Texts = append(answer.Texts, t)
	}
	return nil
}

// parseValues reads a JSON object of values.
func parseValues(text []byte) (map[string]capabilities.Value, error) {
	v, err := capabilities.ParseJSON(text)
	if err != nil {
		return nil, err
	}
	record, ok := v.AsRecord()
	if !ok {
		return nil, parley.Refuse(parley.InvalidArgument, "values are a JSON object, not a %s", v.TypeName()).
			WithHint(`as in {"port":443}`)
	}
	return maps.Clone(record), nil
}

// settleForm performs an operation that ends a form, and prints the outcome.
func settleForm[R any](ctx context.Context, env *environment, ends api.Op[R, view.Outcome], r R, which string) error {
	o, err := vote(ctx, env, ends, r)
	if err != nil {
		return err
	}
	var asked view.Message
	if o.Status == view.StatusVoted && !env.options.json {
		// It is empty for one who holds a right to answer alone.
		asked, _ = api.GetMessage.Do(ctx, env, api.MessageRequest{Acting: env.acting(), FormRef: api.RefTo(o.Form.String())})
	}
	return env.print(o, func() string {
		if o.Status == view.StatusAnswering {
			return fmt.Sprintf("form %s: %s is kept, and goes to its home when that can be reached", terminal.Visible(which), settlement(string(ends)))
		}
		if o.Status == view.StatusSuperseded { // of a review
			return fmt.Sprintf("call %s: %s", terminal.Visible(which), o.Note)
		}
		text := fmt.Sprintf("%s %s", o.Status, terminal.Visible(which))
		if v := o.Votes; o.Status == view.StatusVoted && v != nil {
			text += "; " + show.Vote(asked, *v)
		}
		return text
	})
}

func withdrawCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "withdraw NUMBER",
		Short: "Withdraw a vote",
		Long: `Takes back the agent's answer to a form that needs several, while the form is open. It can answer again. If the node of the
asker cannot be reached, the withdrawal is kept and sent when it can.`,
		Example:           `  parley form withdraw 3`,
		Args:              exactly("NUMBER"),
		ValidArgsFunction: completeArguments(env, api.CompletePending),
		RunE: func(c *cobra.Command, args []string) error {
			w, err := api.WithdrawVote.Do(c.Context(), env, api.MessageRequest{Acting: env.acting(), FormRef: api.RefTo(args[0])})
			if err != nil {
				return err
			}
			printed := map[string]any{"withdrawn": args[0]}
			if w.Queued {
				printed["queued"] = true
			}
			return env.print(printed, func() string {
				if w.Queued {
					return fmt.Sprintf("form %s: the withdrawal is kept, and goes to its home when that can be reached", terminal.Visible(args[0]))
				}
				return "withdrawn " + terminal.Visible(args[0])
			})
		},
	}
}

func claimCommand(env *environment) *cobra.Command {
	var long duration
	var r api.ClaimFormRequest
	c := &cobra.Command{
		Use:   "claim NUMBER",
		Short: "Say that you are on a form that others may answer too",
		Long: `Claims a form, so that all who may answer it see that the agent is on it, and until when. The claim ends then, with --release, and with
the agent's answer. It is no vote and gives nothing. Of a form to a group, the answer of another member is refused until that takes it over.`,
		Example:           "  parley claim 3\n  parley claim 3 --for 2h\n  parley claim 3 --release\n  parley claim 3 --take-over",
		Args:              exactly("NUMBER"),
		ValidArgsFunction: completeArguments(env, api.CompletePending),
		RunE: func(c *cobra.Command, args []string) error {
			if r.Release && (r.TakeOver || long != 0) {
				return usage(c, "--release ends a claim: it takes no --for and no --take-over")
			}
			r.Acting, r.FormRef = env.acting(), api.RefTo(args[0])
			if long != 0 {
				ms := time.Duration(long).Milliseconds()
				r.ForMs = &ms
			}
			got, err := api.ClaimForm.Do(c.Context(), env, r)
			if err != nil {
				return err
			}
			return env.print(got, func() string {
				number := fmt.Sprintf("form %d: ", got.Number)
				switch s := env.screen(); {
				case got.Queued:
					return number + "the claim is kept, and goes to its home when that can be reached"
				case got.Claim == nil:
					return number + "nobody is on it"
				default:
					return number + got.Claim.Words(partyWords, func(t capabilities.Time) string { return s.Moment(t.Std(), t.String()) })
				}
			})
		},
	}
	c.Flags().Var(&long, "for", "be on it for so `long`, from a minute to 24 hours (default 30m)")
	c.Flags().BoolVar(&r.Release, "release", false, "be on it no more")
	c.Flags().BoolVar(&r.TakeOver, "take-over", false, "take it over from who is on it")
	return c
}

// settlement returns a noun for the settlement that an operation makes.
func settlement(operation string) string {
	switch operation {
	case string(api.DeclineForm), string(api.Reject):
		return "the refusal"
	}
	return "the answer"
}

func declineCommand(env *environment) *cobra.Command {
	c := endCommand(env, ending{
		use: "decline NUMBER [REASON]", short: "Decline a form or request", of: api.CompletePending,
		long:    "Says no to a form or request. The asker is told, with the reason.",
		example: "  parley decline 1 'not today'",
	}, func(ctx context.Context, form api.FormRef, reason, which string) error {
		return settleForm(ctx, env, api.DeclineForm, api.DeclineRequest{Acting: env.acting(), FormRef: form, Reason: reason}, which)
	})
	c.Aliases = []string{"reject"}
	return c
}

func cancelCommand(env *environment) *cobra.Command {
	return endCommand(env, ending{
		use: "cancel NUMBER-or-ID [REASON]", short: "Cancel a form or request", of: api.CompleteOpen,
		long:    "Takes back a form or request that the agent sent. Only who asked may cancel.",
		example: "  parley cancel 0 'changed my mind' --as fae",
	}, func(ctx context.Context, form api.FormRef, reason, which string) error {
		return settleForm(ctx, env, api.CancelForm, api.EndRequest{Acting: env.acting(), FormRef: form, Reason: reason}, which)
	})
}

// ending describes a command that ends a form without an answer.
type ending struct{ use, short, long, example, of string }

func endCommand(env *environment, e ending, end func(ctx context.Context, form api.FormRef, reason, which string) error) *cobra.Command {
	subject := strings.Fields(e.use)[1]
	return &cobra.Command{
		Use: e.use, Short: e.short, Long: e.long, Example: e.example,
		Args:              between(1, 2, subject, "[REASON]"),
		ValidArgsFunction: completeArguments(env, e.of),
		RunE: func(c *cobra.Command, args []string) error {
			return end(c.Context(), api.RefTo(args[0]), strings.Join(args[1:], ""), args[0])
		},
	}
}

func resolveCommand(env *environment) *cobra.Command {
	var n narrowing
	var s spot
	c := &cobra.Command{
		Use:   "resolve NUMBER NAME",
		Short: "Resolve a request",
		Long: `Resolves a request with what the agent holds under NAME. The asker then holds it too; with the flags, less of it. With --folder or --file
it is made for that, under NAME.`,
		Example: `  parley resolve 0 bob
  parley resolve 1 notes --read-only --below docs --until 24h
  parley resolve 2 manual --folder /usr/share/manual --read-only`,
		Args:              exactly("NUMBER", "NAME"),
		ValidArgsFunction: completeArguments(env, api.CompletePending, api.CompleteNames),
	}
	n.add(c.Flags())
	s.add(c.Flags())
	c.RunE = func(c *cobra.Command, args []string) error {
		narrow, err := n.facet(c)
		if err != nil {
			return err
		}
		return s.give(c, env, args[1], func() error {
			return settleForm(c.Context(), env, api.Resolve, api.ResolveRequest{
				Acting: env.acting(), FormRef: api.RefTo(args[0]), Name: args[1], Narrow: narrow,
			}, args[0])
		})
	}
	return c
}

func forwardCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:               "forward NUMBER RECIPIENT",
		Short:             "Forward a form to another agent",
		Long:              "Hands a form on to another agent. Both may answer; whoever does so first settles it.",
		Example:           "  parley forward 0 bob",
		Args:              exactly("NUMBER", "RECIPIENT"),
		ValidArgsFunction: completeArguments(env, api.CompletePending, api.CompleteNames),
		RunE: func(c *cobra.Command, args []string) error {
			err := api.ForwardForm.Run(c.Context(), env, api.ForwardFormRequest{
				Acting: env.acting(), FormRef: api.RefTo(args[0]), Recipient: args[1],
			})
			if err != nil {
				return err
			}
			return env.print(map[string]string{"forwarded": args[0], "recipient": args[1]}, func() string {
				return fmt.Sprintf("forwarded %s to %s", terminal.Visible(args[0]), terminal.Quoted(args[1]))
			})
		},
	}
}

// awayCommand and groupCommand set to whom the forms of an agent are forwarded as they come.
func awayCommand(env *environment) *cobra.Command {
	var (
		from, until moment
		to          string
		back        bool
	)
	c := &cobra.Command{
		Use:   "away",
		Short: "Have another agent answer for a while",
		Long: `Forwards the forms that come until a time to another agent. The agent may still answer them, and the first answer settles
each. Forms that came before stay as they are, and so do those that the asker forbade to forward. Without flags, it shows
the absence. --back ends it.`,
		Example: `  parley agent away --until 72h --to bob
  parley agent away --from 2026-12-24T00:00:00Z --until 2027-01-02T00:00:00Z --to bob
  parley agent away --back`,
		Args: cobra.NoArgs,
	}
	c.Flags().Var(&until, "until", "the end: a `time` from now (2h) or a moment (2026-01-31T12:00:00Z)")
	c.Flags().Var(&from, "from", "the beginning: a `time` as for --until (default: now)")
	c.Flags().StringVar(&to, "to", "", "the `agent` that answers meanwhile")
	c.Flags().BoolVar(&back, "back", false, "end the absence")
	c.RunE = func(c *cobra.Command, _ []string) error {
		text := func(now view.StandIns) string { return awayText(now.Away, env.screen()) }
		switch {
		case back && (until.text != "" || from.text != "" || to != ""):
			return usage(c, "--back goes alone")
		case back:
			return perform(c.Context(), env, api.SetAway, api.SetAwayRequest{Acting: env.acting()}, text)
		case until.text != "":
			r := api.SetAwayRequest{Acting: env.acting(), From: capabilities.At(from.at), Until: capabilities.At(until.at), To: to}
			return perform(c.Context(), env, api.SetAway, r, text)
		case from.text != "" || to != "":
			return usage(c, "until when? give --until")
		}
		return perform(c.Context(), env, api.ListStandIns, api.StandInsRequest{Acting: env.acting()}, text)
	}
	return c
}

func awayText(a *view.Away, s terminal.Screen) string {
	if a == nil {
		return "not away"
	}
	text := fmt.Sprintf("away from %s to %s", s.Moment(a.From.Std(), a.From.String()), s.Moment(a.Until.Std(), a.Until.String()))
	if a.To != nil {
		text += ": forms go to " + terminal.Visible(cmp.Or(a.To.Name, a.To.ID.String()))
	}
	return text
}

func groupCommand(env *environment) *cobra.Command {
	var remove bool
	c := &cobra.Command{
		Use:   "group [MEMBER]",
		Short: "Make an agent a group",
		Long: `Adds a member to the agent, which makes it a group: its forms are forwarded to all members as they come, and the first
answer settles each. A new member gets the open ones too. The group has to hold its members: send it a message with them,
and it adopts them. With --remove, the member leaves: nothing more goes to it, and it may not answer what is open. Without
MEMBER, it lists the members, one a line.`,
		Example: `  parley send ops 'your members: @bob and @eve'
  parley adopt 0 bob --as ops
  parley agent group bob --as ops
  parley agent group bob --as ops --remove
  parley agent group --as ops`,
		Args:              between(0, 1, "[MEMBER]"),
		ValidArgsFunction: completeArguments(env, api.CompleteNames),
	}
	c.Flags().BoolVar(&remove, "remove", false, "remove the member")
	c.RunE = func(c *cobra.Command, args []string) error {
		members := func(now view.StandIns) string {
			return idLines(now.Members, func(m view.Party) string { return terminal.Visible(cmp.Or(m.Name, m.ID.String())) })
		}
		switch {
		case len(args) > 0:
			return perform(c.Context(), env, api.SetMember, api.SetMemberRequest{Acting: env.acting(), Agent: args[0], Remove: remove}, members)
		case remove:
			return usage(c, "whom? give a MEMBER")
		}
		return perform(c.Context(), env, api.ListStandIns, api.StandInsRequest{Acting: env.acting()}, members)
	}
	return c
}
