package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/proc"
	"parley/cmd/parley/shell"
	"parley/cmd/parley/show"
	"parley/cmd/parley/terminal"
	"parley/events"
	"parley/gateway/api"
	"parley/gateway/client"
	"parley/mailbox/form"
)

// askOptions are the options of commands that wait for an answer.
type askOptions struct {
	name      string
	key       string
	deadline  moment
	noForward bool
	noWait    bool
	timeout   duration
	returns   bool // when one who may answer asks back
}

func (a *askOptions) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&a.name, "name", "", "store the answer under this `name`; if something stands there, print it and send nothing")
	f.StringVar(&a.key, "key", "", "idempotency `key`: asking again with the same one is the same form")
	f.Var(&a.deadline, "deadline", "it expires then: a `time` from now (2h) or a moment (2026-01-31T12:00:00Z)")
	f.BoolVar(&a.noForward, "no-forward", false, "nobody but the recipient may answer")
	f.BoolVar(&a.noWait, "no-wait", false, "print the form's ID instead of waiting")
	f.Var(&a.timeout, "timeout", "wait so `long` at most: 30s, 2h (default: without limit)")
	returnFlag(c, &a.returns)
}

// returnFlag adds the option of a wait that ends when somebody asks back.
func returnFlag(c *cobra.Command, returns *bool) {
	c.Flags().BoolVar(returns, "return-on-reply", false, "end with status 8 when one who may answer asks back (default: show it, and go on waiting)")
}

func formCommand(env *environment) *cobra.Command {
	var (
		options   askOptions
		fieldArgs []string
		fieldFile string
		title     string
		remind    []string
		escalate  []string
		votes     voteOptions
		passkey   bool
	)
	c := &cobra.Command{
		Use:   "form RECIPIENT DESCRIPTION",
		Short: "Send a form and wait for the answer",
		Long: `Sends a form and waits for the answer, which it prints "name: value" a line. The wait may be cut off
and taken up again with "parley await ID": the form stays open, also when the node restarts.

--field name:label asks for a line of text; the label may hold colons. --fields FILE (or - for standard
input) is a JSON list of fields with "name", "label", "type"
(` + strings.Join(form.Names(), " ") + `),
"required", "default", "placeholder", "help", "options" ("value", "label", "description"), "example" and
"pattern", a JSON Schema for the value.

--remind and --escalate count from now on, also while the node is down. What fell due in between is made up for once. A
form that has expired is neither reminded of nor escalated. Nobody who may answer is taken away by an escalation.

--need 2 waits until two hosts have answered, of all to whom the form was sent, forwarded or escalated. Another node counts
as one host. The last answer is printed. One decline ends the form, or with --no-veto the one after which too few are left.

--passkey takes no answer that is not signed with a passkey of who answers, on the page. Declining needs none.`,
		Example: `  parley form HOST 'Configure project settings' --as fae \
      --field 'projectName:Project name' --field 'apiKey:API key' --name project-config
  parley form HOST 'Deploy' --fields deploy.json --deadline 2h --timeout 10m
  parley form bob 'Deploy?' --field ok:OK --remind 1h --escalate 4h:ops --deadline 24h
  parley form ops 'Deploy?' --field ok:OK --need 2 --no-self
  parley form HOST 'Deploy' --fields - --no-wait <<< '[{"name":"port","type":"number","required":true}]'`,
		Args:              exactly("RECIPIENT", "DESCRIPTION"),
		ValidArgsFunction: completeArguments(env, api.CompleteNames),
	}
	options.flags(c)
	c.Flags().StringArrayVar(&fieldArgs, "field", nil, "a field as `name:label`; may be repeated")
	c.Flags().StringVar(&fieldFile, "fields", "", "JSON list of fields in a `file`, or - for standard input")
	c.Flags().StringVar(&title, "title", "", "a `title` above the description")
	routeFlags(c, &remind, &escalate)
	votes.flags(c)
	passkeyFlag(c, &passkey)
	c.RunE = func(c *cobra.Command, args []string) error {
		fields, err := formFields(env, c, fieldArgs, fieldFile)
		if err != nil {
			return err
		}
		reminders, steps, err := routeOf(c, remind, escalate)
		if err != nil {
			return err
		}
		asked, err := askWithin(c.Context(), env, options.timeout, api.Form, api.FormRequest{Acting: env.acting(), Form: parley.Form{
			To:          args[0],
			Description: args[1],
			Title:       title,
			Fields:      fields,
			Name:        options.name,
			Key:         options.key,
			Deadline:    capabilities.At(options.deadline.at),
			NoForward:   options.noForward,
			Remind:      reminders,
			Escalate:    steps,
			Need:        votes.need,
			Veto:        votes.veto(),
			NoSelf:      votes.noSelf,
			Passkey:     passkey,
		}})
		if err != nil {
			return err
		}
		env.noteVotes(c.Context(), votes, args[0], steps)
		return awaitAsked(c.Context(), env, asked, args[0], options, answerLines)
	}
	return c
}

// noteVotes says that more votes are needed than there are persons to give them: the host is one, with one vote, and so are agents of one
// node, as members of a group, which a person stands for.
func (env *environment) noteVotes(ctx context.Context, v voteOptions, to string, steps []parley.Escalation) {
	if v.need <= 1 || len(steps) > 0 || env.options.json {
		return
	}
	if capabilities.Special(to) == capabilities.NameHost {
		fmt.Fprintf(env.stderr, "parley: note: %d votes are needed, and the host alone is asked, who has one: it has to forward it to others, or --escalate names them\n", v.need)
		return
	}
	if env.options.as != "" { // by another's names, of whom nothing can be listed
		return
	}
	group, err := api.ListStandIns.Do(ctx, env, api.StandInsRequest{Acting: api.Acting{As: to}})
	if err != nil || len(group.Members) == 0 { // it is asked all the same
		return
	}
	persons := map[string]bool{}
	for _, m := range group.Members {
		persons[m.ID.Node.String()] = true
	}
	if len(persons) < int(v.need) {
		fmt.Fprintf(env.stderr, "parley: note: %d votes are needed, and the members of %s have %d: the agents of one person have one vote. Add others to it, or --escalate names them\n",
			v.need, terminal.Visible(to), len(persons))
	}
}

// voteOptions are the options of a form that needs several answers.
type voteOptions struct {
	need           uint32
	noVeto, noSelf bool
}

func (v *voteOptions) needFlags(c *cobra.Command) {
	c.Flags().Uint32Var(&v.need, "need", 0, "wait until so many hosts have answered, as `2` (default 1)")
	c.Flags().BoolVar(&v.noVeto, "no-veto", false, "one decline does not end the form, with --need")
}

func (v *voteOptions) flags(c *cobra.Command) {
	v.needFlags(c)
	c.Flags().BoolVar(&v.noSelf, "no-self", false, "refuse answers by agents of the asker's own host")
}

// veto returns nil for the node's default.
func (v *voteOptions) veto() *bool {
	if !v.noVeto {
		return nil
	}
	return new(false)
}

// passkeyFlag adds the option of a form that is answered with a passkey alone.
func passkeyFlag(c *cobra.Command, passkey *bool) {
	c.Flags().BoolVar(passkey, "passkey", false, "an answer has to be signed with a passkey, on the page")
}

// routeFlags adds the flags that routeOf reads.
func routeFlags(c *cobra.Command, remind, escalate *[]string) {
	c.Flags().StringArrayVar(remind, "remind", nil, "remind who may answer after a `time`, as 1h; may be repeated")
	c.Flags().StringArrayVar(escalate, "escalate", nil, "let another agent answer too after a time, as `4h:ops`; may be repeated")
}

// routeOf reads the flags --remind and --escalate.
func routeOf(c *cobra.Command, remind, escalate []string) (reminders []events.Delay, steps []parley.Escalation, err error) {
	for _, text := range remind {
		d, err := parseDuration(text)
		if err != nil {
			return nil, nil, usage(c, "--remind %s: %v", text, err)
		}
		reminders = append(reminders, events.Delay(d.Milliseconds()))
	}
	for _, text := range escalate {
		after, to, ok := strings.Cut(text, ":")
		d, err := parseDuration(after)
		if !ok || to == "" || err != nil {
			return nil, nil, usage(c, "--escalate %s: want a time and an agent, as 4h:ops", text)
		}
		steps = append(steps, parley.Escalation{After: events.Delay(d.Milliseconds()), To: to})
	}
	return reminders, steps, nil
}

func amendCommand(env *environment) *cobra.Command {
	var (
		r         api.AmendFormRequest
		title     string
		fieldArgs []string
		fieldFile string
	)
	c := &cobra.Command{
		Use:   "amend NUMBER-or-ID [DESCRIPTION]",
		Short: "Change a form that was sent",
		Long: `Corrects the question of an open form that the agent sent. What is not given stays as it is; fields are given all
together. Those who were asked see what changed, and keep the parts of an unfinished answer that still fit. An answer to the
earlier question is refused. An approval is of one call, and cannot be amended.`,
		Example: `  parley form amend 0 'Which port does the proxy take?' --as fae --note 'I meant the proxy'
  parley form amend 0 --as fae --field 'port:Port' --field 'host:Host name'`,
		Args:              between(1, 2, "NUMBER-or-ID", "[DESCRIPTION]"),
		ValidArgsFunction: completeArguments(env, api.CompleteOpen),
	}
	c.Flags().StringArrayVar(&fieldArgs, "field", nil, "a field as `name:label`; may be repeated")
	c.Flags().StringVar(&fieldFile, "fields", "", "JSON list of fields in a `file`, or - for standard input")
	c.Flags().StringVar(&title, "title", "", "another `title` above the description")
	c.Flags().StringVar(&r.Note, "note", "", "why, in `words` for those who were asked")
	c.RunE = func(c *cobra.Command, args []string) error {
		r.Acting, r.FormRef = env.acting(), api.RefTo(args[0])
		if len(args) > 1 {
			r.Description = &args[1]
		}
		if c.Flags().Changed("title") {
			r.Title = &title
		}
		if len(fieldArgs) > 0 || fieldFile != "" {
			fields, err := formFields(env, c, fieldArgs, fieldFile)
			if err != nil {
				return err
			}
			r.Fields = fields
		}
		if r.Description == nil && r.Title == nil && r.Fields == nil {
			return usage(c, "what is to change? give a DESCRIPTION, --title, --field or --fields")
		}
		return perform(c.Context(), env, api.AmendForm, r,
			func(m view.Message) string { return fmt.Sprintf("form %d is at revision %d", m.Number, m.Revision) })
	}
	return c
}

func requestCommand(env *environment) *cobra.Command {
	var (
		options askOptions
		passkey bool
	)
	c := &cobra.Command{
		Use:   "request RECIPIENT TEXT",
		Short: "Request a capability in words",
		Long: `Asks for a capability in words and waits until the recipient resolves the request with one of its
names, or rejects it. Prints what was given.

--passkey takes nothing that is not given on the page, signed with a passkey. Rejecting it needs none.`,
		Example: `  parley request HOST 'may I talk to bob?' --as alice --name bob
  parley resolve 0 bob`,
		Args:              exactly("RECIPIENT", "TEXT"),
		ValidArgsFunction: completeArguments(env, api.CompleteNames),
	}
	options.flags(c)
	passkeyFlag(c, &passkey)
	c.RunE = func(c *cobra.Command, args []string) error {
		asked, err := askWithin(c.Context(), env, options.timeout, api.RequestCapability, api.CapabilityRequest{Acting: env.acting(), Request: parley.Request{
			To:        args[0],
			Text:      args[1],
			Name:      options.name,
			Key:       options.key,
			Deadline:  capabilities.At(options.deadline.at),
			NoForward: options.noForward,
			Passkey:   passkey,
		}})
		if err != nil {
			return err
		}
		return awaitAsked(c.Context(), env, asked, args[0], options, requestText)
	}
	return c
}

func awaitCommand(env *environment) *cobra.Command {
	var (
		timeout duration
		until   string
		all     bool
		returns bool
	)
	c := &cobra.Command{
		Use:   "await ID",
		Short: "Wait for a form, promise or message",
		Long: `Waits until a form, request or promise has ended, and prints the answer; at once if it has ended already.
The wait goes on through restarts of the node.

With --until it waits for how far a message has come, and prints that: delivered (it is in the recipient's mailbox), offered
(a notice of it reached a reader), shown (the reader had its text, which was seen) or handled (read in full, replied to,
acknowledged, dismissed, or worked on). It ends at once if the message has come further.

The first reply of a member handles a message to a group. With --all it waits for each member that the message reached.`,
		Example: `  id=$(parley form HOST 'Deploy?' --as fae --field ok:OK --no-wait)
  parley await $id --as fae --timeout 30s
  parley await $(parley send fae 'The build is red') --until shown --timeout 10m`,
		Args:              exactly("ID"),
		ValidArgsFunction: completeArguments(env, api.CompleteOpen),
	}
	c.Flags().Var(&timeout, "timeout", "wait so `long` at most: 30s, 2h (default: without limit)")
	c.Flags().StringVar(&until, "until", "", "wait for a `state` of a message: delivered, offered, shown or handled")
	c.Flags().BoolVar(&all, "all", false, "with --until, of a message to a group: wait for all members, whoever has replied")
	returnFlag(c, &returns)
	c.RunE = func(c *cobra.Command, args []string) error {
		if all && until == "" {
			return usage(c, "--all is for a wait --until a state of a message")
		}
		if until != "" {
			m, err := api.GetMessage.Do(c.Context(), env, api.MessageRequest{Acting: env.acting(), FormRef: api.RefTo(args[0])})
			if err == nil { // else the wait says what is wrong
				env.noteAbsent(view.AbsentWords(m.Receipts, partyWords))
			}
		}
		o, err := waitForForm(c.Context(), env, args[0], waiting{until: events.MessageState(until), all: all, timeout: time.Duration(timeout), returns: returns})
		if err != nil {
			return err
		}
		switch {
		case until == "" && o.Status == view.StatusSuperseded: // a copy, whose asker the agent may have no name for
			// Without the message the outcome is told all the same, by an ID.
			m, _ := api.GetMessage.Do(c.Context(), env, api.MessageRequest{Acting: env.acting(), FormRef: api.RefTo(args[0])})
			return outcomeError(o, m)
		case until == "":
			return printOutcome(env, o, requestText)
		case o.Status == view.StatusDeclined && o.Promise.IsZero():
			return parley.Refuse(parley.Declined, "message %s was refused: %s", o.Form, terminal.Visible(o.Note))
		case events.MessageState(o.Status).Rank() > 0, o.Status == view.StatusOf(events.Delivered):
			return env.print(o, func() string { return string(o.Status) })
		}
		return printOutcome(env, o, requestText)
	}
	return c
}

// formFields returns the fields of a form from its options.
func formFields(env *environment, c *cobra.Command, args []string, file string) ([]events.Field, error) {
	fields := []events.Field{}
	if file != "" {
		text, err := env.readInput(file)
		if err != nil {
			return nil, err
		}
		if fields, err = parley.ParseFields(text); err != nil {
			return nil, err
		}
	}
	for _, a := range args {
		f, err := form.SplitField(a)
		if err != nil {
			return nil, asUsage(c, err)
		}
		fields = append(fields, f)
	}
	return fields, nil
}

// leastAccept is the least time that a node has to accept what is asked. The wait for the answer may be shorter.
const leastAccept = 2 * time.Second

// askWithin calls an operation that asks. It gives up with TIMEOUT when the time of the whole wait has passed before the ask
// was accepted; 0 is without limit. A node that is killed before it has answered is asked again once it is back.
func askWithin[Req, Resp any](ctx context.Context, env *environment, timeout duration, o api.Op[Req, Resp], r Req) (Resp, error) {
	if timeout == 0 {
		return o.Do(ctx, patient{env}, r)
	}
	within, cancel := context.WithTimeout(ctx, max(time.Duration(timeout), leastAccept))
	defer cancel()
	asked, err := o.Do(within, patient{env}, r)
	if err == nil || within.Err() == nil || ctx.Err() != nil {
		return asked, err
	}
	return asked, parley.Refuse(parley.Timeout, "it was not accepted within %s%s", &timeout, waitsForDisk(ctx, env)).
		WithHint("it may still be asked: parley inbox --all shows it then, and with --key it is not asked twice")
}

// awaitAsked waits for the answer of an accepted form and prints it. It does neither if the options or an earlier
// answer make that unnecessary.
func awaitAsked(ctx context.Context, env *environment, a view.Asked, to string, o askOptions, text func(view.Outcome) string) error {
	settled := a.Outcome
	env.noteUnreachable(a.Unreachable && settled == nil, terminal.Quoted(to))
	if settled == nil {
		env.notePromised(a.Promised)
	}
	switch {
	case o.noWait && !a.Form.IsZero():
		a.Outcome = nil
		return env.print(a, a.Form.String)
	case settled != nil:
		return printOutcome(env, *settled, text)
	}
	outcome, err := waitForForm(ctx, env, a.Form.String(), waiting{timeout: time.Duration(o.timeout), returns: o.returns, known: true})
	if err != nil {
		return err
	}
	return printOutcome(env, outcome, text)
}

// waiting says how to wait for a form or message.
type waiting struct {
	until   events.MessageState // of a message; "" for a form
	all     bool                // of a group: with each member
	timeout time.Duration       // 0 is without limit
	known   bool                // the node was there a moment ago
	returns bool                // also when one who may answer the form asks back
}

// waitForForm waits for a form or message. The error of a wait that ended early says how to continue it.
func waitForForm(ctx context.Context, env *environment, id string, w waiting) (view.Outcome, error) {
	until, timeout, known := w.until, w.timeout, w.known
	waiter := env.waiter(known)
	defer waiter.Close()
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go proc.LetGoOnceOrphaned(watching, env.stderr) // ends with the wait
	var (
		o   client.Outcome
		err error
	)
	again, more := fmt.Sprintf("go on waiting with: parley await %s%s", shell.Word(id), env.asFlag()), "it stays open"
	switch {
	case w.all:
		o, err = client.AwaitStateOfAll(watching, waiter, client.ID(id), until, timeout)
	case until != "":
		o, err = waiter.AwaitState(watching, client.ID(id), until, timeout)
	default:
		o, err = awaitAnswer(watching, env, waiter, id, w)
	}
	if until != "" {
		again, more = again+" --until "+string(until), "it may still be"
	}
	if w.all {
		again += " --all"
	}
	switch {
	case ctx.Err() != nil:
		return view.Outcome{}, &interrupted{message: fmt.Sprintf("no longer waiting for %s; %s", id, more), hint: again}
	case parley.CodeOf(err) == parley.Timeout && until != "":
		return view.Outcome{}, parley.Refuse(parley.Timeout, "%s is not %s after %s; %s%s", id, until, capabilities.Span(timeout), more, waitsForDisk(ctx, env)).WithHint("%s", again)
	case parley.CodeOf(err) == parley.Timeout:
		return view.Outcome{}, parley.Refuse(parley.Timeout, "no answer to %s after %s; it stays open%s", id, capabilities.Span(timeout), waitsForDisk(ctx, env)).WithHint("%s", again)
	case parley.CodeOf(err) == parley.NotAForm:
		e, _ := errors.AsType[*parley.Error](err) // CodeOf found one
		return view.Outcome{}, e.WithHint("wait until the message has come so far: parley await %s --until shown%s", shell.Word(id), env.asFlag())
	case parley.CodeOf(err) == parley.NotRunning && known:
		e, _ := errors.AsType[*parley.Error](err) // CodeOf found one
		return view.Outcome{}, e.WithHint("what was asked is on disk; once the node runs again, %s", again)
	}
	if err != nil {
		return view.Outcome{}, err
	}
	var shown view.Outcome
	if err := json.Unmarshal(o.Raw, &shown); err != nil {
		return view.Outcome{}, notANode(err)
	}
	return shown, nil
}

// awaitAnswer waits for the end of a form, and shows what those who may answer it ask back meanwhile.
func awaitAnswer(ctx context.Context, env *environment, waiter *client.Client, id string, w waiting) (client.Outcome, error) {
	end := time.Now().Add(w.timeout)
	for after := uint64(0); ; {
		within := time.Duration(0)
		if w.timeout > 0 {
			within = max(time.Until(end), time.Millisecond)
		}
		o, err := client.AwaitQuestion(ctx, waiter, client.ID(id), after, within)
		if err != nil || o.Status != view.StatusAsked || o.Message == nil {
			return o, err
		}
		after = *o.Message
		hint := fmt.Sprintf("parley reply %d TEXT%s", after, env.asFlag())
		said := fmt.Sprintf("%s asks (#%d): %s", terminal.Quoted(cmp.Or(o.ByName, view.ShortID(o.By))), after, terminal.Quoted(o.Note))
		if w.returns {
			return o, parley.Refuse(parley.Asked, "%s; the form stays open", said).WithHint("%s, then: parley await %s%s", hint, shell.Word(id), env.asFlag())
		}
		fmt.Fprintf(env.stderr, "%s\nhint: %s\n", said, hint)
	}
}

// printOutcome prints an answer, or returns the error for another outcome.
func printOutcome(env *environment, o view.Outcome, text func(view.Outcome) string) error {
	if o.Status == view.StatusAnswered {
		return env.print(o, func() string { return text(o) })
	}
	return outcomeError(o, view.Message{})
}

// outcomeError returns the error for an outcome that is no answer, of a message as far as that is known.
func outcomeError(o view.Outcome, of view.Message) error {
	code := parley.Cancelled
	switch o.Status {
	case view.StatusDeclined:
		code = parley.Declined
	case view.StatusExpired:
		code = parley.Expired
	case view.StatusCancelled, view.StatusSuperseded:
	}
	return parley.Refuse(code, "form %s was %s", view.ShortID(o.Form), show.Outcome(o, of))
}

// asUsage returns the refusal of an argument as an error of usage.
func asUsage(c *cobra.Command, err error) error {
	if e, ok := errors.AsType[*parley.Error](err); ok {
		if e.Hint == "" {
			e = e.WithHint("see %s --help", c.CommandPath())
		}
		return usageError{e}
	}
	return err
}
