package main

import (
	"bufio"
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"parley/cmd/parley/terminal"
	"parley/gateway"
)

// attachedTail is how many lines of what was put out before attach begins with.
const attachedTail = 20

func (p *program) attachCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "attach AGENT",
		Short: "Show an agent's output, and send it what is typed",
		Long: `Shows what an agent's program puts out, and sends each line of standard input to it as a message. It ends with
the keyboard's interrupt, or when the input has ended and the agent has nothing more to do: then the exit status is that
of parley wait.`,
		Example:           "  parley attach builder\n  echo 'make the tests pass' | parley attach builder",
		Args:              p.exactly("AGENT"),
		ValidArgsFunction: p.completeArguments(gateway.CompleteNames),
		RunE: func(c *cobra.Command, args []string) error {
			_, snap, err := p.fetchAgent(c, args[0])
			if err != nil {
				return err
			}
			return p.attach(c.Context(), snap.ID.String())
		},
	}
}

func (p *program) attach(ctx context.Context, agent string) error {
	s := p.showing(0)
	if err := s.tail(ctx, agent, attachedTail); err != nil {
		return err
	}
	showing, stop := context.WithCancel(ctx)
	defer stop()
	shown := make(chan error, 1)
	go func() { shown <- s.follow(showing, agent) }()
	sent := make(chan error, 1)
	go func() { sent <- p.sendLines(ctx, agent) }() // it may outlast this: nothing ends a read of the keyboard
	select {
	case err := <-sent:
		if err != nil {
			return err
		}
	case err := <-shown:
		return p.detached(ctx, err)
	}
	f, err := p.waitFor(ctx, agent, 0)
	stop()
	<-shown
	if err == nil {
		err = s.rest(ctx, agent)
	}
	if err != nil {
		return p.detached(ctx, err)
	}
	return p.sayHow(f)
}

// detached is how attach ends while the agent goes on.
func (p *program) detached(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &interrupted{} // the way to end it
	}
	return err
}

// sendLines sends the lines of standard input to an agent.
func (p *program) sendLines(ctx context.Context, agent string) error {
	lines := bufio.NewScanner(p.stdin)
	lines.Buffer(nil, maxInput)
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		if _, err := p.sendPrompt(ctx, agent, lines.Text(), ""); err != nil {
			return err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return terminal.TooLong("a line", maxInput)
	}
	return lines.Err()
}
