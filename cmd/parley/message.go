package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/shell"
	"parley/cmd/parley/show"
	"parley/cmd/parley/terminal"
	"parley/cmd/parley/watch"
	"parley/gateway/api"
	"parley/gateway/client"
	"parley/gateway/people"
)

// sendsMessage has a command send a message: it adds the options of one. Its arguments are whom it is for, and the text unless that is
// an option.
func sendsMessage(env *environment, c *cobra.Command, send func(ctx context.Context, to []string, p parley.Post) error) *cobra.Command {
	var p parley.Post
	var ack string
	var attached []string
	c.Flags().StringArrayVar(&attached, "attach", nil, "carry a `file` of at most 32 MiB; may be repeated")
	c.Flags().StringVar(&p.Text, "text", "", "the `text`, in place of the last argument")
	c.Flags().StringVar(&p.Escalate, "escalate", "", "with --ack: who gets it if it was not acknowledged by then, an `agent`")
	_ = c.RegisterFlagCompletionFunc("escalate", completeFlag(env, api.CompleteNames))
	c.Flags().StringVar((*string)(&p.Priority), "priority", "", "how soon it should be seen: `urgent`, normal or low (default: normal)")
	c.Flags().StringVar(&p.Subject, "subject", "", "what it is about: a `line` of 200 bytes at most")
	c.Flags().BoolVar(&p.Plain, "plain", false, "hand over nothing: an @ in the text is a plain one")
	c.Flags().StringVar(&p.Key, "key", "", "a message with the same `key` is sent once")
	c.Flags().StringVar(&ack, "ack", "", "have it acknowledged by a `time`: 10m, 15:00; what is late is in \"inbox --overdue\"")
	c.RunE = func(c *cobra.Command, args []string) error {
		if ack != "" {
			by, err := terminal.Later(ack, time.Now())
			if err != nil {
				return usage(c, "%v", err)
			}
			if by.IsZero() {
				return usage(c, "--ack %s: give a time", terminal.Visible(ack))
			}
			p.AckBy = capabilities.At(by)
		}
		to := args
		if !c.Flags().Changed("text") {
			to, p.Text = args[:len(args)-1], args[len(args)-1]
		}
		var err error
		if p.Files, err = attachFiles(c.Context(), env, attached); err != nil {
			return err
		}
		return send(c.Context(), to, p)
	}
	return c
}

// sendNow sends a message, and prints its ID.
func sendNow[R any](ctx context.Context, env *environment, o api.Op[R, view.Sent], r R, whom string) error {
	sent, err := o.Do(ctx, env, r)
	if err != nil {
		return err
	}
	env.noteUnreachable(sent.Unreachable, whom)
	if sent.Queued && !env.options.json {
		fmt.Fprintln(env.stderr, "parley: the recipient works: the message is queued until the turn ends")
	}
	env.notePromised(sent.Promised)
	env.noteAbsent(view.AbsentWords(sent.Absent, partyWords))
	env.noteGiven(sent)
	return env.print(sent, sent.Message.String)
}

// notePromised tells a person that a message goes on later. JSON output has that in the result.
func (env *environment) notePromised(p *view.Promised) {
	if p != nil && !env.options.json {
		fmt.Fprintln(env.stderr, "parley: it "+terminal.Visible(p.Words())+": it goes on, or ends, with that")
	}
}

func partyWords(id capabilities.ID, name string) string { return show.Party(name, id) }

// noteAbsent tells a person of which recipients nobody reads the mailbox now.
func (env *environment) noteAbsent(lines []string) {
	if env.options.json {
		return
	}
	for _, line := range lines {
		fmt.Fprintln(env.stderr, "parley: "+terminal.Visible(line))
	}
}

func sendCommand(env *environment) *cobra.Command {
	var when scheduleOptions
	c := &cobra.Command{
		Use:   "send RECIPIENT... TEXT",
		Short: "Send a message",
		Long: `Sends a message, to one recipient or to several: to all of them, or to nobody. Each sees who else got it. A reply goes to the
sender, and with --all to the others. @name at the beginning of a word carries what the agent holds under that name, @edge:name the same under
another word. The recipient may keep it with "parley adopt". Any other @ is text: before what is no name that the agent
holds, inside a word, in code (backticks) and in quotes, and \@. What was handed over, and what was taken as text, is said.

With --at or --every it is sent later, from the log: once, also when the node was down at that time. Of a series, what was
missed is sent once. "parley schedule ls" lists what is to come.`,
		Example: `  parley send bob 'meet @alice, my address is me@example.com'
  parley send bob 'here is the @worker:build/worker-3' --as fae
  parley send bob 'the log of the build' --attach build.log
  parley send SELF 'look at the build' --at 30m
  parley send planner reviewer ops --text 'the build is red' --ack 10m --escalate lead
  parley send bob 'what is open?' --every '0 9 * * 1-5' --tz Europe/Berlin`,
		Args:              withText(true, "RECIPIENT"),
		ValidArgsFunction: completeArguments(env, api.CompleteNames),
	}
	when.flags(c)
	return sendsMessage(env, c, func(ctx context.Context, to []string, p parley.Post) error {
		if when.isLater() {
			return when.send(ctx, env, to, p)
		}
		whom := terminal.Quoted(to[0])
		if len(to) > 1 {
			whom = "one of the recipients"
		}
		return sendNow(ctx, env, api.Send, api.SendRequest{Acting: env.acting(), Recipient: to[0], Recipients: to[1:], Post: p}, whom)
	})
}

// noteGiven tells a person what a message has handed over, and what in it was taken as text.
func (env *environment) noteGiven(sent view.Sent) {
	if env.options.json {
		return
	}
	if words := sent.Words(); words != "" {
		fmt.Fprintln(env.stderr, "parley: "+terminal.Visible(words))
	}
	if len(sent.NotTo) > 0 {
		fmt.Fprintln(env.stderr, "parley: not sent to "+show.Recipients(sent.NotTo)+": the agent cannot reach them")
	}
}

func replyCommand(env *environment) *cobra.Command {
	all := false
	c := &cobra.Command{
		Use:   "reply NUMBER TEXT",
		Short: "Reply to a message",
		Long: `Replies to whoever sent a message, also where the agent has no name for them. With --all the reply goes to its other
recipients too, as far as the agent can reach them; it says whom not. The text is as with send.`,
		Example:           "  parley reply 0 'got it' --as bob\n  parley reply 0 'got it' --all --as bob",
		Args:              withText(false, "NUMBER"),
		ValidArgsFunction: completeArguments(env, api.CompleteMessages),
	}
	c.Flags().BoolVar(&all, "all", false, "to the other recipients of the message too")
	return sendsMessage(env, c, func(ctx context.Context, to []string, p parley.Post) error {
		return sendNow(ctx, env, api.Reply, api.ReplyRequest{Acting: env.acting(), FormRef: api.RefTo(to[0]), All: all, Post: p}, "whoever sent "+terminal.Visible(to[0]))
	})
}

func adoptCommand(env *environment) *cobra.Command {
	var name string
	c := &cobra.Command{
		Use:   "adopt NUMBER EDGE [NAME]",
		Short: "Store a reference from a message under a name",
		Long:  "Keeps what a message carries under the word EDGE, as NAME or under that word.",
		Example: `  parley inbox --as bob        0. "alice" sent "my address: @me" at …
  parley adopt 0 me alice --as bob`,
		Args:              between(2, 3, "NUMBER", "EDGE", "[NAME]"),
		ValidArgsFunction: completeAdopt(env),
	}
	c.Flags().StringVar(&name, "name", "", "the same as NAME: hold it under this `name` (default: EDGE)")
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) > 2 {
			if name != "" && name != args[2] {
				return usage(c, "give the NAME once")
			}
			if name = args[2]; name == "" {
				return usage(c, "the NAME is empty")
			}
		}
		err := api.Adopt.Run(c.Context(), env, api.AdoptRequest{
			Acting: env.acting(), FormRef: api.RefTo(args[0]), Edge: args[1], Name: name,
		})
		if err != nil {
			return err
		}
		held := name
		if held == "" {
			held = args[1]
		}
		return env.print(map[string]string{"name": held}, func() string { return "adopted " + terminal.Quoted(args[1]) + " as " + terminal.Quoted(held) })
	}
	return c
}

func ackCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "ack NUMBER",
		Short: "Acknowledge a message",
		Long: `Tells the sender of a message that the agent has taken note of it. A reply does so too. A message that says "acknowledge by"
comes back as new when that time has passed, once.`,
		Example:           "  parley ack 3 --as bob",
		Args:              exactly("NUMBER"),
		ValidArgsFunction: completeArguments(env, api.CompleteMessages),
		RunE: func(c *cobra.Command, args []string) error {
			if err := api.Acknowledge.Run(c.Context(), env, api.MessageRequest{Acting: env.acting(), FormRef: api.RefTo(args[0])}); err != nil {
				return err
			}
			return env.print(map[string]string{"acknowledged": args[0]}, func() string { return "acknowledged " + terminal.Visible(args[0]) })
		},
	}
}

func dismissCommand(env *environment) *cobra.Command {
	undo := false
	c := &cobra.Command{
		Use:   "dismiss NUMBER...",
		Short: "Dismiss messages from the inbox",
		Long: `Drops messages from the inbox. They keep their numbers and stay in the log and in "inbox --all"; a form that
is dismissed stays open. --undo brings messages back into view. Several are dropped at once, also if one of them is refused.`,
		Example:           "  parley dismiss 2\n  parley dismiss 2 5 7\n  parley dismiss 2 --undo",
		Args:              atLeast("NUMBER"),
		ValidArgsFunction: completeArguments(env, api.CompleteMessages),
		RunE: func(c *cobra.Command, args []string) error {
			what, done := "dismiss", "dismissed"
			if undo {
				what, done = "restore", "restored"
			}
			return moveMessages(c.Context(), env, api.MoveMessagesRequest{Do: what}, args, map[string]any{}, done, "")
		},
	}
	c.Flags().BoolVar(&undo, "undo", false, "bring the messages back into view")
	return c
}

func snoozeCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "snooze NUMBER... WHEN",
		Short: "Snooze messages",
		Long: `Takes messages out of what waits, until a time. Then they come back as new, also if the node was down at that time.
WHEN is a time from now (2h, 3d), a time of day (14:00), tomorrow (at nine), a date (at nine) or a moment. "off" brings the
messages back now. The deadline of a form stays. "parley inbox --snoozed" lists what is snoozed.`,
		Example:           "  parley snooze 2 2h\n  parley snooze 2 5 tomorrow\n  parley snooze 2 2026-01-31T12:00:00Z\n  parley snooze 2 off",
		Args:              atLeast("NUMBER", "WHEN"),
		ValidArgsFunction: completeArguments(env, api.CompletePending),
		RunE: func(c *cobra.Command, args []string) error {
			which, when := args[:len(args)-1], args[len(args)-1]
			until, err := terminal.Later(when, time.Now())
			if err != nil {
				return usage(c, "%v", err)
			}
			r, how := api.MoveMessagesRequest{Do: "snooze"}, " no longer"
			if !until.IsZero() {
				if !until.After(time.Now()) {
					return usage(c, "%s has passed", env.screen().Moment(until, until.Format(time.RFC3339)))
				}
				r.Until = capabilities.At(until)
				how = " until " + env.screen().Moment(until, r.Until.String())
			}
			return moveMessages(c.Context(), env, r, which, map[string]any{"until": r.Until}, "snoozed", how)
		},
	}
}

// moveMessages moves messages, those of one call together. It prints what was done to which, and how. Its error names
// those that were refused.
func moveMessages(ctx context.Context, env *environment, r api.MoveMessagesRequest, which []string, print map[string]any, done, how string) error {
	r.Acting = env.acting()
	var failed []error
	moved := slices.Clone(which)
	for some := range slices.Chunk(which, api.MaxMoved) {
		r.Messages = nil
		for _, w := range some {
			r.Messages = append(r.Messages, api.RefTo(w))
		}
		got, err := api.MoveMessages.Do(ctx, env, r)
		if err != nil {
			return errors.Join(append(failed, err)...)
		}
		for _, u := range got.Refused {
			if len(which) == 1 {
				return u.Error
			}
			named := cmp.Or(string(u.Number), string(u.ID))
			failed = append(failed, fmt.Errorf("%s: %w", named, u.Error))
			moved = slices.DeleteFunc(moved, func(m string) bool { return m == named })
		}
	}
	if print[done] = any(moved); len(which) == 1 {
		print[done] = which[0]
	}
	if len(moved) == 0 {
		return errors.Join(failed...)
	}
	text := done + " " + strings.Join(moved, ", ") + how
	return errors.Join(append(failed, env.print(print, func() string { return terminal.Visible(text) }))...)
}

func inboxCommand(env *environment) *cobra.Command {
	var (
		filter client.View
		follow bool
		last   int
	)
	c := &cobra.Command{
		Use:   "inbox",
		Short: "List messages",
		Long: `Lists what waits for an answer, and the last 50 messages that the agent received and has not dismissed.
Messages keep their numbers for ever. Characters that do not show themselves are shown escaped.`,
		Example: `  parley inbox
  parley inbox --last 0                every message that was not dismissed
  parley inbox --pending               what waits for an answer
  parley inbox --snoozed               what comes back later
  parley inbox --done                  what was answered, has ended or was dismissed
  parley inbox --all --as fae          also what fae sent and dismissed
  parley inbox --sent                  what the agent sent, and how far it has come
  parley inbox --overdue               what was not acknowledged in time
  parley inbox --follow --json         every change, one envelope a line`,
	}
	c.Flags().BoolVar(&filter.All, "all", false, "also what the agent sent and what it dismissed")
	c.Flags().BoolVar(&filter.Pending, "pending", false, "only what waits for the agent's answer")
	c.Flags().BoolVar(&filter.Snoozed, "snoozed", false, "only what is snoozed")
	c.Flags().BoolVar(&filter.Done, "done", false, "only what was received, and is dismissed or settled")
	c.Flags().BoolVar(&filter.Unread, "unread", false, "only what others sent, is not done and was not read")
	c.Flags().BoolVar(&filter.Sent, "sent", false, "only what the agent sent")
	c.Flags().BoolVar(&filter.Overdue, "overdue", false, "only what was sent or received and not acknowledged in time")
	c.MarkFlagsMutuallyExclusive("pending", "snoozed", "done", "unread", "sent", "overdue")
	c.Flags().BoolVar(&filter.Open, "open", false, "and only forms that have not ended")
	c.Flags().BoolVar(&filter.Notes, "notes", false, "and only messages that are no forms")
	c.MarkFlagsMutuallyExclusive("open", "notes")
	c.Flags().IntVar(&last, "last", 50, "only so many of the last messages; 0 for all of them")
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on showing what is new or changes")
	c.RunE = func(c *cobra.Command, _ []string) error {
		waiter := env.waiter(false)
		defer waiter.Close()
		if follow {
			return followInbox(c.Context(), env, waiter, filter)
		}
		if last < 0 {
			return parley.Refuse(parley.InvalidArgument, "--last %d: give a number, or 0 for all of them", last)
		}
		all, err := lastMessages(c.Context(), env, waiter, filter, last, c.Flags().Changed("last"))
		if err != nil {
			return err
		}
		none := "no messages"
		switch {
		case filter.Pending:
			none = "nothing waits for an answer"
		case filter.Snoozed:
			none = "nothing is snoozed"
		case filter.Overdue:
			none = "nothing is overdue"
		}
		return printMessages(c.Context(), env, all, none, true)
	}
	return c
}

// mostFound bounds what one search returns.
const mostFound = 100

func searchCommand(env *environment) *cobra.Command {
	var (
		r            api.SearchRequest
		since, until pastMoment
		thread       string
	)
	c := &cobra.Command{
		Use:   "search [WORD…]",
		Short: "Search messages and decisions",
		Long: `Lists messages that have all the words, in their text, subject, fields or answer, the newest first. Accents and case make
no difference. "two words" in quotation marks are a phrase, and word* is the beginning of a word. Without words it lists what the
options pick.`,
		Example: `  parley search 'build fail*' --from builder
  parley search --thread 12 --order oldest
  parley search --verdict denied --tool Bash --since 48h
  parley search --decided-by SELF -o json`,
		Args: cobra.ArbitraryArgs,
	}
	f := c.Flags()
	f.StringVar(&r.Subject, "subject", "", "only with these `words` in the subject or title")
	f.StringVar(&r.From, "from", "", "only what this `agent` sent")
	f.StringVar(&r.To, "to", "", "only what was sent to this `agent`")
	f.StringVar(&r.DecidedBy, "decided-by", "", "only what this `agent` has answered, declined or cancelled")
	f.StringVar(&thread, "thread", "", "only messages of the thread of a message, by its `number` or ID")
	f.StringSliceVar(&r.Types, "type", nil, "only this `type`: message, form, request or approval")
	f.StringSliceVar(&r.Outcomes, "outcome", nil, "only forms that ended so: `answered`, declined, cancelled, expired or superseded")
	f.StringVar(&r.Verdict, "verdict", "", "only calls that were `allowed` or denied")
	f.StringVar(&r.Tool, "tool", "", "only calls of this `tool`")
	f.Var(&since, "since", "only from this `time` on: 2h ago, as 2h, or a moment (2026-01-31T12:00:00Z)")
	f.Var(&until, "until", "only before this `time`")
	f.StringVar(&r.Order, "order", "", "newest (default), oldest, relevance, urgency, subject, or ended: what was decided or answered last first")
	f.BoolVar(&r.Unread, "unread", false, "only what others sent, is not done and was not read")
	f.BoolVar(&r.Open, "open", false, "only forms that have not ended")
	f.IntVar(&r.Skip, "skip", 0, "leave out so many `messages` of those found")
	f.IntVar(&r.Limit, "limit", 50, "so many `messages` at most, up to 100")
	for _, agent := range []string{"from", "to", "decided-by"} {
		_ = c.RegisterFlagCompletionFunc(agent, completeFlag(env, api.CompleteNames))
	}
	completeFlagOf(c, "type", "message", "form", "request", "approval")
	completeFlagOf(c, "outcome", "answered", "declined", "cancelled", "expired", "superseded")
	completeFlagOf(c, "verdict", "allowed", "denied")
	completeFlagOf(c, "order", "newest", "oldest", "relevance", "urgency", "subject", "ended")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := checkCount("limit", r.Limit, mostFound, "--skip leaves out what came before"); err != nil {
			return err
		}
		r.Acting, r.Text, r.Since, r.Until = env.acting(), strings.Join(args, " "), capabilities.At(since.at), capabilities.At(until.at)
		if thread != "" {
			r.Thread = api.RefTo(thread)
		}
		var found client.Found
		if err := env.Call(c.Context(), string(api.Search), r, &found); err != nil {
			return err
		}
		if env.options.json {
			return env.printJSON(found)
		}
		if err := printMessages(c.Context(), env, found.Messages, "nothing found", false); err != nil {
			return err
		}
		if found.Next > 0 {
			fmt.Fprintf(env.stderr, "there are more: --skip %d\n", found.Next)
		}
		if found.Behind > 0 {
			fmt.Fprintf(env.stderr, "the newest %d events were not searched: the index is being made, try again in a moment\n", found.Behind)
		}
		return nil
	}
	return c
}

func listMessages(ctx context.Context, waiter *client.Client, v client.View) (all []client.Message, err error) {
	for m, err := range waiter.List(ctx, v) {
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// lastMessages returns the messages that a filter picks: the last of them if so many were wanted. Without a filter and a
// wish it returns the last messages, and all that wait for an answer. It says on standard error if there may be more.
func lastMessages(ctx context.Context, env *environment, waiter *client.Client, filter client.View, last int, wanted bool) ([]client.Message, error) {
	if last == 0 || !wanted && filter != (client.View{}) {
		return listMessages(ctx, waiter, filter)
	}
	latest, err := waiter.Last(ctx, filter, last)
	if err != nil {
		return nil, err
	}
	earlier := len(latest) >= last && latest[0].Number > 0
	var pending []client.Message
	if !wanted {
		if pending, err = listMessages(ctx, waiter, client.View{Pending: true}); err != nil {
			return nil, err
		}
	}
	for _, m := range pending {
		if len(latest) == 0 || m.Number < latest[0].Number {
			latest = append(latest, m)
		}
	}
	slices.SortFunc(latest, func(a, b client.Message) int { return cmp.Compare(a.Number, b.Number) })
	if earlier && !env.options.json {
		as := ""
		if env.options.as != "" {
			as = " --as " + shell.Word(env.options.as)
		}
		fmt.Fprintf(env.stderr, "there may be earlier messages: parley inbox%s --last 0\n", terminal.Visible(as))
	}
	return latest, nil
}

// followInbox prints the messages that there are and those that come, until it is interrupted.
func followInbox(ctx context.Context, env *environment, waiter *client.Client, filter client.View) error {
	for m, err := range waiter.Follow(ctx, filter, "") {
		if ctx.Err() != nil {
			return &interrupted{} // the way to end it
		}
		if err == nil {
			err = printMessage(env, m)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// printMessages prints a list of messages, or on standard error that there is none. Ranked has a terminal show what waits in the
// order of the queue.
func printMessages(ctx context.Context, env *environment, messages []client.Message, none string, ranked bool) error {
	if env.options.json {
		raw := make([]json.RawMessage, len(messages))
		for i, m := range messages {
			raw[i] = m.Raw
		}
		return env.printJSON(raw)
	}
	env.noteNone(len(messages), none)
	all := make([]view.Message, len(messages))
	for i, m := range messages {
		all[i] = m.Message
	}
	var b strings.Builder
	switch screen := env.screen(); {
	case env.options.quiet:
		for _, e := range all {
			b.WriteString(e.MessageID.String() + "\n")
		}
	case screen.Width > 0 && ranked:
		name, err := env.nameFunc(ctx)
		if err != nil {
			return err
		}
		for _, line := range show.List(all, name, screen) {
			b.WriteString(line + "\n")
		}
	default:
		for _, g := range grouped(all, screen) {
			b.WriteString(show.Repeated(all[g[0]], len(g), screen) + "\n")
		}
	}
	_, err := fmt.Fprint(env.stdout, b.String())
	return err
}

// nameFunc returns the names of agents as a person reads them.
func (env *environment) nameFunc(ctx context.Context) (show.NameFunc, error) {
	self, err := api.Locate.Do(ctx, env, api.NameRequest{Acting: env.acting(), Name: "@self"})
	if err != nil {
		return nil, err
	}
	agents, err := api.All(ctx, env, api.FetchAgents, api.FetchAgentsRequest{Acting: env.acting()},
		func(r api.FetchAgentsResponse) []view.AgentStatus { return r.Agents })
	if err != nil {
		return nil, err
	}
	return people.NamesOf(self.ID, agents).Of, nil
}

// grouped returns the indexes of messages as a list shows them, the urgent ones first. On a terminal, open calls that are identical are one row.
func grouped(all []view.Message, s terminal.Screen) [][]int {
	rows := make([][]int, len(all))
	for i := range all {
		rows[i] = []int{i}
	}
	if s.Width > 0 {
		rows = view.Together(all)
	}
	view.ByPriority(rows, func(row []int) *view.Message { return &all[row[0]] })
	return rows
}

func printMessage(env *environment, m client.Message) error {
	if env.options.json {
		return env.printJSON(m.Raw)
	}
	line := show.Message(m.Message, env.screen())
	if env.options.quiet {
		line = m.MessageID.String()
	}
	_, err := fmt.Fprintln(env.stdout, line)
	return err
}

// showMessage prints a message in full.
func showMessage(ctx context.Context, env *environment, number string) error {
	var raw json.RawMessage
	if err := env.Call(ctx, string(api.GetMessage), api.MessageRequest{Acting: env.acting(), FormRef: api.RefTo(number)}, &raw); err != nil {
		return err
	}
	var w permission
	if err := json.Unmarshal(raw, &w.Message); err != nil {
		return notANode(err)
	}
	err := env.print(raw, func() string {
		if w.Type == approvalType {
			return w.full(ctx, env)
		}
		return show.Whole(w.Message, w.discussion(ctx, env), env.screen())
	})
	if err == nil && w.Unread && env.screen().Width > 0 { // a person has read it, not a script
		_ = api.MarkRead.Run(ctx, env, api.MarkReadRequest{Acting: env.acting(), Numbers: []uint64{w.Number}}) // it stays unread then
	}
	return err
}

func watchCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "watch",
		Short: "Watch the inbox in the terminal, and answer there",
		Long: `Shows the inbox on the whole terminal: a list, what waits first, and below it the selected message, a call with its diff.
What arrives is shown at once. While the node is away it says so, and goes on when the node is back.

  a  allow once, or answer      r      ask back, or reply
  A  always: choose the rule    d      deny or decline, with a reason
  ↑↓ j k  move                  space  mark a call: a and d decide all that are marked
  enter  the message alone, which keys are for then, whatever is marked
  page up, page down  scroll
  s  snooze: 2h, 14:00, tomorrow, 2026-01-31, or off
  v  vote as this agent too, after a vote as another
  q  quit`,
		Example: "  parley watch\n  parley watch --as fae",
		Args:    exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if !env.interactive() {
				return parley.Refuse(parley.InvalidArgument, "watch needs a terminal").WithHint("parley inbox --follow prints what arrives")
			}
			node := env.clientOf(client.Options{As: env.options.as, Patience: -1})
			defer node.Close()
			if err := api.Locate.Run(c.Context(), node, api.NameRequest{Name: "@self"}); err != nil {
				return err
			}
			return watch.Run(c.Context(), watch.Options{Node: node, As: cmp.Or(env.options.as, "HOST"), In: env.stdin, Out: env.stdout, Screen: env.screen()})
		},
	}
}
