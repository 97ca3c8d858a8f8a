package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"parley/cmd/parley/demo"
	"parley/gateway/client"
)

func (p *program) demoCommand() *cobra.Command {
	var auto bool
	c := &cobra.Command{
		Use:   "demo",
		Short: "See the whole of it in a minute",
		Long: `Runs a node of its own in a temporary folder. A guest asks the host for settings; the host answers, on the
terminal or by itself with --auto; the guest gets the values. Then the node is killed, started again, and shows
the same inbox. Every step is shown as the command that does it.`,
		Example: "  parley demo\n  parley demo --auto",
	}
	c.Flags().BoolVar(&auto, "auto", false, "answer by itself, also on a terminal")
	c.RunE = func(c *cobra.Command, _ []string) error {
		return demo.Run(c.Context(), demo.Options{
			Auto: auto || !p.interactive(), Stdin: p.stdin, Stdout: p.stdout, Environment: environment,
			Execute: executeDemo, Ready: demoReady,
			Client: func(state string) *client.Client { return demoProgram(demo.Command{State: state}).waiter(true) },
		})
	}
	return c
}

// demoProgram returns the program that runs a command of the demonstration.
func demoProgram(c demo.Command) *program {
	return &program{
		stdin: c.Stdin, stdout: c.Stdout, stderr: c.Stderr, args: slices.Concat(c.Args, []string{"--state", c.State}),
		env: func(string) (string, bool) { return "", false }, options: options{state: c.State},
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
	_, err := demoProgram(demo.Command{State: state}).awaitReady(ctx, defaultReady)
	if err != nil {
		if e := lastFailure(log()); e != nil {
			return e
		}
	}
	return err
}
