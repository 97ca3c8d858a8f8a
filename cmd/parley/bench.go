package main

import (
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"parley/cmd/parley/bench"
)

func (p *program) benchCommand() *cobra.Command {
	var (
		o      bench.Options
		socket bool
	)
	length := duration(defaultDuration)
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure ask-to-answer cycles against the disk",
		Long: `Measures how many forms are asked, answered and awaited per second, every acknowledgement on disk, and in the
same run how many 4 KiB appends the same disk makes durable one after the other. Their ratio tells more than
either: it depends little on the disk.

Without --socket the node is in this process, in a temporary folder beside the state folder. With it, the
running node is used: the agents made for it are left there without names.`,
		Example: "  parley bench\n  parley bench --callers 1 --duration 2s\n  parley bench --socket --json",
	}
	f := c.Flags()
	f.IntVar(&o.Callers, "callers", defaultCallers, "`callers` at once")
	f.Var(&length, "duration", "measure for so `long`")
	f.IntVar(&o.Agents, "agents", defaultAgents, "distinct `agents`, half of which ask and half answer")
	f.IntVar(&o.Open, "open-forms", 5000, "`forms` left open to see what memory one takes; 0 for none")
	f.BoolVar(&socket, "socket", false, "against the running node, through its socket")
	f.StringVar(&o.Folder, "folder", "", "temporary `folder` on the disk to measure (default: beside the state folder)")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if o.Callers < 1 || length <= 0 {
			return usage(c, "want at least one caller and some time")
		}
		o.Duration = time.Duration(length)
		if o.Folder == "" {
			o.Folder = filepath.Dir(p.options.state)
		}
		if socket {
			o.Client = p.client()
			defer o.Client.Close()
		}
		got, err := bench.Run(c.Context(), o)
		if err != nil {
			return err
		}
		return p.say(got, got.Text)
	}
	return c
}
