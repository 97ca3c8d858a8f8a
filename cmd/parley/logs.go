package main

import (
	"cmp"

	"github.com/spf13/cobra"

	"parley/gateway"
)

func (p *program) logsCommand() *cobra.Command {
	var (
		follow bool
		tail   int
	)
	c := &cobra.Command{
		Use:   "logs AGENT",
		Short: "Show what an agent's program has put out",
		Long: `Shows what an agent's program has put out, the newest part that the node keeps. What it wrote as errors goes to
standard error. As JSON it is a piece a line, with its run and what that was for.`,
		Example:           "  parley logs builder\n  parley logs builder -f --tail 20",
		Args:              p.exactly("AGENT"),
		ValidArgsFunction: p.completeArguments(gateway.CompleteNames),
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on showing what comes")
	c.Flags().IntVarP(&tail, "tail", "n", 0, "only the last `lines` (default: all that is kept)")
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		if tail < 0 {
			return usage(c, "--tail %d: want a number of lines", tail)
		}
		ctx, agent := c.Context(), args[0]
		if follow { // of the one that is meant now
			_, snap, err := p.fetchAgent(c, agent)
			if err != nil {
				return err
			}
			agent = snap.ID.String()
		}
		s := p.showing(0)
		if c.Flags().Changed("tail") {
			if err := s.tail(ctx, agent, tail); err != nil {
				return err
			}
		}
		if follow {
			err = s.follow(ctx, agent)
		} else if !c.Flags().Changed("tail") {
			err = s.rest(ctx, agent)
		}
		if ctx.Err() != nil && follow {
			err = &interrupted{} // the way to end it
		}
		return cmp.Or(err, s.end())
	}
	return c
}
