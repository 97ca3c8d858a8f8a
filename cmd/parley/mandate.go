package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/show"
	"parley/cmd/parley/terminal"
	"parley/gateway/api"
	"parley/mailbox"
)

// mandateFlags say what leave an agent gets with an allowed call.
type mandateFlags struct {
	give                                                  bool
	commands, like, files, read, tools, calls, sums, dirs []string
	times                                                 uint32
}

func (m *mandateFlags) add(c *cobra.Command) {
	f := c.Flags()
	f.BoolVar(&m.give, "mandate", false, "and give leave for later calls, which ends: say which, with --rule or the flags below")
	f.StringArrayVar(&m.commands, "command", nil, "with --mandate: this command `line`, or a part of it; may be repeated, as all of these")
	f.StringArrayVar(&m.like, "like", nil, "with --mandate: commands like those of this `line`, as --always offers them")
	f.StringArrayVar(&m.files, "files", nil, "with --mandate: reading and writing files that match a `glob`")
	f.StringArrayVar(&m.read, "read", nil, "with --mandate: reading files that match a `glob`")
	f.StringArrayVar(&m.tools, "tool", nil, "with --mandate: all calls of a `tool` that runs no commands and uses no files")
	f.StringArrayVar(&m.calls, "call", nil, "with --mandate: this very `call`, as in 'TOOL {\"key\":\"value\"}', which may be of high risk")
	f.StringArrayVar(&m.dirs, "folder", nil, "with --mandate: calls made in this `folder` (default: that of the call)")
	f.Uint32Var(&m.times, "calls", 0, fmt.Sprintf("with --mandate: so many `calls` in all, at most (default %d)", mailbox.MaxMandateCalls))
	f.StringArrayVar(&m.sums, "sum", nil, "with --mandate: a member of the input adds up to so much at most, as `[TOOL:]MEMBER=NUMBER`")
}

// says reports whether one of the flags that say what is given was set.
func (m *mandateFlags) says() bool {
	return len(m.commands)+len(m.like)+len(m.files)+len(m.read)+len(m.tools)+len(m.calls)+len(m.dirs)+len(m.sums) > 0 || m.times != 0
}

// check refuses options that do not go together.
func (m *mandateFlags) check(c *cobra.Command, d decision) error {
	switch {
	case m.times == 0 && c.Flags().Changed("calls"):
		return usage(c, "a mandate of no calls covers nothing: --calls is from 1 to %d", mailbox.MaxMandateCalls)
	case !m.give && m.says():
		return usage(c, "what is given is for a mandate: give --mandate too")
	case m.give && d.always:
		return usage(c, "a mandate ends, and a standing rule stays: give --mandate or --always")
	case m.give && (d.all || d.same):
		return usage(c, "a mandate is given with one call")
	}
	return nil
}

// rules returns the rules that the flags say: each of what they name, in each folder.
func (m *mandateFlags) rules() (rules []parley.MandateRule, err error) {
	for _, folder := range append(m.dirs, "")[:max(1, len(m.dirs))] {
		if folder != "" {
			if folder, err = filepath.Abs(folder); err != nil {
				return nil, err
			}
		}
		for _, line := range m.commands {
			rules = append(rules, parley.MandateRule{Command: line, Folder: folder})
		}
		for _, line := range m.like {
			rules = append(rules, parley.MandateRule{Command: line, Like: true, Folder: folder})
		}
		for _, glob := range m.files {
			rules = append(rules, parley.MandateRule{Files: glob, Folder: folder})
		}
		for _, glob := range m.read {
			rules = append(rules, parley.MandateRule{Files: glob, Read: true, Folder: folder})
		}
		for _, tool := range m.tools {
			rules = append(rules, parley.MandateRule{Tool: tool, Folder: folder})
		}
		for _, call := range m.calls {
			tool, input, _ := strings.Cut(call, " ")
			if !json.Valid([]byte(input)) {
				return nil, parley.Refuse(parley.InvalidArgument, "--call %s has no JSON document behind the tool", parley.Quoted(call, 80)).WithHint(`as in --call 'Bash {"command":"make deploy"}'`)
			}
			rules = append(rules, parley.MandateRule{Tool: tool, Input: json.RawMessage(input), Folder: folder})
		}
	}
	return rules, nil
}

// terms returns the terms of the mandate that is given with an approval; nil for none.
func (d decision) terms(which permission) (*parley.MandateTerms, error) {
	m := d.mandate
	if !m.give {
		return nil, nil
	}
	t := &parley.MandateTerms{Calls: m.times}
	if d.until.text != "" {
		t.Until = capabilities.At(d.until.at).String()
	}
	if d.rule != "" {
		id, err := offeredID(which, d.rule)
		if err != nil {
			return nil, err
		}
		t.Rules = append(t.Rules, parley.MandateRule{Offer: id})
	}
	rules, err := m.rules()
	if err != nil {
		return nil, err
	}
	t.Rules = append(t.Rules, rules...)
	if len(t.Rules) == 0 {
		return nil, parley.Refuse(parley.InvalidArgument, "a mandate says which calls it covers").
			WithHint("give --rule NUMBER, of those that the call offers, or --command, --like, --files, --read, --tool or --call")
	}
	for _, text := range m.sums {
		sum, err := readSum(text)
		if err != nil {
			return nil, err
		}
		t.Sums = append(t.Sums, sum)
	}
	return t, nil
}

// readSum reads [TOOL:]MEMBER=NUMBER; MEMBER<=NUMBER says the same.
func readSum(text string) (s parley.MandateSum, err error) {
	what, most, ok := strings.Cut(text, "=")
	if !ok {
		return s, parley.Refuse(parley.InvalidArgument, "--sum %s is not [TOOL:]MEMBER=NUMBER", parley.Quoted(text, 80)).WithHint("as in --sum amount=100")
	}
	s.Member, s.Most = strings.TrimSuffix(what, "<"), most
	if i := strings.LastIndexByte(s.Member, ':'); i >= 0 {
		s.Tool, s.Member = s.Member[:i], s.Member[i+1:]
	}
	return s, nil
}

// fetchMandate returns the mandate that was given with an approval.
func fetchMandate(ctx context.Context, env *environment, which permission) (*view.Mandate, error) {
	all, err := listMandates(ctx, env, which.From.String(), true)
	for i := range all {
		if all[i].Form == which.MessageID {
			return &all[i], nil
		}
	}
	return nil, err
}

// listMandates returns the mandates of an agent; without one, those of all agents.
func listMandates(ctx context.Context, env *environment, agent string, ended bool) ([]view.Mandate, error) {
	return api.All(ctx, env, api.ListMandates, api.ListMandatesRequest{Acting: env.acting(), Agent: agent, Everyone: agent == "", All: ended},
		func(r api.ListMandatesResponse) []view.Mandate { return r.Mandates })
}

func mandateCommand(env *environment) *cobra.Command {
	c := &cobra.Command{
		Use:   "mandate",
		Short: "Show what leave agents have, and end it",
		Long: `A mandate is leave that ends: calls that are allowed unasked, so many, until a time, within a sum. It is given with an allowed call, as
with a plan: parley allow 12 --mandate. What it does not cover is asked about, and what is of high risk unless it names that very call.`,
		Example: "  parley mandate ls fae\n  parley mandate show fae 01JQ…@N…\n  parley mandate end fae 01JQ…@N…",
	}
	c.AddCommand(mandateListCommand(env), mandateShowCommand(env), mandateEndCommand(env))
	return c
}

func mandateListCommand(env *environment) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:               "ls [AGENT]",
		Aliases:           []string{"list"},
		Short:             "List mandates, and what is left of them",
		Long:              "Lists the mandates of an agent, or of all agents whose host you are, with what is left of each.",
		Example:           "  parley mandate ls\n  parley mandate ls fae --all",
		Args:              between(0, 1, "[AGENT]"),
		ValidArgsFunction: completeArguments(env, api.CompleteNames),
	}
	c.Flags().BoolVarP(&all, "all", "a", false, "also those that have ended")
	c.RunE = func(c *cobra.Command, args []string) error {
		agent := ""
		if len(args) > 0 {
			agent = args[0]
		}
		list, err := listMandates(c.Context(), env, agent, all)
		if err != nil {
			return err
		}
		var name show.NameFunc
		if agent == "" && len(list) > 0 && !env.options.json && !env.options.quiet {
			if name, err = env.nameFunc(c.Context()); err != nil {
				return err
			}
		}
		return printList(env, list, "no mandates", func() string {
			texts := make([]string, len(list))
			for i := range list {
				texts[i] = mandateText(&list[i], env.screen())
				if name != nil {
					texts[i] = terminal.Visible(name(list[i].Agent, "")) + "  " + texts[i]
				}
			}
			return strings.Join(texts, "\n")
		})
	}
	return c
}

func mandateShowCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:               "show AGENT MANDATE",
		Short:             "Show a mandate, and the calls that it has covered",
		Example:           "  parley mandate show fae 01JQ…@N…",
		Args:              exactly("AGENT", "MANDATE"),
		ValidArgsFunction: completeArguments(env, api.CompleteNames),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := env.listedIDOf(c.Context(), args[1])
			if err != nil {
				return err
			}
			return perform(c.Context(), env, api.GetMandate, api.MandateRequest{Acting: env.acting(), Agent: args[0], Mandate: id}, func(got api.GetMandateResponse) string {
				text := mandateText(&got.Mandate, env.screen())
				for _, call := range got.Covered {
					text += "\n   " + env.screen().Moment(call.At.Std(), call.At.String()) + "  " + terminal.Visible(call.Tool) + " " + terminal.Visible(string(call.Input))
				}
				return text
			})
		},
	}
}

func mandateEndCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:               "end AGENT MANDATE",
		Short:             "End a mandate: what it covered is asked about again",
		Example:           "  parley mandate end fae 01JQ…@N…",
		Args:              exactly("AGENT", "MANDATE"),
		ValidArgsFunction: completeArguments(env, api.CompleteNames),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := env.listedIDOf(c.Context(), args[1])
			if err != nil {
				return err
			}
			return change(env, c, api.EndMandate, api.MandateRequest{Acting: env.acting(), Agent: args[0], Mandate: id}, args[1], "ended "+terminal.Visible(args[1]))
		},
	}
}

// mandateText returns a mandate with what is left of it.
func mandateText(m *view.Mandate, s terminal.Screen) string {
	text := listedID(m.Mandate, s) + "  " + mandateLeft(m, s)
	for _, words := range m.Words {
		text += "\n   " + terminal.Visible(words)
	}
	return text
}

// mandateLeft says what is left of a mandate, or how it has ended.
func mandateLeft(m *view.Mandate, s terminal.Screen) string {
	text := fmt.Sprintf("%d of %d calls left", m.Left(), m.Calls)
	if m.End != "" {
		text = fmt.Sprintf("ended (%s) after %d of %d calls", m.End, m.Used, m.Calls)
	}
	for _, sum := range m.Sums {
		text += fmt.Sprintf(", %s of %s left of %s of %s", sum.Left, sum.Most, terminal.Visible(sum.Member), terminal.Visible(sum.Tool))
	}
	if m.End == "" && !m.Session.IsZero() {
		text += ", for its session"
	}
	return text + untilText(m.Until, s)
}
