package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/shell"
	"parley/cmd/parley/terminal"
	"parley/events"
	"parley/gateway/api"
)

// makeCommand returns the command mkhost or mkguest.
func makeCommand(env *environment, kind events.AgentKind) *cobra.Command {
	var (
		title  string
		labels []string
	)
	long := "Makes a guest: an agent that starts with the names @self and @host only. The caller holds it under NAME."
	if kind == events.Host {
		long = "Makes a host: an agent that is its own host. The caller holds it under NAME."
	}
	c := &cobra.Command{
		Use:               "mk" + string(kind) + " NAME",
		Short:             "Make a " + string(kind),
		Long:              long,
		Example:           fmt.Sprintf("  parley mk%s fae --title 'The builder' --label team=web", kind),
		Args:              exactly("NAME"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().StringVar(&title, "title", "", "a `title` for people")
	c.Flags().StringArrayVar(&labels, "label", nil, "a label as `key=value`; may be repeated")
	c.RunE = func(c *cobra.Command, args []string) error {
		byKey, err := parseLabels(c, labels)
		if err != nil {
			return err
		}
		made, err := api.MakeAgent.Do(c.Context(), env, api.MakeAgentRequest{
			Acting: env.acting(), Kind: kind, Name: args[0], Title: title, Labels: byKey,
		})
		if err != nil {
			return err
		}
		return env.print(made, made.Agent.String)
	}
	return c
}

func parseLabels(c *cobra.Command, args []string) (map[string]string, error) {
	var labels map[string]string
	for _, a := range args {
		key, value, ok := strings.Cut(a, "=")
		if !ok || key == "" {
			return nil, usage(c, "%q is not a label: want key=value", a)
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[key] = value
	}
	return labels, nil
}

func namesCommand(env *environment) *cobra.Command {
	var onlyRevoked bool
	c := &cobra.Command{
		Use:     "names [AGENT-or-PATH]",
		Aliases: []string{"list"},
		Short:   "List the names that an agent holds",
		Long: `Lists the names that the agent holds, those within the record under PATH, or those that AGENT holds. AGENT is an ID,
the beginning of one, a name or a title; only the node's host lists the names of another agent.`,
		Example:           "  parley names\n  parley names fae\n  parley names project-config --as fae\n  parley names --revoked --json",
		Args:              between(0, 1, "[AGENT-or-PATH]"),
		ValidArgsFunction: completeArguments(env, api.CompleteNames),
		RunE: func(c *cobra.Command, args []string) error {
			held, revoked, err := listNames(c, env, env.acting(), strings.Join(args, ""))
			if len(args) == 1 && (parley.CodeOf(err) == parley.UnknownName || parley.CodeOf(err) == parley.InvalidName) {
				held, revoked, err = listNamesOf(env, c, args[0], err)
			}
			if err != nil {
				return err
			}
			if onlyRevoked {
				held = append([]string{}, revoked...)
			}
			return printList(env, held, "no names", func() string {
				shown := make([]string, len(held))
				for i, n := range held {
					shown[i] = terminal.Visible(n)
					if slices.Contains(revoked, n) {
						shown[i] += " (revoked)"
					}
				}
				return strings.Join(shown, "\n")
			})
		},
	}
	c.Flags().BoolVar(&onlyRevoked, "revoked", false, "only names of what was revoked")
	return c
}

// listNames returns the names of an agent below a path, and those of them that were revoked.
func listNames(c *cobra.Command, env *environment, as api.Acting, path string) (held, revoked []string, err error) {
	held, err = api.All(c.Context(), env, api.ListNames, api.ListNamesRequest{Acting: as, Path: path}, func(r api.ListNamesResponse) []string {
		revoked = append(revoked, r.Revoked...)
		return r.Names
	})
	return held, revoked, err
}

// listNamesOf returns the names that another agent holds. If there is no such agent, the error is that of the path.
func listNamesOf(env *environment, c *cobra.Command, which string, notPath error) (held, revoked []string, err error) {
	agent, err := fetchAgent(env, c, which)
	switch {
	case parley.CodeOf(err) == parley.AgentNotFound:
		return nil, nil, notPath
	case err != nil:
		return nil, nil, err
	case agent.Name == "SELF":
		return listNames(c, env, env.acting(), "")
	case env.options.as != "" && capabilities.Special(env.options.as) != capabilities.NameHost, agent.Name == "":
		return nil, nil, parley.Refuse(parley.NotPermitted, "%s is another agent, and only the node's host lists its names", terminal.Quoted(which)).
			WithHint("leave out --as, and name the agent as the host does")
	}
	return listNames(c, env, api.Acting{As: agent.Name}, "")
}

func showCommand(env *environment) *cobra.Command {
	var reveal bool
	var folder string
	c := &cobra.Command{
		Use:   "show NAME-or-NUMBER-or-ID",
		Short: "Show the value under a name, or a message in full",
		Long: `Shows the value under a name or path: a record "name: value" a line, references as locators. Secrets are
masked unless --reveal is given. A NUMBER or an ID that is no name is that of a message, which is shown in full.
--save puts the files that a message carries, or the answer to a form, into a folder. Their names are made safe, and nothing is
overwritten.`,
		Example:           "  parley show project-config --as fae\n  parley show project-config/apiKey --as fae --reveal\n  parley show 7\n  parley show 7 --save downloads",
		Args:              exactly("NAME-or-NUMBER-or-ID"),
		ValidArgsFunction: completeWaiting(env, anyMessage, api.CompleteNames),
	}
	c.Flags().BoolVar(&reveal, "reveal", false, "show secrets in the clear")
	c.Flags().StringVar(&folder, "save", "", "save the files of a message into this `folder`")
	c.RunE = func(c *cobra.Command, args []string) error {
		if folder != "" {
			return saveFiles(c.Context(), env, args[0], folder)
		}
		found, err := api.Lookup.Do(c.Context(), env, api.LookupRequest{Acting: env.acting(), Name: args[0], Reveal: reveal})
		if err == nil {
			return env.print(found.Value, func() string { return shownValue(found.Value) })
		}
		if parley.CodeOf(err) == parley.UnknownName && isNumber(args[0]) {
			return showMessage(c.Context(), env, args[0])
		}
		if id, notID := env.listedIDOf(c.Context(), args[0]); notID == nil {
			return showMessage(c.Context(), env, id.String())
		}
		return err
	}
	return c
}

// shownValue returns a record or a list as lines, and any other value as itself.
func shownValue(v capabilities.Value) string {
	if record, ok := v.AsRecord(); ok {
		return lines(sorted(record))
	}
	return valueText(v)
}

func locateCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "locate NAME",
		Short: "Print the locator of what a name stands for",
		Long: `Prints the locator of what a name stands for. A locator tells where something is; it gives nobody the
right to use it.`,
		Example:           "  parley name locate worker",
		Args:              exactly("NAME"),
		ValidArgsFunction: completeArguments(env, api.CompleteNames),
		RunE: func(c *cobra.Command, args []string) error {
			return perform(c.Context(), env, api.Locate, api.NameRequest{Acting: env.acting(), Name: args[0]},
				func(found api.LocateResponse) string { return terminal.Visible(found.Locator) })
		},
	}
}

func storeCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "store NAME LOCATOR-or-JSON",
		Short: "Store a value under a name",
		Long: `Puts a value under a name: a JSON document, or the locator of something that the agent may reach already.
Use - to read the document from standard input.`,
		Example: `  parley name store settings '{"region":"eu","replicas":3}'
  parley name store friend "$(parley name locate bob)"`,
		Args:              exactly("NAME", "LOCATOR-or-JSON"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			text := args[1]
			if text == "-" {
				doc, err := env.readInput(text)
				if err != nil {
					return err
				}
				text = string(doc)
			}
			value, err := json.Marshal(text)
			if err != nil {
				return err
			}
			return change(env, c, api.StoreName, api.StoreNameRequest{Acting: env.acting(), Name: args[0], Value: value}, args[0], "stored "+terminal.Quoted(args[0]))
		},
	}
}

func renameCommand(env *environment) *cobra.Command {
	var force bool
	c := &cobra.Command{
		Use:               "rename OLD NEW",
		Short:             "Rename a name",
		Long:              "Moves what stands under OLD to NEW, which must be free unless --force is given.",
		Example:           "  parley name rename alice anna\n  parley name rename settings.new settings --force",
		Args:              exactly("OLD", "NEW"),
		ValidArgsFunction: completeArguments(env, api.CompleteNames),
		RunE: func(c *cobra.Command, args []string) error {
			return change(env, c, api.RenameName, api.RenameNameRequest{Acting: env.acting(), Old: args[0], New: args[1], Force: force}, args[1],
				"renamed "+terminal.Quoted(args[0])+" to "+terminal.Quoted(args[1]))
		},
	}
	c.Flags().BoolVar(&force, "force", false, "replace what stands under NEW")
	return c
}

func removeCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:               "remove NAME",
		Short:             "Remove a name",
		Long:              "Forgets a name. What it stood for stays what it is.",
		Example:           "  parley name remove alice",
		Args:              exactly("NAME"),
		ValidArgsFunction: completeArguments(env, api.CompleteNames),
		RunE: func(c *cobra.Command, args []string) error {
			return change(env, c, api.RemoveName, api.NameRequest{Acting: env.acting(), Name: args[0]}, args[0], "removed "+terminal.Quoted(args[0]))
		},
	}
}

func copyCommand(env *environment) *cobra.Command {
	var (
		facet string
		n     narrowing
	)
	c := &cobra.Command{
		Use:   "copy OLD NEW",
		Short: "Copy a name, or a part of the rights under it",
		Long: `Puts what stands under OLD under NEW too. With the other flags, NEW holds less of it: what is
given on from there can do no more than that.`,
		Example: `  parley name copy worker worker-readonly --facet read
  parley name copy bob bob-today --until 24h --uses 10
  parley name copy notes manual --read-only --below manual --ask`,
		Args:              exactly("OLD", "NEW"),
		ValidArgsFunction: completeArguments(env, api.CompleteNames),
	}
	c.Flags().StringVar(&facet, "facet", "", "hold only this `part` of it: ask or read")
	n.add(c.Flags())
	_ = c.RegisterFlagCompletionFunc("facet", cobra.FixedCompletions([]string{"ask", "read"}, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	c.RunE = func(c *cobra.Command, args []string) error {
		narrow, err := n.facet(c)
		if err != nil {
			return err
		}
		return change(env, c, api.CopyName, api.CopyNameRequest{
			Acting: env.acting(), Old: args[0], New: args[1], Facet: capabilities.Mode(facet), Narrow: narrow,
		}, args[1], "copied "+terminal.Quoted(args[0])+" to "+terminal.Quoted(args[1]))
	}
	return c
}

// change performs an operation that changes the value under a name, and prints what was done.
func change[R any](env *environment, c *cobra.Command, o api.Op[R, api.Done], r R, name, done string) error {
	if err := o.Run(c.Context(), env, r); err != nil {
		return err
	}
	return env.print(map[string]string{"name": name}, func() string { return done })
}

// notANode returns the error for an answer that no node of Parley sends.
func notANode(err error) error {
	return parley.Refuse(parley.Internal, "the node's answer cannot be read: %v", err)
}

func grantsCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:     "grants",
		Short:   "List the grants that an agent made",
		Long:    "Lists what the agent gave to others and by which name, oldest first. Each grant can be revoked.",
		Example: "  parley grants\n  parley grants --json",
		RunE: func(c *cobra.Command, _ []string) error {
			given, err := api.All(c.Context(), env, api.ListGrants, api.ListGrantsRequest{Acting: env.acting()},
				func(r api.ListGrantsResponse) []view.Granted { return r.Grants })
			if err != nil {
				return err
			}
			return printList(env, given, "nothing was given to others", func() string { return grantTable(given, env.screen()) })
		},
	}
}

func grantTable(grants []view.Granted, s terminal.Screen) string {
	rows := make([][]string, len(grants))
	for i, g := range grants {
		to := holderOf(g)
		if !g.IsForBearer() && g.ToName == "" {
			to = listedParty(g.To, s)
		}
		revoked := terminal.Empty
		if g.Revoked != 0 {
			revoked = s.Paint(terminal.Wrong, s.Time(g.Revoked.Std(), g.Revoked.String()))
		}
		rows[i] = []string{
			listedID(g.ID, s), terminal.Visible(g.Name), string(g.Kind), heldText(g, s), terminal.Visible(to), s.Time(g.At.Std(), g.At.String()), revoked, listedParty(g.Target, s),
		}
	}
	return s.Table([]terminal.Column{
		{Name: "GRANT"}, {Name: "NAME", Shrink: true}, {Name: "KIND"}, {Name: "HOLDS", Shrink: true}, {Name: "TO", Shrink: true}, {Name: "AT"},
		{Name: "REVOKED", Drop: true}, {Name: "TARGET", Shrink: true},
	}, rows, true)
}

// heldText returns in words what a grant permits.
func heldText(g view.Granted, s terminal.Screen) string {
	if len(g.Outcomes) == 0 {
		return facetText(g.Grant, s)
	}
	return strings.Join(g.Outcomes, " or ") + ", " + facetText(g.Grant, s)
}

// facetText returns in words what a grant gives.
func facetText(g capabilities.Grant, s terminal.Screen) string {
	words := g.Facet.Words(g.Kind, func(t capabilities.Time) string { return s.Moment(t.Std(), t.String()) })
	if rest, ok := strings.CutPrefix(words, "all, "); ok && !g.Kind.IsResource() {
		words = rest
	}
	return terminal.Visible(words)
}

func revokeCommand(env *environment) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "revoke NAME-or-GRANT [AGENT]",
		Short: "Revoke what was given",
		Long: `Takes back what was given by a name from AGENT, or by one grant, and with it all that was derived from it, at once and on
every node that can be reached. "parley grants" lists the names, the agents and the grants.`,
		Example:           "  parley revoke notes fae\n  parley revoke notes --all\n  parley revoke 01J…@N…",
		Args:              between(1, 2, "NAME-or-GRANT [AGENT]"),
		ValidArgsFunction: completeArguments(env, api.CompleteGrants),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := env.listedIDOf(c.Context(), args[0])
			switch {
			case err == nil && len(args) > 1:
				return usage(c, "a grant is of one agent: leave out %s", terminal.Quoted(args[1]))
			case err == nil:
				err := api.Revoke.Run(c.Context(), env, api.RevokeRequest{Acting: env.acting(), Grant: id.String()})
				if err != nil {
					return err
				}
				return env.print(map[string]string{"grant": id.String()}, func() string { return "revoked " + id.String() })
			case strings.Contains(args[0], "@"): // it was meant as an ID
				return err
			case len(args) > 1 && all:
				return usage(c, "--all takes it back from all agents: leave out %s", terminal.Quoted(args[1]))
			}
			return revokeNamed(c.Context(), env, args[0], strings.Join(args[1:], ""), all)
		},
	}
	c.Flags().BoolVar(&all, "all", false, "take back what was given by the name, from all agents")
	return c
}

// revokeNamed revokes what the agent gave by a name to another, or to all. Without either it does so where there is one that has it.
func revokeNamed(ctx context.Context, env *environment, name, to string, all bool) error {
	given, err := api.All(ctx, env, api.ListGrants, api.ListGrantsRequest{Acting: env.acting()},
		func(r api.ListGrantsResponse) []view.Granted { return r.Grants })
	if err != nil {
		return err
	}
	given = slices.DeleteFunc(given, func(g view.Granted) bool { return g.Name != name || g.Revoked != 0 || to != "" && holderOf(g) != to })
	holders := map[string]bool{}
	for _, g := range given {
		holders[holderOf(g)] = true
	}
	switch {
	case len(given) == 0 && to != "":
		return parley.Refuse(parley.UnknownName, "%s has nothing that was given by the name %s", terminal.Quoted(to), terminal.Quoted(name)).WithHint("parley grants lists what was given")
	case len(given) == 0:
		return parley.Refuse(parley.UnknownName, "nobody has what was given by the name %s", terminal.Quoted(name)).WithHint("parley grants lists what was given")
	case len(holders) > 1 && !all:
		who := slices.Sorted(maps.Keys(holders))
		return parley.Refuse(parley.InvalidArgument, "%s was given to %s", terminal.Quoted(name), terminal.Visible(strings.Join(who, ", "))).
			WithHint("parley revoke %s AGENT takes it back from one of them, and with --all from all", shell.Word(name))
	}
	for _, g := range given { // each of them, also where another's node cannot be reached
		err = cmp.Or(err, api.Revoke.Run(ctx, env, api.RevokeRequest{Acting: env.acting(), Grant: g.ID.String()}))
	}
	if err != nil {
		return err
	}
	return env.print(given, func() string {
		return fmt.Sprintf("revoked %s of %s", terminal.Quoted(name), terminal.Visible(strings.Join(slices.Sorted(maps.Keys(holders)), ", ")))
	})
}

// holderOf returns to whom a grant was made, by the name that its giver has for it, or its ID.
func holderOf(g view.Granted) string {
	if g.IsForBearer() {
		return "whoever has its secret"
	}
	return cmp.Or(g.ToName, g.To.String())
}
