package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	_ "time/tzdata" // a container has no time zones of its own
	"unicode/utf8"

	"github.com/spf13/cobra"

	"parley"
	"parley/gateway/api"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program whatever it is doing
	p := &program{
		environment: environment{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, lookup: os.LookupEnv},
		args:        os.Args[1:],
	}
	os.Exit(p.run(ctx))
}

// program is one run of the command line.
type program struct {
	environment
	args []string

	hooked bool // run by a coding agent, for which an exit status is an answer
	began  bool // arguments and options were understood: an error from now on is none of usage
}

// run runs the command line and returns its exit code.
func (p *program) run(ctx context.Context) int {
	err := p.execute(ctx)
	if err == nil {
		return exitDone
	}
	code := p.report(ctx, err)
	if _, wakes := errors.AsType[wakesAgent](err); p.hooked && !wakes {
		return exitRefused // the entry in the agent's settings says for which events that denies; exitUsage would for all
	}
	return code
}

func (p *program) execute(ctx context.Context) error {
	if err := p.checkArguments(); err != nil {
		return err
	}
	root := p.root()
	root.SetArgs(p.args)
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	c, err := root.ExecuteContextC(ctx)
	p.hooked = isHook(c)
	return err
}

// checkArguments refuses arguments that no operation takes.
func (p *program) checkArguments() error {
	for _, a := range p.args {
		if !utf8.ValidString(a) {
			p.began = true
			return parley.Refuse(parley.InvalidArgument, "the argument %q is not valid UTF-8", a)
		}
	}
	return nil
}

func (p *program) root() *cobra.Command {
	env := &p.environment
	root := &cobra.Command{
		Use:   "parley",
		Short: "Durable mail and forms for agents",
		Long: `Parley is durable mail and forms for agents. One agent sends another a form and waits;
the answer arrives exactly once, whatever restarts or crashes in between.

  parley demo                 see it at work in a minute
  parley setup claude-code    have a coding agent ask you
  parley start                run a node in the background
  parley mkguest fae          make an agent
  parley form HOST 'Configure project settings' --as fae --field 'apiKey:API key'
  parley inbox                what waits for you
  parley answer 0             answer it`,
		Version:           version(),
		SilenceUsage:      true,
		SilenceErrors:     true,
		PersistentPreRunE: p.begin,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return usage(c, "%s", flagWords(err)) })
	p.options.global(root.PersistentFlags())
	if len(p.args) > 0 && p.args[0] == hookName { // run for each call of a coding agent, so the other commands are not made
		add(root, "", hookCommand(env))
		return root
	}
	addCommands(root, env)
	ofCommand := root.UsageFunc()
	root.SetUsageFunc(func(c *cobra.Command) error {
		if c.HasParent() {
			return ofCommand(c)
		}
		_, err := fmt.Fprint(c.OutOrStderr(), usageOfRoot(c, env.screen()))
		return err
	})
	root.CompletionOptions.DisableDefaultCmd = true
	_ = root.RegisterFlagCompletionFunc("as", completeFlag(env, api.CompleteNames)) // the flag exists
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{formatText, formatTable, formatWide, formatJSON, formatYAML}, cobra.ShellCompDirectiveNoFileComp))
	return root
}

// begin completes the options before a command runs. It takes those that were not given from the environment.
func (p *program) begin(c *cobra.Command, _ []string) error {
	if err := fromEnvironment(c, p.lookup); err != nil {
		return err
	}
	if err := p.options.settle(c, p.lookup); err != nil {
		return err
	}
	if err := c.ValidateFlagGroups(); err != nil { // cobra does it later, when an error is none of usage any more
		return usage(c, "%s", flagGroup(err))
	}
	p.began = true
	return nil
}

// flagGroup says in plain words which options cannot be given together: cobra's end with ": [at every] were all set".
func flagGroup(err error) string {
	_, rest, _ := strings.Cut(err.Error(), "; [")
	names, _, ok := strings.Cut(rest, "]")
	if !ok {
		return err.Error()
	}
	return "--" + strings.Join(strings.Fields(names), " and --") + " cannot be given together"
}
