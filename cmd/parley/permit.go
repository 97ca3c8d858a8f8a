package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/show"
	"parley/cmd/parley/terminal"
	"parley/events"
	"parley/gateway/api"
	"parley/gateway/client"
	"parley/mailbox"
)

func permitCommand(env *environment) *cobra.Command {
	c := &cobra.Command{
		Use:   "permit",
		Short: "List, show and decide calls that wait for permission",
		Example: `  parley permit ls
  parley permit show 12
  parley permit allow 12
  parley permit deny 12 --message 'not on a Friday'
  parley permit allow fae --always`,
	}
	c.AddCommand(permitListCommand(env), permitShowCommand(env), permitAllowCommand(env), permitDenyCommand(env))
	return c
}

func permitListCommand(env *environment) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the calls that wait for permission",
		Example: "  parley permit ls\n  parley permit ls --all",
		Args:    exactly(),
	}
	c.Flags().BoolVarP(&all, "all", "a", false, "also those that were decided, or have ended without a decision")
	c.RunE = func(c *cobra.Command, _ []string) error {
		waiting, err := approvals(c.Context(), env, all)
		if err != nil {
			return err
		}
		calls := make([]pendingCall, len(waiting))
		for i, w := range waiting {
			calls[i] = w.call()
		}
		var name show.NameFunc
		if env.screen().Width > 0 && len(waiting) > 0 {
			if name, err = env.nameFunc(c.Context()); err != nil {
				return err
			}
		}
		none := "no calls wait for permission"
		if all {
			none = "no calls have asked for permission"
		}
		return printList(env, calls, none, func() string {
			screen := env.screen()
			all := make([]view.Message, len(waiting))
			for i, w := range waiting {
				all[i] = w.Message
			}
			if screen.Width > 0 {
				return strings.Join(show.List(all, name, screen), "\n") + "\n" + screen.Paint(terminal.Faint, "parley permit show NUMBER shows all of a call")
			}
			var lines []string
			for _, g := range grouped(all, screen) {
				var same []view.Message
				for _, i := range g {
					same = append(same, all[i])
				}
				lines = append(lines, waiting[g[0]].listed(same, screen))
			}
			return strings.Join(lines, "\n")
		})
	}
	return c
}

func permitShowCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "show NUMBER|ID|DIGEST",
		Short: "Show a call in full, and what always would allow",
		Long: `Shows the call of an approval in full: a command, an edit as a diff, or the keys of its input. It says in words what
--always would allow, or how the approval was decided.`,
		Example:           "  parley permit show 12\n  parley permit show 12 --json",
		Args:              exactly("NUMBER"),
		ValidArgsFunction: completeWaiting(env, anApproval),
		RunE: func(c *cobra.Command, args []string) error {
			w, named, err := findApproval(c.Context(), env, args[0])
			if err == nil && !named {
				err = usage(c, "%q is no number of a message, no ID and no digest", args[0])
			}
			if err != nil {
				return err
			}
			return env.print(w.call(), func() string { return w.full(c.Context(), env) })
		},
	}
}

// previewLines bounds the lines of a call in a list.
const previewLines = 8

// listed returns an approval as an item of a list, with those that ask the same. A terminal is shown the beginning of the
// call below it.
func (w permission) listed(same []view.Message, s terminal.Screen) string {
	times := len(same)
	text := show.Repeated(w.Message, times, s)
	if w.Outcome != nil {
		return text
	}
	if s.Width > 0 {
		text += "\n" + show.Preview(show.CallLines(w.Message), s, previewLines, fmt.Sprintf("parley permit show %d", w.Number))
	}
	for _, l := range show.Others(w.Message, same) {
		text += "\n   " + l.Paint(s)
	}
	if times > 1 {
		text += fmt.Sprintf("\n   all %d: parley allow --same %d | parley deny --same %d", times, w.Number, w.Number)
	}
	return text + w.rulesText()
}

// pastOf returns, for each rule that an open approval offers, what it would have decided so far, in words. Where that cannot be told it
// returns none: the call can be decided all the same.
func pastOf(ctx context.Context, env *environment, w permission) map[string]string {
	if w.Outcome != nil || !w.Takes(mailbox.Always) || show.IsHigh(w.Message) {
		return nil
	}
	t, err := api.TryRules.Do(ctx, env, api.TryRulesRequest{Acting: env.acting(), FormRef: api.RefTo(w.MessageID.String())})
	if err != nil {
		return nil
	}
	past := map[string]string{}
	for _, r := range t.Rules {
		if r.Covered > 0 {
			past[r.Offer] = triedWords(r)
		}
	}
	return past
}

// isSigned reports whether the decision of several was signed with a passkey by whoever gave the last vote. A proof knows; the copy of
// another who voted does not.
func (w permission) isSigned(ctx context.Context, env *environment) bool {
	made, err := api.ProveForm.Do(ctx, env, api.ProofRequest{Acting: env.acting(), FormRef: api.RefTo(w.MessageID.String()), DigestOnly: true})
	return err == nil && made.Signed
}

// full returns an approval with all of its call, above it what was said of it, and below it what the rules that it offers would have decided.
func (w permission) full(ctx context.Context, env *environment) string {
	s, past := env.screen(), pastOf(ctx, env, w)
	var b strings.Builder
	b.WriteString(show.Message(w.Message, s))
	if said := w.discussion(ctx, env); len(said) > 0 {
		b.WriteString("\n" + show.Preview(said, s, 0, ""))
	}
	b.WriteString("\n   tool:  " + terminal.Visible(w.Title) + "\n")
	b.WriteString(show.Preview(append(show.CallLines(w.Message), show.Passed(w.Message, s)...), s, 0, ""))
	if w.Outcome == nil && w.Takes(mailbox.Always) && show.IsHigh(w.Message) {
		b.WriteString("\n   always allows: nothing: a call of high risk can only be allowed once")
	} else if w.Outcome == nil && w.Takes(mailbox.Always) {
		lines := numbered(w.offers())
		for i, o := range w.rules() {
			if said := past[o.ID]; said != "" {
				lines[i] += "\n                     " + said
			}
		}
		b.WriteString("\n   always allows: " + strings.Join(lines, "\n                  "))
	}
	if note := w.note(); note != "" {
		b.WriteString("\n   note:  " + terminal.Visible(note))
	}
	if o := w.Outcome; o != nil && (o.Signed || o.Allowed && w.Votes != nil && w.isSigned(ctx, env)) {
		b.WriteString("\n   signed with a passkey: parley proof has what was signed")
	}
	if o := w.Outcome; o != nil && o.EditedInput != "" {
		b.WriteString("\n   allowed instead: " + terminal.Visible(o.EditedInput))
		fmt.Fprintf(&b, "\n   digests: %s was shown, %s is allowed", w.Digest, o.EditedDigest)
	}
	if w.AnswerNeeded {
		b.WriteString("\n   ")
		switch {
		case w.Passkey:
			b.WriteString("parley open | ")
		case w.Takes(mailbox.Once):
			fmt.Fprintf(&b, "parley allow %d | ", w.Number)
		}
		fmt.Fprintf(&b, "parley deny %d [REASON]", w.Number)
		if w.Review != nil && w.Review.How == "" {
			fmt.Fprintf(&b, " | parley decline %d [OPINION] leaves it to the agent's host", w.Number)
		}
		if w.Takes(mailbox.Always) && !show.IsHigh(w.Message) {
			fmt.Fprintf(&b, " | parley allow %d --always --rule NUMBER", w.Number)
		}
		if mailbox.IsEditable(w.Fields) {
			fmt.Fprintf(&b, " | parley allow %d --edit", w.Number)
		}
	}
	return b.String()
}

// permission is an approval that waits for a decision, or another message.
type permission struct{ view.Message }

// discussion returns what was asked back about a form and replied.
func (w permission) discussion(ctx context.Context, env *environment) []show.Line {
	if w.Type == "message" || w.Archived != nil {
		return nil
	}
	found, err := api.Search.Do(ctx, env, api.DiscussionOf(env.acting(), w.MessageID))
	return show.Discussion(&w.Message, found, err)
}

// pendingCall is the JSON form of a call that an agent waits to make.
type pendingCall struct {
	AgentID   capabilities.ID   `json:"agentId"`
	Agent     string            `json:"agent,omitempty"`     // the caller's name for it
	AgentSaid string            `json:"agentSaid,omitempty"` // without one: what it calls itself, which may be any words
	Form      capabilities.ID   `json:"form"`
	Number    uint64            `json:"number"` // of the approval, in the caller's mailbox
	Tool      string            `json:"tool"`
	Input     json.RawMessage   `json:"input"`
	Digest    string            `json:"digest"` // of the tool, the input and the folder: it is decided by this, too
	Offers    []string          `json:"offers"` // the rules that --always --rule chooses from, that for the very call first
	Note      string            `json:"note,omitempty"`
	Editable  bool              `json:"editable,omitempty"` // it may be allowed with another input
	AskedAt   capabilities.Time `json:"askedAt"`
	Folder    string            `json:"folder,omitempty"`  // in which the call is made
	Reason    string            `json:"reason,omitempty"`  // why, in the agent's own words
	Part      string            `json:"part,omitempty"`    // of the agent, as it calls it
	Session   string            `json:"session,omitempty"` // of a coding agent, as the node calls it
	Use       *parley.AskedUse  `json:"use,omitempty"`     // of a resource: who uses it, as the node knows it
	Rules     []parley.Offer    `json:"rules"`             // the offers as data: an answer may name the ID of one
	Outcome   *view.Outcome     `json:"outcome,omitempty"` // nil while it is open
}

func (w permission) call() pendingCall {
	c := pendingCall{
		AgentID: w.From, Agent: w.FromName, AgentSaid: w.FromSaid, Form: w.MessageID, Number: w.Number, Tool: w.Title, Input: json.RawMessage(w.Description), Folder: w.Folder, Digest: w.Digest, AskedAt: w.Date,
		Offers: w.offers(), Rules: w.rules(), Reason: w.Permission.Reason, Part: w.Permission.Part, Session: w.Permission.Session, Use: w.Permission.Use, Note: w.note(), Editable: mailbox.IsEditable(w.Fields), Outcome: w.Outcome,
	}
	if !json.Valid(c.Input) { // an input of another client may be no JSON
		c.Input, _ = json.Marshal(w.Description) // a string, which can always be
	}
	return c
}

func waitingApprovals(ctx context.Context, env *environment) ([]permission, error) {
	return approvals(ctx, env, false)
}

// approvals returns the approvals that wait for the caller, or with all those that it was ever asked for.
func approvals(ctx context.Context, env *environment, all bool) ([]permission, error) {
	waiter := env.waiter(false)
	defer waiter.Close()
	found := []permission{}
	for m, err := range waiter.List(ctx, client.View{Pending: !all, All: true}) {
		if err != nil {
			return nil, err
		}
		if m.Type == approvalType && m.Received {
			found = append(found, permission{m.Message})
		}
	}
	return found, nil
}

const approvalType = "approval"

func permitAllowCommand(env *environment) *cobra.Command {
	return allowing(env, "allow NUMBER|ID|DIGEST|AGENT [FORM]", "Allow a call that an agent asks permission for", []string{"AGENT", "FORM"}, decideSeveral)
}

func permitDenyCommand(env *environment) *cobra.Command {
	return denying(env, "deny NUMBER|ID|DIGEST|AGENT [FORM]", "Deny a call that an agent asks permission for", []string{"AGENT", "FORM"}, decideSeveral)
}

// allowCommand and denyCommand return the short forms of permit allow and permit deny. They take the numbers that
// parley inbox and parley permit ls show.
func allowCommand(env *environment) *cobra.Command {
	c := allowing(env, "allow NUMBER …", "Allow the calls of approvals", nil, decideNamed)
	c.Long = `Allows the calls that approvals ask about, and prints them in full. NUMBER is that of parley inbox and parley permit ls,
or a range of these as 3-7; the form's ID and the call's digest are taken too. What has ended meanwhile is named, and
does not stop the others.`
	c.Example = `  parley allow 12
  parley allow 3 4 7
  parley allow 12 --same                every open call that is identical to 12
  parley allow 12 --edit                with another input, where the agent can take one
  parley allow 12 --always --until 8h
  parley allow 12 --mandate --like 'git status' --files 'src/**' --calls 50 --until 2h`
	return c
}

func denyCommand(env *environment) *cobra.Command {
	c := denying(env, "deny NUMBER … [REASON]", "Deny the calls of approvals", nil, func(env *environment, c *cobra.Command, args []string, how decision) error {
		if n := len(args) - 1; (n > 0 || n == 0 && how.all) && !namesCall(args[n]) {
			if how.reason != "" {
				return usage(c, "give the REASON once")
			}
			how.reason, args = args[n], args[:n]
		}
		return decideNamed(env, c, args, how)
	})
	c.Long = `Denies the calls that approvals ask about, and prints them in full. The agent is told the reason. NUMBER is that of
parley inbox and parley permit ls, or a range of these as 3-7; the form's ID and the call's digest are taken too.`
	c.Example = `  parley deny 12 'not on a Friday'
  parley deny 3-7 --reason 'not on a Friday'
  parley deny --from fae --all 'not on a Friday'
  parley deny 12 --always`
	return c
}

// allowing returns a command that allows calls.
func allowing(env *environment, use, short string, takes []string, decide func(*environment, *cobra.Command, []string, decision) error) *cobra.Command {
	c, how := deciding(env, use, short, takes)
	c.Flags().BoolVar(&how.edit, "edit", false, "change the input before, in $VISUAL or $EDITOR; the agent gets what was allowed")
	how.mandate.add(c)
	c.Flags().StringVar(&how.input, "input", "", "allow this input instead of the one shown: a `file` with JSON, or - for standard input")
	c.RunE = func(c *cobra.Command, args []string) error {
		how.choice = mailbox.Once
		if how.always {
			how.choice = mailbox.Always
		}
		return decide(env, c, args, *how)
	}
	return c
}

// denying returns a command that denies calls.
func denying(env *environment, use, short string, takes []string, decide func(*environment, *cobra.Command, []string, decision) error) *cobra.Command {
	c, how := deciding(env, use, short, takes)
	c.Flags().StringVar(&how.reason, "message", "", "the same as --reason `words`")
	c.Flags().StringVar(&how.reason, "reason", "", "say why, in `words`")
	c.RunE = func(c *cobra.Command, args []string) error {
		how.choice = mailbox.Deny
		if how.always {
			how.choice = mailbox.Never
		}
		return decide(env, c, args, *how)
	}
	return c
}

// deciding returns a command that decides on calls, and its options.
func deciding(env *environment, use, short string, takes []string) (*cobra.Command, *decision) {
	how := &decision{}
	verb, _, _ := strings.Cut(use, " ")
	c := &cobra.Command{
		Use:   use,
		Short: short,
		Long: short + `, and print it in full. A call is named by its number in parley permit ls, by its form's ID or by
its digest. With an AGENT alone, a terminal is shown what the agent waits to do and asked about it; elsewhere it
is taken only if that is one call.`,

		Example:           "  parley permit " + verb + " 12\n  parley permit " + verb + " fae\n  parley permit " + verb + " fae 12 --always --until 8h\n  parley permit " + verb + " 12 --always --rule 2",
		Args:              argumentsOf(takes),
		ValidArgsFunction: completeWaiting(env, anApproval),
	}
	c.Flags().BoolVar(&how.always, "always", false, "and from now on, by a standing rule: for that very call if no --rule is given; the rule is printed")
	c.Flags().StringVar(&how.rule, "rule", "", "with --always: make this rule, by its `number` in parley permit ls, its ID or its words")
	c.Flags().Var(&how.until, "until", "with --always: the rule ends then, a `time` from now (8h) or a moment")
	if strings.Contains(use, "AGENT") {
		c.ValidArgsFunction = completeDecision(env)
		c.Flags().BoolVar(&how.all, "all", false, "all calls that the agent waits to make")
	} else {
		c.Flags().BoolVar(&how.same, "same", false, "also all open calls that are identical: of the same agent, tool, input and folder")
		c.Flags().StringVar(&how.from, "from", "", "with --all: the `agent` whose calls are decided")
		c.Flags().BoolVar(&how.all, "all", false, "with --from: all calls that the agent waits to make")
	}
	return c, how
}

// argumentsOf returns the check of a command's arguments. Without names it accepts any.
func argumentsOf(names []string) cobra.PositionalArgs {
	if names == nil {
		return cobra.ArbitraryArgs
	}
	return between(1, len(names), names...)
}

// maxEdited bounds an edited input as it is read, in bytes. The node's bound is 256 KiB.
const maxEdited = 1 << 20

// editedInput returns the input that is to be allowed instead of the one shown; "" for that.
func (env *environment) editedInput(ctx context.Context, which permission, how decision) (string, error) {
	if !how.edits() {
		return "", nil
	}
	if !mailbox.IsEditable(which.Fields) {
		return "", parley.Refuse(parley.InvalidArgument, "the agent of call %d cannot take another input: it makes the call as it was asked", which.Number).
			WithHint("parley deny %d REASON tells it what to do instead", which.Number)
	}
	text, err := []byte(nil), error(nil)
	if how.input != "" {
		text, err = env.readInput(how.input)
	} else {
		text, err = env.editInput(ctx, which.Description)
	}
	if err != nil {
		return "", err
	}
	text = bytes.TrimSpace(text)
	switch {
	case len(text) == 0:
		return "", &interrupted{message: "the input is empty: nothing was decided"}
	case how.edit && compacted(text) == compacted([]byte(which.Description)):
		return "", &interrupted{message: "the input was not changed: nothing was decided", hint: fmt.Sprintf("parley allow %d allows it as it is", which.Number)}
	}
	return string(text), nil
}

// compacted returns a JSON document without spaces; another text as it is.
func compacted(text []byte) string {
	var b bytes.Buffer
	if json.Compact(&b, text) != nil {
		return string(text)
	}
	return b.String()
}

// editInput has the person change an input in an editor.
func (env *environment) editInput(ctx context.Context, input string) ([]byte, error) {
	folder, err := os.MkdirTemp("", "parley-edit-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // what is left is in the folder for temporary files
	path := filepath.Join(folder, "input.json")
	var pretty bytes.Buffer
	if json.Indent(&pretty, []byte(input), "", "  ") != nil {
		pretty.Reset()
		pretty.WriteString(input)
	}
	pretty.WriteByte('\n')
	if err := os.WriteFile(path, pretty.Bytes(), 0o600); err != nil {
		return nil, err
	}
	editor := "vi"
	for _, name := range []string{"EDITOR", "VISUAL"} {
		if set, _ := env.lookup(name); set != "" {
			editor = set
		}
	}
	run := exec.CommandContext(ctx, "sh", "-c", editor+` "$1"`, "sh", path)
	run.Stdin, run.Stdout, run.Stderr = env.stdin, env.stderr, env.stderr
	if out, ok := env.stdout.(*os.File); ok && env.interactive() {
		run.Stdout = out
	}
	if err := run.Run(); err != nil {
		return nil, &interrupted{message: fmt.Sprintf("the editor ended with %v: nothing was decided", err)}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read from
	return terminal.Read(f, "the input", maxEdited)
}

// rules returns the rules that an approval offers. The first covers exactly this call.
func (w permission) rules() []parley.Offer {
	if !w.Takes(mailbox.Always) || show.IsHigh(w.Message) {
		return []parley.Offer{}
	}
	return mailbox.OffersOf(w.Permission)
}

// offers returns the rules that an approval offers, in words.
func (w permission) offers() []string {
	words := []string{}
	for _, o := range w.rules() {
		words = append(words, o.Words)
	}
	return words
}

// note returns the note of an approval about a former rule, or "".
func (w permission) note() string {
	for _, f := range w.Fields {
		if f.Name == "decision" {
			return f.Help
		}
	}
	return ""
}

// offer returns the offered rule with a number, from 1, with an ID or with words that no other has. It returns none for no choice. So it does for
// the rule of the very call, for which an approval may have no field.
func (w permission) offer(chosen string) (offer parley.Offer, err error) {
	if chosen == "" {
		return offer, nil
	}
	var found []parley.Offer
	for i, o := range mailbox.OffersOf(w.Permission) {
		if chosen == o.ID || chosen == strconv.Itoa(i+1) {
			found = []parley.Offer{o}
			break
		}
		if chosen == o.Words {
			found = append(found, o)
		}
	}
	switch {
	case len(found) > 1:
		return offer, parley.Refuse(parley.Ambiguous, "approval %d offers several rules with the words %q", w.Number, chosen).
			WithHint("choose one by its number or its ID: %s", strings.Join(numbered(w.offers()), " | "))
	case len(found) == 1 && found[0].Rule.Kind == events.CoversCall:
		return offer, nil
	case len(found) == 1:
		return found[0], nil
	}
	return offer, parley.Refuse(parley.InvalidArgument, "approval %d does not offer the rule %q", w.Number, chosen).
		WithHint("choose one by its number or its words: %s", strings.Join(numbered(w.offers()), " | "))
}

// refuse returns the error for a decision that an approval does not take.
func (w permission) refuse() error {
	if w.Review != nil && w.Review.How == "" {
		return parley.Refuse(parley.InvalidAnswer, "call %d is yours to review: a reviewer makes no rule", w.Number).WithHint("leave out --always")
	}
	if w.Passkey {
		return parley.Refuse(parley.InvalidAnswer, "call %d needs a passkey each time: no rule is made of it", w.Number).WithHint("allow it once, on the page: parley open")
	}
	if w.Takes(mailbox.Once) {
		return parley.Refuse(parley.InvalidAnswer, "call %d is decided by several, who make no rule", w.Number).WithHint("leave out --always")
	}
	return parley.Refuse(parley.InvalidAnswer, "call %d can only be denied, once: %s", w.Number, terminal.Visible(w.note())).
		WithHint("parley deny %d REASON tells the agent what to do instead", w.Number)
}

// numbered returns the offers with their numbers.
func numbered(offers []string) []string {
	all := make([]string, len(offers))
	for i, words := range offers {
		all[i] = fmt.Sprintf("%d. %s", i+1, terminal.Visible(words))
	}
	return all
}

// rulesText returns the offered rules beyond the call itself, and the note about a former rule. It returns "" if
// there is neither.
func (w permission) rulesText() string {
	var text string
	if offers := w.offers(); len(offers) > 1 {
		text = "\n   rules: " + strings.Join(numbered(offers), "\n          ")
	}
	if w.Takes(mailbox.Always) && show.IsHigh(w.Message) {
		text = "\n   rules: none is offered: a call of high risk can only be allowed once"
	}
	if note := w.note(); note != "" {
		text += "\n   note:  " + terminal.Visible(note)
	}
	return text
}

// shownFor returns a call in full, as a terminal is asked about it. It also returns the rule that a decision would
// make.
func (w permission) shownFor(how decision, s terminal.Screen) (string, error) {
	text := fmt.Sprintf("agent: %s\n   tool:  %s\n", show.Sender(&w.Message), terminal.Visible(w.Title)) +
		show.Preview(append(show.CallLines(w.Message), show.Passed(w.Message, s)...), s, 0, "") + w.rulesText()
	chosen, err := w.offer(how.rule)
	switch {
	case err != nil:
		return "", err
	case !how.always:
		return text, nil // a mandate is shown when it is given
	case chosen.ID == "":
		chosen = mailbox.OffersOf(w.Permission)[0]
	}
	return text + "\n   rule:  " + terminal.Visible(chosen.Words) + untilText(capabilities.At(how.until.at), s), nil
}
