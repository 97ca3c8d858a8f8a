package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
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
	"parley/mailbox"
)

// decision is a decision about calls.
type decision struct {
	choice, reason string // choice is a value of the form's field decision
	always         bool   // for all calls that the rule covers from now on
	rule           string // which, if not that for the very call
	until          moment // when that ends
	all            bool   // all that the agent waits to make
	from           string // that agent, where no argument names it
	same           bool   // also those that ask the same
	edit           bool   // of the input, in an editor
	input          string // file with the input to allow instead
	mandate        mandateFlags
}

// check refuses options that do not go together.
func (d decision) check(c *cobra.Command) error {
	switch {
	case d.until.text != "" && !d.always && !d.mandate.give:
		return usage(c, "--until is for a standing rule or a mandate: give --always or --mandate too")
	case d.rule != "" && !d.always && !d.mandate.give:
		return usage(c, "--rule is for a standing rule or a mandate: give --always or --mandate too")
	case d.rule != "" && d.all:
		return usage(c, "each call offers rules of its own: give a FORM, or leave out --rule")
	case d.edits() && d.always:
		return usage(c, "no rule follows from a call with another input: leave out --always")
	case d.edits() && (d.all || d.same):
		return usage(c, "another input is for one call")
	case d.edit && d.input != "":
		return usage(c, "give --edit or --input")
	case d.from != "" && !d.all:
		return usage(c, "--from is for all calls of an agent: give --all too")
	}
	return d.mandate.check(c, d)
}

func (d decision) edits() bool { return d.edit || d.input != "" }

// verb returns the decision as the beginning of a question.
func (d decision) verb() string {
	verb := "Deny"
	if d.choice == mailbox.Once || d.choice == mailbox.Always {
		verb = "Allow"
	}
	if d.always {
		verb = "Always " + strings.ToLower(verb)
	}
	return verb
}

// decideNamed decides on the calls that arguments name, and on those that ask the same.
func decideNamed(env *environment, c *cobra.Command, args []string, how decision) (err error) {
	defer func() { err = env.notHost(c.Context(), err) }()
	if err := how.check(c); err != nil {
		return err
	}
	if how.from != "" || how.all {
		if how.from == "" || len(args) > 0 {
			return usage(c, "all calls of an agent are named by --from AGENT --all")
		}
		which, err := pendingOf(env, c, []string{how.from})
		if err != nil {
			return err
		}
		return settleApprovals(c.Context(), env, which, how)
	}
	if len(args) == 0 {
		return usage(c, "missing: NUMBER")
	}
	var which []permission
	var failed []error
	for _, word := range args {
		found, err := findCalls(env, c, word)
		if err != nil && len(args) == 1 {
			return err
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", word, err))
		}
		which = append(which, found...)
	}
	which, err = withSame(c.Context(), env, which, how.same)
	switch {
	case err != nil:
		return err
	case how.edits() && len(which)+len(failed) > 1:
		return usage(c, "another input is for one call")
	case len(which) == 1 && len(failed) == 0:
		return settleApproval(c.Context(), env, which[0], how)
	}
	return settleApprovals(c.Context(), env, which, how, failed...)
}

// findCalls returns the approvals that a word names: one by its number, ID or digest, or those that wait in a range of
// numbers, as 3-7.
func findCalls(env *environment, c *cobra.Command, word string) ([]permission, error) {
	if first, last, ok := rangeOf(word); ok {
		found, err := approvalsWhere(c.Context(), env, func(w permission) bool { return w.Number >= first && w.Number <= last })
		if err == nil && len(found) == 0 {
			err = parley.Refuse(parley.NoPendingPermission, "no call from %d to %d waits", first, last).WithHint("parley permit ls lists what waits")
		}
		return found, err
	}
	w, named, err := findApproval(c.Context(), env, word)
	if err == nil && !named {
		err = usage(c, "%q is no number of a message, no ID and no digest", word)
	}
	if err != nil {
		return nil, err
	}
	return []permission{w}, nil
}

// rangeOf reads a range of the numbers of messages.
func rangeOf(word string) (first, last uint64, ok bool) {
	from, to, ok := strings.Cut(word, "-")
	if !ok || !isNumber(from) || !isNumber(to) {
		return 0, 0, false
	}
	first, _ = strconv.ParseUint(from, 10, 64)
	last, _ = strconv.ParseUint(to, 10, 64)
	return first, last, first <= last
}

// namesCall reports whether a word can name a call. A reason in one word that can needs --reason.
func namesCall(word string) bool {
	_, _, isRange := rangeOf(word)
	_, notID := capabilities.ParseID(word)
	return isRange || isNumber(word) || isDigest(word) || notID == nil
}

// withSame returns calls without repetitions, and with the waiting ones that ask the same if these are wanted.
func withSame(ctx context.Context, env *environment, which []permission, same bool) ([]permission, error) {
	if same {
		waiting, err := approvalsWhere(ctx, env, func(w permission) bool {
			return slices.ContainsFunc(which, func(o permission) bool { return o.AsksSame(&w.Message) })
		})
		if err != nil {
			return nil, err
		}
		which = append(which, waiting...)
	}
	seen := map[capabilities.ID]bool{}
	return slices.DeleteFunc(which, func(w permission) bool {
		before := seen[w.MessageID]
		seen[w.MessageID] = true
		return before
	}), nil
}

// decideSeveral decides on an approval, or on those of an agent. A person at a terminal sees the calls of an agent
// first.
func decideSeveral(env *environment, c *cobra.Command, args []string, how decision) (err error) {
	defer func() { err = env.notHost(c.Context(), err) }()
	if err := how.check(c); err != nil {
		return err
	}
	if how.all && len(args) > 1 {
		return usage(c, "give a FORM or --all")
	}
	if len(args) == 1 && !how.all {
		if w, named, err := findApproval(c.Context(), env, args[0]); named || err != nil {
			if err != nil {
				return err
			}
			return settleApproval(c.Context(), env, w, how)
		}
	}
	which, err := pendingOf(env, c, args)
	if err != nil {
		return err
	}
	if len(args) == 1 && env.interactive() {
		return permitInPerson(c.Context(), env, which, how)
	}
	if len(which) > 1 && !how.all {
		return ambiguousCalls(args[0], which, how)
	}
	if len(which) == 1 {
		return settleApproval(c.Context(), env, which[0], how)
	}
	return settleApprovals(c.Context(), env, which, how)
}

// ambiguousCalls returns the error for an agent that waits for several calls.
func ambiguousCalls(agent string, which []permission, how decision) error {
	numbers := make([]string, len(which))
	for i, w := range which {
		numbers[i] = strconv.FormatUint(w.Number, 10)
	}
	return parley.Refuse(parley.Ambiguous, "%q waits for %d permissions: %s", agent, len(which), strings.Join(numbers, ", ")).
		WithHint("parley permit ls shows them; name the one, as in parley %s %s, or give --all", strings.ToLower(decision{choice: how.choice}.verb()), numbers[0])
}

// permitInPerson shows each call and asks about it. It decides only on calls that it has shown.
func permitInPerson(ctx context.Context, env *environment, which []permission, how decision) error {
	lines := bufio.NewScanner(env.stdin)
	for _, w := range which {
		shown, err := w.shownFor(how, env.screen())
		if err != nil {
			return err
		}
		fmt.Fprintf(env.stdout, "%d. %s\n%s this call? [y/N] ", w.Number, shown, how.verb())
		said := make(chan bool, 1)
		go func() { said <- lines.Scan() }() // ends with the process if there is no answer
		select {
		case more := <-said:
			if !more {
				return errors.Join(lines.Err(), &interrupted{message: "nothing more was decided; what is left waits"})
			}
		case <-ctx.Done():
			return &interrupted{message: "nothing more was decided; what is left waits"}
		}
		if answer := strings.ToLower(strings.TrimSpace(lines.Text())); answer != "y" && answer != "yes" {
			continue
		}
		if err := settleApproval(ctx, env, w, how); err != nil {
			return err
		}
	}
	return nil
}

// findApproval finds an approval by its number, ID or digest. It reports whether the word is one of these: an ID that
// is not a form's is an agent's.
func findApproval(ctx context.Context, env *environment, word string) (w permission, named bool, err error) {
	if isDigest(word) {
		found, err := approvalsWhere(ctx, env, func(w permission) bool { return w.Digest == word })
		switch {
		case err != nil:
			return w, true, err
		case len(found) == 0:
			return w, true, parley.Refuse(parley.NoPendingPermission, "no call of that digest waits").WithHint("parley permit ls lists what waits")
		case len(found) > 1:
			return w, true, parley.Refuse(parley.Ambiguous, "%d such calls wait, the first of them as %d and %d", len(found), found[0].Number, found[1].Number).
				WithHint("name one by its number")
		}
		return found[0], true, nil
	}
	_, notID := capabilities.ParseID(word)
	if notID != nil && !isNumber(word) {
		return w, false, nil
	}
	err = env.Call(ctx, string(api.GetMessage), api.MessageRequest{Acting: env.acting(), FormRef: api.RefTo(word)}, &w.Message)
	switch {
	case notID == nil && parley.CodeOf(err) == parley.NoSuchMessage:
		return w, false, nil
	case err != nil:
		return w, true, err
	case w.Type != approvalType:
		return w, true, notAnApproval(w.Message)
	}
	return w, true, nil
}

// isNumber reports whether a word is the number of a message.
func isNumber(word string) bool {
	n, err := strconv.ParseUint(word, 10, 64)
	return err == nil && strconv.FormatUint(n, 10) == word
}

// isDigest reports whether a word is the whole digest of a call. A part of one could be made to match another call.
func isDigest(word string) bool {
	_, err := hex.DecodeString(word)
	return err == nil && len(word) == 64
}

// pendingOf returns the approvals that an agent waits for, or the one that the second argument names.
func pendingOf(env *environment, c *cobra.Command, args []string) ([]permission, error) {
	agent, err := fetchAgent(env, c, args[0])
	if err != nil {
		return nil, err
	}
	found, err := approvalsWhere(c.Context(), env, func(w permission) bool {
		return (w.From == agent.ID || w.Permission.Caller() == agent.ID) && (len(args) == 1 || strconv.FormatUint(w.Number, 10) == args[1] || w.MessageID.String() == args[1] || w.Digest == args[1])
	})
	if err == nil && len(found) == 0 {
		err = parley.Refuse(parley.NoPendingPermission, "%q waits for no permission", args[0]).WithHint("parley permit ls lists what waits")
	}
	if err == nil && len(args) > 1 && len(found) > 1 {
		err = parley.Refuse(parley.Ambiguous, "%q waits for %d such calls", args[0], len(found)).WithHint("name one by its number, as parley permit ls has it")
	}
	return found, err
}

// approvalsWhere returns the waiting approvals that a condition holds for.
func approvalsWhere(ctx context.Context, env *environment, wanted func(permission) bool) ([]permission, error) {
	waiting, err := waitingApprovals(ctx, env)
	if err != nil {
		return nil, err
	}
	var found []permission
	for _, w := range waiting {
		if wanted(w) {
			found = append(found, w)
		}
	}
	return found, nil
}

// text returns a call in full.
func (w permission) text() string {
	text := fmt.Sprintf("agent: %s\n   tool:  %s\n", show.Sender(&w.Message), terminal.Visible(w.Title))
	if w.Folder != "" {
		text += "   folder: " + terminal.Visible(w.Folder) + "\n"
	}
	if fact := show.Fact(w.Message); fact != "" {
		text += "   " + fact + "\n"
	}
	for _, l := range show.Said(w.Message) {
		text += "   " + l.Text + "\n"
	}
	return text + "   input: " + terminal.Visible(w.Description)
}

// decidedCall is the JSON form of an outcome, with the call that it decides.
type decidedCall struct {
	view.Outcome
	Number   uint64        `json:"number"`
	Decision string        `json:"decision"`
	Call     pendingCall   `json:"call"`
	Rule     *view.Rule    `json:"rule,omitempty"`    // that was made
	Mandate  *view.Mandate `json:"mandate,omitempty"` // that was given
	Error    *parley.Error `json:"error,omitempty"`   // why it was not decided, among several
}

// decisionFor returns the decision on one call. The request has the form's ID and the call's digest, so that it decides
// the call that was shown.
func (d decision) decisionFor(which permission) (parley.Decision, error) {
	if which.AnswerNeeded && !which.Takes(d.choice) {
		return parley.Decision{}, which.refuse()
	}
	if d.mandate.give {
		terms, err := d.terms(which)
		return parley.Decision{Form: which.MessageID, Digest: which.Digest, Decision: d.choice, Mandate: terms}, err
	}
	chosen, err := which.offer(d.rule)
	r := parley.Decision{Form: which.MessageID, Digest: which.Digest, Decision: d.choice, Reason: d.reason, Rule: chosen.ID}
	if d.until.text != "" && mailbox.MayEnd(which.Fields) {
		r.Until = capabilities.At(d.until.at).String()
	}
	return r, err
}

// settleApproval decides on one call, and prints it.
func settleApproval(ctx context.Context, env *environment, which permission, how decision) error {
	r, err := how.decisionFor(which)
	if err != nil {
		return err
	}
	input, err := env.editedInput(ctx, which, how)
	if err != nil {
		return err
	}
	req := api.RespondFormRequest{Acting: env.acting(), FormRef: api.RefTo(r.Form.String()), Answer: parley.Answer{Digest: r.Digest, Mandate: r.Mandate}}
	for _, t := range []events.FieldText{
		{Name: "decision", Text: r.Decision}, {Name: "reason", Text: r.Reason}, {Name: "rule", Text: r.Rule}, {Name: "until", Text: r.Until}, {Name: "input", Text: input},
	} {
		if t.Text != "" {
			req.Texts = append(req.Texts, t)
		}
	}
	o, err := vote(ctx, env, api.RespondForm, req)
	if err != nil {
		return err
	}
	return printDecision(ctx, env, which, how, o)
}

// settleApprovals decides on several calls in one request for each 256, and prints them. Its error names those that were
// not decided, after others that failed before.
func settleApprovals(ctx context.Context, env *environment, which []permission, how decision, failed ...error) error {
	count := len(which) + len(failed)
	if len(which) == 0 {
		return errors.Join(failed...)
	}
	for some := range slices.Chunk(which, api.MaxDecisions) {
		req := api.DecideManyRequest{Acting: env.acting()}
		for _, w := range some {
			d, err := how.decisionFor(w)
			if err != nil {
				return err
			}
			if how.always && how.same && w.MessageID != which[0].MessageID && w.AsksSame(&which[0].Message) {
				d.Rule, d.Until = "", "" // the first one makes the rule
				if d.Decision = mailbox.Once; how.choice == mailbox.Never {
					d.Decision = mailbox.Deny
				}
			}
			req.Decisions = append(req.Decisions, d)
		}
		got, err := env.decideMany(ctx, req)
		if err != nil {
			return err
		}
		for i, d := range got.Results {
			err := error(nil)
			if d.Error != nil {
				err = d.Error
			} else {
				made := how
				made.choice = req.Decisions[i].Decision
				made.always = made.choice == mailbox.Always || made.choice == mailbox.Never
				err = printDecision(ctx, env, some[i], made, *d.Outcome)
			}
			if err == nil {
				continue
			}
			failed = append(failed, fmt.Errorf("%d: %w", some[i].Number, err))
			if env.options.json {
				if err := env.printJSON(decidedCall{Number: some[i].Number, Decision: how.choice, Call: some[i].call(), Error: parley.AsError(err)}); err != nil {
					return err
				}
			}
		}
	}
	if len(failed) == 0 {
		return nil
	}
	why := make([]string, len(failed))
	for i, err := range failed {
		why[i] = err.Error()
	}
	return parley.Refuse(parley.CodeOf(failed[0]), "%d of %d calls were not decided: %s", len(failed), count, strings.Join(why, "; "))
}

// printDecision prints the outcome of a decision on a call.
func printDecision(ctx context.Context, env *environment, which permission, how decision, o view.Outcome) error {
	reviewed := which.Review != nil && o.Status == view.StatusSuperseded
	if !reviewed && !slices.Contains([]view.FormStatus{view.StatusAnswered, view.StatusAnswering, view.StatusVoted}, o.Status) {
		return outcomeError(o, which.Message)
	}
	done := decidedCall{Outcome: o, Number: which.Number, Decision: how.choice, Call: which.call()}
	var ruleErr error
	if o.Status == view.StatusAnswered && how.always {
		done.Rule, ruleErr = fetchRule(ctx, env, which, how)
	}
	if o.Status == view.StatusAnswered && how.mandate.give {
		done.Mandate, ruleErr = fetchMandate(ctx, env, which)
	}
	err := env.print(done, func() string {
		settled := which.Message
		settled.Outcome = &o
		words := how.choice
		if sign, said := show.Decision(settled, env.screen()); sign != "" {
			words = sign + " " + said
		}
		verb := "decided"
		switch o.Status {
		case view.StatusVoted:
			verb, words = "voted", strings.ToLower(how.verb())
		case view.StatusAnswering:
			verb, words = "kept", strings.ToLower(how.verb())
		}
		if reviewed {
			return fmt.Sprintf("call %d: %s\n   %s", which.Number, o.Note, which.text())
		}
		text := fmt.Sprintf("%s %d: %s\n   %s", verb, which.Number, words, which.text())
		if o.EditedInput != "" {
			text += fmt.Sprintf("\n   allowed input: %s\n   digests: %s was shown, %s is allowed", terminal.Visible(o.EditedInput), which.Digest, o.EditedDigest)
		}
		if done.Rule != nil {
			text += "\n   rule:  " + ruleText(*done.Rule, env.screen())
		}
		if done.Mandate != nil {
			text += "\n   mandate: " + strings.ReplaceAll(mandateText(done.Mandate, env.screen()), "\n", "\n   ")
		}
		if v := o.Votes; o.Status == view.StatusVoted && v != nil {
			text += "\n   " + show.Vote(which.Message, *v)
		}
		if o.Status == view.StatusAnswering {
			text += "\n   the decision is kept, and goes to the agent's node when that can be reached"
		}
		return text
	})
	return cmp.Or(err, ruleErr)
}

// fetchRule returns the rule that a decision has made. It first sets the rule's end, where the decision could not. The
// rules of another node's agent are not known here.
func fetchRule(ctx context.Context, env *environment, which permission, how decision) (*view.Rule, error) {
	agent := which.From.String()
	if how.until.text != "" && !mailbox.MayEnd(which.Fields) {
		req := api.LimitRuleRequest{Acting: env.acting(), Agent: agent, Form: which.MessageID, Until: capabilities.At(how.until.at)}
		if err := api.LimitRule.Run(ctx, env, req); err != nil {
			return nil, err
		}
	}
	got, err := api.ListRules.Do(ctx, env, api.ListRulesRequest{Acting: env.acting(), Agent: agent})
	if err != nil {
		return nil, err
	}
	for _, r := range got.Rules {
		if r.Form == which.MessageID {
			return &r, nil
		}
	}
	return nil, nil // the agent's rules included it before
}
