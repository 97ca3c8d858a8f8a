//go:build !client

package main

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"parley/cmd/parley/bench"
	"parley/cmd/parley/demo"
	"parley/gateway/api"
	"parley/gateway/client"
)

func benchCommand(env *environment) *cobra.Command {
	var (
		o      bench.Options
		socket bool
		ways   []string
	)
	length := duration(defaultDuration)
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure forms a second against the disk",
		Long: `Measures how many forms are asked, answered and awaited per second, every acknowledgement on disk, and in the
same run how many 4 KiB appends the same disk makes durable one after the other. Their ratio tells more than
either: it depends little on the disk.

Without --socket the node is in this process, in a temporary folder beside the state folder. With it, the
running node is used: the agents made for it are left there without names.

With --over, the running node is measured over several ways in turns of one run: socket is one connection to
its socket, sockets is one for each caller, http is a request there for each call, and tcp is one connection to
its address, on which each agent signs in with a token.`,
		Example: "  parley bench\n  parley bench --callers 1 --duration 2s\n  parley bench --socket --json\n  parley bench --over http,socket,tcp",
	}
	f := c.Flags()
	f.IntVar(&o.Callers, "callers", defaultCallers, "`callers` at once")
	f.Var(&length, "duration", "measure for so `long`")
	f.IntVar(&o.Agents, "agents", defaultAgents, "distinct `agents`, half of which ask and half answer")
	f.IntVar(&o.Open, "open-forms", 5000, "`forms` left open to see what memory one takes; 0 for none")
	f.BoolVar(&socket, "socket", false, "against the running node, through its socket")
	f.StringSliceVar(&ways, "over", nil, "against the running node, over these `ways`: socket, sockets, http, tcp")
	f.StringVar(&o.Folder, "folder", "", "temporary `folder` on the disk to measure (default: beside the state folder)")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if o.Callers < 1 || length <= 0 {
			return usage(c, "want at least one caller and some time")
		}
		tune()
		o.Duration = time.Duration(length)
		if o.Folder == "" {
			o.Folder = filepath.Dir(string(env.options.state))
		}
		for _, way := range ways {
			if !slices.Contains(bench.Ways(), way) {
				return usage(c, "--over is one or several of %s", strings.Join(bench.Ways(), ", "))
			}
		}
		if socket || len(ways) > 0 {
			o.Socket = env.options.state.socket()
			o.Client = env.client()
			defer o.Client.Close()
		}
		if len(ways) > 0 {
			got, err := bench.Compare(c.Context(), o, ways)
			if err != nil {
				return err
			}
			return env.print(got, got.Text)
		}
		got, err := bench.Run(c.Context(), o)
		if err != nil {
			return err
		}
		return env.print(got, got.Text)
	}
	return c
}

func demoCommand(env *environment) *cobra.Command {
	var auto, page bool
	c := &cobra.Command{
		Use:   "demo",
		Short: "See Parley at work in half a minute",
		Long: `Runs a node of its own in a temporary folder. An agent asks for permission to run a command, and waits. The node is
killed while it waits, and started again: the call is still there. You decide it by a key, on the page with --page, or it is
decided by itself with --auto. Then the agent goes on. Every step is shown as the command that does it.`,
		Example: "  parley demo\n  parley demo --page\n  parley demo --auto",
	}
	c.Flags().BoolVar(&auto, "auto", false, "decide by itself, also on a terminal")
	c.Flags().BoolVar(&page, "page", false, "decide on the page, in a browser")
	c.MarkFlagsMutuallyExclusive("auto", "page")
	options := func() demo.Options {
		var onPage func(context.Context, string) (string, error)
		if page {
			onPage = demoPage
		}
		return demo.Options{
			Auto: auto || !page && !env.interactive(), Stdout: env.stdout, Environment: variablePrefix, Key: keyOf(env), Page: onPage,
			Execute: executeDemo, Ready: demoReady,
			Client: func(state string) *client.Client { return demoProgram(demo.Command{State: state}).waiter(true) },
		}
	}
	c.RunE = func(c *cobra.Command, _ []string) error { return demo.Run(c.Context(), options()) }
	return noun(c, &cobra.Command{
		Use:     "team",
		Short:   "See three agents work on one repository",
		Long:    "Runs a node of its own in a temporary folder. Three agents are a team; one leases files, another is refused to edit them, asks, and has them next.",
		Example: "  parley demo team",
		RunE:    func(c *cobra.Command, _ []string) error { return demo.RunTeam(c.Context(), options()) },
	})
}

// keyOf returns a function that reads the next letter that a person types. A line is taken too, where a terminal gives no less.
func keyOf(env *environment) func() (rune, error) {
	in := bufio.NewReader(env.stdin)
	return func() (rune, error) {
		if f, ok := env.stdin.(*os.File); ok {
			if was, err := term.MakeRaw(f.Fd()); err == nil {
				defer term.Restore(f.Fd(), was) //nolint:errcheck // the terminal is gone then
			}
		}
		for {
			switch r, _, err := in.ReadRune(); {
			case err != nil:
				return 0, err
			case r == 3 || r == 4: // control C and D, which a raw terminal passes on
				return 0, context.Canceled
			case unicode.IsLetter(r):
				return unicode.ToLower(r), nil
			}
		}
	}
}

// demoPage opens the page of the demonstration's node, and returns its address.
func demoPage(ctx context.Context, state string) (string, error) {
	p := demoProgram(demo.Command{State: state})
	link, err := api.OpenLink.Do(ctx, p, api.OpenLinkRequest{})
	if err != nil {
		return "", err
	}
	return link.URL, nil
}

// demoProgram returns the program that runs a command of the demonstration.
func demoProgram(c demo.Command) *program {
	return &program{
		environment: environment{
			stdin: c.Stdin, stdout: c.Stdout, stderr: c.Stderr,
			lookup: func(string) (string, bool) { return "", false }, options: options{state: stateFolder(c.State)},
		},
		args: slices.Concat(c.Args, []string{"--state", c.State}),
	}
}

func executeDemo(ctx context.Context, c demo.Command) error {
	p := demoProgram(c)
	err := p.execute(ctx)
	if err != nil && c.Report {
		p.report(ctx, err)
	}
	return err
}

// demoReady blocks until the demonstration's node answers, or returns the error that the node ended with.
func demoReady(ctx context.Context, state string, log func() string) error {
	_, err := awaitReady(ctx, &demoProgram(demo.Command{State: state}).environment, defaultReady)
	if err != nil {
		if e := lastFailure(log()); e != nil {
			return e
		}
	}
	return err
}
