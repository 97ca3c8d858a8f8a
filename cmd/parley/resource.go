package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/interview"
	"parley/cmd/parley/show"
	"parley/cmd/parley/terminal"
	"parley/events"
	"parley/gateway/api"
)

// narrowing are the flags that narrow a reference.
type narrowing struct {
	readOnly bool
	until    moment
	uses     uint32
	rate     string
	below    string
	only     []string
	methods  []string
	ask      bool
}

func (n *narrowing) add(f *pflag.FlagSet) {
	f.BoolVar(&n.readOnly, "read-only", false, "nothing that changes something")
	f.Var(&n.until, "until", "only until then: a `time` from now (2h) or a moment (2026-01-31T12:00:00Z)")
	f.Uint32Var(&n.uses, "uses", 0, "only for so many `uses`")
	f.StringVar(&n.rate, "rate", "", "at most so many uses in a `time`, as 10/1h")
	f.StringVar(&n.below, "below", "", "only what is below this `path` of a folder, or of an address")
	f.StringArrayVar(&n.only, "only", nil, "only this `host` of a secret, or this tool; may be repeated")
	f.StringArrayVar(&n.methods, "method", nil, "only requests with this `method` of HTTP; may be repeated")
	f.BoolVar(&n.ask, "ask", false, "each use is asked of the giver first")
}

// facet returns what the flags leave.
func (n *narrowing) facet(c *cobra.Command) (f capabilities.Facet, err error) {
	for flag, empty := range map[string]bool{ // such as of a variable that is not set: it would narrow nothing
		"uses": n.uses == 0, "rate": n.rate == "", "below": strings.Trim(n.below, "/") == "", "only": slices.Contains(n.only, ""), "method": slices.Contains(n.methods, ""),
	} {
		if c.Flags().Changed(flag) && empty {
			return f, usage(c, "--%s narrows nothing: leave it out, or give it a value", flag)
		}
	}
	if n.readOnly {
		f.Mode = capabilities.ReadOnly
	}
	f.Until, f.Uses, f.Below, f.Ask = capabilities.At(n.until.at), n.uses, strings.Trim(n.below, "/"), n.ask
	f.Only, f.Methods = capabilities.WordsOf(n.only...), capabilities.WordsOf(n.methods...)
	if n.rate != "" {
		many, in, _ := strings.Cut(n.rate, "/")
		uses, wrong := strconv.ParseUint(many, 10, 32)
		time, err := parseDuration(in)
		if wrong != nil || err != nil || uses == 0 || time.Seconds() < 1 || time.Seconds() > 1<<31 {
			return f, usage(c, "%q is no rate: want as in 10/1h", n.rate)
		}
		f.Rate = capabilities.Rate{Uses: uint32(uses), Seconds: uint32(time.Seconds())}
	}
	return f, f.Check()
}

// spot is what is made at the moment in which it is given.
type spot struct{ folder, file string }

func (s *spot) add(f *pflag.FlagSet) {
	f.StringVar(&s.folder, "folder", "", "make this `folder` of the node, and give it")
	f.StringVar(&s.file, "file", "", "store this `file`, and give it")
}

// give makes what the flags name under a name, and gives it. What is not given for certain is not left behind.
func (s *spot) give(c *cobra.Command, env *environment, name string, give func() error) error {
	r := api.MakeResourceRequest{Acting: env.acting(), Name: name}
	switch {
	case s.folder != "" && s.file != "":
		return usage(c, "--folder and --file: which one is it?")
	case s.folder != "":
		path, err := filepath.Abs(s.folder)
		if err != nil {
			return err
		}
		r.Kind, r.Folder = capabilities.KindFolder, path
	case s.file != "":
		files, err := attachFiles(c.Context(), env, []string{s.file})
		if err != nil {
			return err
		}
		r.Kind, r.File = capabilities.KindFile, &files[0]
	case c.Flags().Changed("folder") || c.Flags().Changed("file"): // such as of a variable that is not set
		return usage(c, "give the path of what is to be made")
	default:
		return give()
	}
	if err := api.MakeResource.Run(c.Context(), env, r); err != nil {
		return err
	}
	err := give()
	if err != nil && !parley.MayBeDone(err) {
		err = errors.Join(err, api.EndResource.Run(c.Context(), env, api.NameRequest{Acting: env.acting(), Name: name}))
	}
	return err
}

// makeResourceCommand returns the command make, with the kinds of resources below it.
func makeResourceCommand(env *environment) *cobra.Command {
	return noun(&cobra.Command{
		Use:   "make",
		Short: "Make a folder, a file, a secret or a tool that can be given to agents",
		Long: `Makes something of this node that agents can be given, as the node's host. It is then given as a reference is: by its name in a message,
or as the answer to a request. "parley grants" lists who got it, and "parley revoke" takes it back. What is given can be narrowed:
see "parley name copy" and "parley resolve".`,
		Example: `  parley make folder notes ~/notes --read-only
  parley make secret github --host api.github.com < token
  parley make tool search -- search-server --stdio`,
	}, makeFolderCommand(env), makeFileCommand(env), makeSecretCommand(env), makeToolCommand(env))
}

func makeFolderCommand(env *environment) *cobra.Command {
	var n narrowing
	c := &cobra.Command{
		Use:   "folder NAME PATH",
		Short: "Make a folder of the node that can be listed, read and written",
		Long: `Makes a folder of the node one that agents can be given. They list, read and write what is below it: never through a link, out of
it, or in a repository's own files (.git).`,
		Example: "  parley make folder notes ~/notes\n  parley make folder manual /usr/share/manual --read-only",
		Args:    exactly("NAME", "PATH"),
	}
	n.add(c.Flags())
	c.RunE = func(c *cobra.Command, args []string) error {
		path, err := filepath.Abs(args[1])
		if err != nil {
			return err
		}
		return makeResource(c, env, &n, api.MakeResourceRequest{Kind: capabilities.KindFolder, Name: args[0], Folder: path})
	}
	return c
}

func makeFileCommand(env *environment) *cobra.Command {
	var n narrowing
	c := &cobra.Command{
		Use:     "file NAME PATH",
		Short:   "Make a file that can be read",
		Long:    "Stores the content of a file as it is now, so that agents can be given it. Later changes of the file are not in it.",
		Example: "  parley make file plan plan.pdf",
		Args:    exactly("NAME", "PATH"),
	}
	n.add(c.Flags())
	c.RunE = func(c *cobra.Command, args []string) error {
		files, err := attachFiles(c.Context(), env, []string{args[1]})
		if err != nil {
			return err
		}
		return makeResource(c, env, &n, api.MakeResourceRequest{Kind: capabilities.KindFile, Name: args[0], File: &files[0]})
	}
	return c
}

func makeSecretCommand(env *environment) *cobra.Command {
	var (
		n         narrowing
		header    string
		authority string
		again     bool
	)
	c := &cobra.Command{
		Use:   "secret NAME",
		Short: "Make a secret that agents use and never see",
		Long: `Reads a secret from standard input, or asks for it on a terminal, and keeps it sealed beside the log. Agents that are given it make
requests with it: the node adds it to them in a header, sends them to the named hosts alone, by HTTPS, follows no redirect, and strikes it
out of what comes back. Without --method, requests are GET and HEAD. --again gives a secret that there is another value.`,
		Example: `  parley make secret github --host api.github.com < token
  parley make secret shop --host api.shop.example --method POST --below v1/orders --header 'X-Key: {}' --ask`,
		Args: exactly("NAME"),
	}
	n.add(c.Flags())
	c.Flags().Lookup("only").Hidden = true
	c.Flags().StringArrayVar(&n.only, "host", nil, "a `host` that it may be sent to, with its port if that is not 443; may be repeated")
	c.Flags().StringVar(&header, "header", "", "the `header` that it goes into, with {} in its place (default \"Authorization: Bearer {}\")")
	c.Flags().StringVar(&authority, "ca", "", "trust only the certificates in this `file` (PEM)")
	c.Flags().BoolVar(&again, "again", false, "give a secret that there is another value")
	c.RunE = func(c *cobra.Command, args []string) error {
		r := api.MakeResourceRequest{Kind: capabilities.KindSecret, Name: args[0], Header: header, Again: again}
		if len(n.only) == 0 && !again {
			return usage(c, "missing: --host")
		}
		if len(n.methods) == 0 {
			n.methods = []string{"GET", "HEAD"}
		}
		if authority != "" {
			pem, err := env.readInput(authority)
			if err != nil {
				return err
			}
			r.Authority = string(pem)
		}
		var err error
		if r.Secret, err = readSecret(c.Context(), env); err != nil {
			return err
		}
		return makeResource(c, env, &n, r)
	}
	return c
}

// readSecret reads one line, without showing it on a terminal.
func readSecret(ctx context.Context, env *environment) (string, error) {
	if env.interactive() {
		texts, err := interview.Ask(ctx, env.stdin, env.stdout, "The secret is kept sealed beside the log.", "parley make secret", []events.Field{{Name: "secret", Label: "Secret", Type: events.Secret, Required: true}})
		if err != nil || len(texts) == 0 {
			return "", cmp.Or(err, error(parley.Refuse(parley.InvalidArgument, "no secret was given")))
		}
		return texts[0].Text, nil
	}
	text, err := env.readInput("-")
	return strings.TrimRight(string(text), "\r\n"), err
}

func makeToolCommand(env *environment) *cobra.Command {
	var (
		n       narrowing
		address string
		folder  string
		again   bool
	)
	c := &cobra.Command{
		Use:   "tool NAME [-- COMMAND …]",
		Short: "Make the tools of an MCP server usable by agents",
		Long: `Makes the tools of a server of the Model Context Protocol ones that agents can be given. The node runs its COMMAND for each use, or reaches it
at --url. A tool whose description or schema is another later is refused, until --again grants it as it is then.`,
		Example: `  parley make tool search -- search-server --stdio
  parley make tool weather --url https://weather.example/mcp
  parley make tool search --again`,
		Args: atLeast("NAME"),
	}
	n.add(c.Flags())
	c.Flags().StringVar(&address, "url", "", "the server's `address`, in place of a command")
	c.Flags().StringVar(&folder, "folder", "", "run the command in this `folder`")
	c.Flags().BoolVar(&again, "again", false, "grant the tools of one that there is as they are now")
	c.RunE = func(c *cobra.Command, args []string) error {
		r := api.MakeResourceRequest{Kind: capabilities.KindTool, Name: args[0], Command: args[1:], Address: address, Again: again}
		if folder != "" {
			var err error
			if r.Folder, err = filepath.Abs(folder); err != nil {
				return err
			}
		}
		return makeResource(c, env, &n, r)
	}
	return c
}

func makeResource(c *cobra.Command, env *environment, n *narrowing, r api.MakeResourceRequest) (err error) {
	if r.Facet, err = n.facet(c); err != nil {
		return err
	}
	r.Acting = env.acting()
	return perform(c.Context(), env, api.MakeResource, r, func(made view.MadeResource) string {
		text := fmt.Sprintf("%s is a %s: %s", terminal.Quoted(made.Name), made.Kind, terminal.Visible(made.Words))
		if len(made.Tools) > 0 {
			text += "\ntools: " + terminal.Visible(strings.Join(made.Tools, ", "))
		}
		return text
	})
}

func unmakeCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "unmake NAME",
		Short: "End what was made, with all grants of it",
		Long: `Ends a folder, file, secret or tool that was made on this node: nobody can use it any more. A folder itself stays as it is, and a secret's value
is removed. Of a name that has less of it ("parley name copy"), it ends what was given by that name, and leaves the rest as it is.`,
		Example:           "  parley unmake notes",
		Args:              exactly("NAME"),
		ValidArgsFunction: completeArguments(env, api.CompleteNames),
		RunE: func(c *cobra.Command, args []string) error {
			return change(env, c, api.EndResource, api.NameRequest{Acting: env.acting(), Name: args[0]}, args[0], "ended "+terminal.Quoted(args[0]))
		},
	}
}

func useCommand(env *environment) *cobra.Command {
	var (
		key    string
		inputs []string
		input  string
		noWait bool
	)
	c := &cobra.Command{
		Use:   "use [NAME [VERB [VALUE …]]]",
		Short: "Use a folder, file, secret or tool that the agent was given",
		Long: `Without a NAME it lists what the agent holds, also what messages and answers gave it that has no name yet.
Without a VERB it says what the agent holds under a name, what can be done with it, and how it was last used: by the agent, and by those that have it from
the agent. The values of a verb are in the order that it takes them, or
by name with --set. A value @FILE is read from a file, and - from standard input.

A use is charged before it goes out. Where the giver decides on each use, the command waits for that, unless --no-wait is given. With --key, the
same command again is the same use: it is not done twice, and says how it ended.`,
		Example: `  parley use
  parley use notes
  parley use notes list docs
  parley use notes read docs/a.md --as fae
  parley use notes write docs/b.md @draft.md --key draft-1
  parley use github request https://api.github.com/user
  parley use search call find '{"text":"rounding"}'`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: completeArguments(env, api.CompleteNames),
	}
	c.Flags().BoolVar(&noWait, "no-wait", false, "do not wait for the end of the use")
	c.Flags().StringVar(&key, "key", "", "the same command with the same `key` is the same use")
	c.Flags().StringArrayVar(&inputs, "set", nil, "a value as `name:value`; may be repeated")
	c.Flags().StringVar(&input, "input", "", "JSON object of values in a `file`, or - for standard input")
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return listHeld(c.Context(), env)
		}
		r := api.InvokeRequest{Acting: env.acting(), Name: args[0], Key: key}
		if len(args) == 1 {
			return describeHolding(c.Context(), env, r)
		}
		r.Verb = args[1]
		if input != "" {
			text, err := env.readInput(input)
			if err != nil {
				return err
			}
			if r.Input, err = parseValues(text); err != nil {
				return err
			}
		}
		if err := addInputs(c, env, &r, args[2:], inputs); err != nil {
			return err
		}
		if noWait {
			return beginUse(c.Context(), env, r)
		}
		return invoke(c.Context(), env, r)
	}
	return c
}

func listHeld(ctx context.Context, env *environment) error {
	got, err := api.Invoke.Do(ctx, env, api.InvokeRequest{Acting: env.acting()})
	if err != nil {
		return err
	}
	if got.MoreHeld {
		fmt.Fprintln(env.stderr, "there are more: parley names, parley inbox")
	}
	return printList(env, got.Held, "nothing that can be used is held: parley request asks for it", func() string {
		s := env.screen()
		rows := make([][]string, len(got.Held))
		for i, h := range got.Held {
			until, left, may := terminal.Empty, terminal.Empty, h.Words
			if h.Until != 0 {
				until = s.Time(h.Until.Std(), h.Until.String())
			}
			if h.Left != nil {
				left = strconv.FormatUint(uint64(*h.Left), 10)
			}
			if h.Gone != "" {
				may = "no more: " + h.Gone
			}
			rows[i] = []string{terminal.Visible(h.Name), string(h.Kind), terminal.Visible(may), until, left}
		}
		return s.Table([]terminal.Column{{Name: "NAME"}, {Name: "KIND"}, {Name: "MAY", Shrink: true}, {Name: "UNTIL"}, {Name: "LEFT"}}, rows, true)
	})
}

func describeHolding(ctx context.Context, env *environment, r api.InvokeRequest) error {
	u, err := api.Invoke.Do(ctx, env, r)
	if err != nil {
		return err
	}
	return env.print(u.Holds, func() string {
		h := u.Holds
		times := fmt.Sprintf("%d times", h.Used)
		if h.Used == 1 {
			times = "once"
		}
		text := fmt.Sprintf("%s is a %s: %s (used %s)", terminal.Quoted(r.Name), h.Kind, terminal.Visible(h.Facet.Words(h.Kind, func(t capabilities.Time) string {
			return env.screen().Moment(t.Std(), t.String())
		})), times)
		if h.Kind == "" {
			text = terminal.Quoted(r.Name) + ": " + terminal.Visible(h.Words)
		}
		for _, v := range h.Verbs {
			text += "\n  " + v.Name
			for i, t := range v.Takes {
				if name := strings.ToUpper(t.Name); i < v.Needs {
					text += " " + name
				} else {
					text += " [" + name + "]"
				}
			}
			text += "  " + v.Words
		}
		if len(h.Uses) > 0 {
			text += "\nlast uses, the newest first:"
		}
		for _, one := range h.Uses {
			text += fmt.Sprintf("\n  %s  %s  %s  %s", env.screen().Moment(one.Begun.Std(), one.Begun.String()), show.Party(one.ByName, one.By), one.State, terminal.Visible(one.Words))
			if one.Error != nil {
				text += ": " + terminal.Visible(one.Error.Message)
			}
		}
		return text
	})
}

// addInputs adds the values of a verb, which are read by its types.
func addInputs(c *cobra.Command, env *environment, r *api.InvokeRequest, args, named []string) error {
	if len(args)+len(named) == 0 {
		return nil
	}
	u, err := api.Invoke.Do(c.Context(), env, api.InvokeRequest{Acting: r.Acting, Name: r.Name})
	if err != nil {
		return err
	}
	i := slices.IndexFunc(u.Holds.Verbs, func(v view.Verb) bool { return v.Name == r.Verb })
	if i < 0 {
		return parley.Refuse(parley.InvalidArgument, "%s cannot be done with %s: it permits to %s", terminal.Quoted(r.Verb), terminal.Quoted(r.Name), u.Holds.Words).WithHint("parley use NAME lists the verbs")
	}
	takes := u.Holds.Verbs[i].Takes
	if len(args) > len(takes) {
		return usage(c, "%q is one value too many for %s", args[len(takes)], r.Verb)
	}
	if r.Input == nil {
		r.Input = map[string]capabilities.Value{}
	}
	for k, text := range args {
		v, err := readTake(env, takes[k], text)
		if err != nil {
			return err
		}
		r.Input[takes[k].Name] = v
	}
	for _, one := range named {
		name, text, ok := strings.Cut(one, ":")
		k := slices.IndexFunc(takes, func(t view.Take) bool { return t.Name == name })
		if !ok || k < 0 {
			return usage(c, "%q is no value of %s: want name:value", one, r.Verb)
		}
		v, err := readTake(env, takes[k], text)
		if err != nil {
			return err
		}
		r.Input[name] = v
	}
	return nil
}

// readTake reads a value of a verb.
func readTake(env *environment, t view.Take, text string) (capabilities.Value, error) {
	data := []byte(text)
	path, isFile := strings.CutPrefix(text, "@")
	if text == "-" {
		path, isFile = text, true
	}
	if isFile {
		var err error
		if data, err = env.readInput(path); err != nil {
			return capabilities.Value{}, err
		}
	}
	switch t.Type {
	case "number":
		n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
		if err != nil {
			return capabilities.Value{}, parley.Refuse(parley.InvalidArgument, "%s is a whole number", t.Name)
		}
		return capabilities.Int(n), nil
	case "record":
		return capabilities.ParseJSON(data)
	case "content":
		if !utf8.Valid(data) {
			return capabilities.Bytes(data), nil
		}
	}
	return capabilities.String(string(data)), nil
}

// beginUse uses a resource, and says how far the use is.
func beginUse(ctx context.Context, env *environment, r api.InvokeRequest) error {
	r.WaitMs = new(int64)
	u, err := api.Invoke.Do(ctx, env, r)
	if err != nil {
		return err
	}
	if u.HasEnded() {
		return printUse(env, u)
	}
	return env.print(u, func() string { return u.State + ": " + terminal.Visible(u.Words) })
}

// invoke uses a resource, and waits until the use has ended.
func invoke(ctx context.Context, env *environment, r api.InvokeRequest) error {
	wait := maxWait.Milliseconds()
	told := ""
	for {
		now := r
		if r.Use == "" {
			short := min(wait, 2000) // so that somebody who waits is told soon what for
			now.WaitMs = &short
		} else {
			now.WaitMs = &wait
		}
		u, err := api.Invoke.Do(ctx, env, now)
		if err != nil {
			return err
		}
		if u.HasEnded() {
			return printUse(env, u)
		}
		r.Use = u.Use.String()
		if words := map[string]string{view.UseAsked: "the giver decides on this use", view.UseQueued: "this use waits for an answer that is not there yet"}[u.State]; words != "" && told != words {
			told = words
			fmt.Fprintf(env.stderr, "%s: %s\n", words, terminal.Visible(u.Words))
		}
	}
}

func printUse(env *environment, u view.Use) error {
	if u.Error != nil {
		if env.options.json {
			if err := env.printJSON(u); err != nil {
				return err
			}
		}
		return u.Error
	}
	if record, ok := u.Result.AsRecord(); ok && !env.options.json {
		if b, ok := record["bytes"].AsBytes(); ok {
			_, err := env.stdout.Write(b)
			return err
		}
		if text, ok := record["text"].AsString(); ok && !env.interactive() && record["status"].IsNull() {
			_, err := fmt.Fprint(env.stdout, text)
			return err
		}
	}
	return env.print(u, func() string { return useText(u) })
}

// useText returns the result of a use for people.
func useText(u view.Use) string {
	record, ok := u.Result.AsRecord()
	if !ok {
		return u.State
	}
	var lines []string
	if status, ok := record["status"].AsInt(); ok {
		lines = append(lines, strconv.FormatInt(status, 10))
	}
	if entries, ok := record["entries"].AsList(); ok {
		for _, e := range entries {
			one, _ := e.AsRecord()
			name := one["name"].Text()
			if one["type"].Text() == "folder" {
				name += "/"
			}
			lines = append(lines, terminal.Visible(name))
		}
		if len(entries) == 0 {
			lines = append(lines, "(nothing)")
		}
	}
	if tools, ok := record["tools"].AsList(); ok {
		for _, t := range tools {
			one, _ := t.AsRecord()
			words, _ := one["description"].AsString()
			if changed, _ := one["changed"].AsBool(); changed {
				words = "(changed since it was granted: it cannot be called before it is granted again)"
			}
			lines = append(lines, terminal.Visible(strings.TrimSpace(one["name"].Text()+"  "+words)))
		}
	}
	if text, ok := record["text"].AsString(); ok {
		for line := range strings.Lines(text) {
			lines = append(lines, terminal.Visible(strings.TrimSuffix(line, "\n")))
		}
	}
	if more, _ := record["more"].AsBool(); more {
		lines = append(lines, "(there is more)")
	}
	if lines == nil {
		return "done: " + terminal.Visible(u.Words)
	}
	return strings.Join(lines, "\n")
}
