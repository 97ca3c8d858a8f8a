package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/actors"
	"parley/gateway"
	"parley/gateway/client"
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
standard error.`,
		Example:           "  parley logs builder\n  parley logs builder -f --tail 20",
		Args:              p.exactly("AGENT"),
		ValidArgsFunction: p.completeArguments(gateway.CompleteNames),
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on showing what comes")
	c.Flags().IntVarP(&tail, "tail", "n", 0, "only the last `lines`")
	c.RunE = func(c *cobra.Command, args []string) error {
		cursor, err := p.showTail(c.Context(), args[0], tail)
		if err != nil || !follow {
			return err
		}
		err = p.showOutput(c.Context(), args[0], &cursor)
		if c.Context().Err() != nil {
			return &interrupted{} // the way to end it
		}
		return err
	}
	return c
}

func (p *program) attachCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "attach AGENT",
		Short: "Show an agent's output, and send it what is typed",
		Long: `Shows what an agent's program puts out, and sends each line of standard input to it as a message. It ends with
the keyboard's interrupt, or when the input has ended and the agent has nothing more to do.`,
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

const attachedTail = 20 // lines that attach begins with

func (p *program) attach(ctx context.Context, agent string) error {
	cursor, err := p.showTail(ctx, agent, attachedTail)
	if err != nil {
		return err
	}
	showing, stop := context.WithCancel(ctx)
	shown := make(chan error, 1)
	go func() { shown <- p.showOutput(showing, agent, &cursor) }()
	ended := make(chan error, 1)
	go func() { ended <- p.sendLines(ctx, agent) }()
	select {
	case err = <-ended:
	case err = <-shown:
		shown <- err
	case <-ctx.Done():
		err = &interrupted{}
	}
	var f finished
	if err == nil {
		f, err = p.waitFor(ctx, agent, 0)
	}
	stop()
	<-shown
	if ctx.Err() != nil {
		return &interrupted{}
	}
	if err == nil {
		err = p.showRest(ctx, agent, cursor)
	}
	if err != nil {
		return err
	}
	return f.exit()
}

// sendLines sends the lines of standard input to an agent.
func (p *program) sendLines(ctx context.Context, agent string) error {
	lines := bufio.NewScanner(io.Reader(p.stdin))
	lines.Buffer(nil, maxInput)
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		if _, err := p.prompt(ctx, agent, lines.Text(), ""); err != nil {
			return err
		}
	}
	return lines.Err()
}

// outputPage is what of an agent's output came in one call.
type outputPage struct {
	Pieces []json.RawMessage `json:"pieces"`
	Cursor uint64            `json:"cursor"`
}

func readOutput(ctx context.Context, client *client.Client, as gateway.Acting, agent string, after uint64, wait time.Duration) (outputPage, error) {
	var page outputPage
	req := gateway.ReadOutputRequest{Acting: as, AgentID: agent, After: after, WaitMs: wait.Milliseconds()}
	err := client.Call(ctx, "read_output", req, &page)
	return page, err
}

// lastOutput gives the cursor at the end of an agent's output.
func lastOutput(ctx context.Context, client *client.Client, as gateway.Acting, agent string) (uint64, error) {
	var got struct {
		Cursor uint64 `json:"cursor"`
	}
	err := client.Call(ctx, "read_output", gateway.ReadOutputRequest{Acting: as, AgentID: agent, Limit: -1}, &got)
	return got.Cursor, err
}

// showOutput shows an agent's output as it comes, until ctx ends.
func (p *program) showOutput(ctx context.Context, agent string, cursor *uint64) error {
	client := p.client()
	defer client.Close()
	for ctx.Err() == nil {
		page, err := readOutput(ctx, client, p.acting(), agent, *cursor, oneWait)
		if err != nil {
			return err
		}
		if err := p.sayPieces(page.Pieces); err != nil {
			return err
		}
		*cursor = page.Cursor
	}
	return nil
}

// showRest shows what there is of an agent's output after a cursor.
func (p *program) showRest(ctx context.Context, agent string, cursor uint64) error {
	client := p.client()
	defer client.Close()
	for {
		page, err := readOutput(ctx, client, p.acting(), agent, cursor, 0)
		if err != nil || len(page.Pieces) == 0 {
			return err
		}
		if err := p.sayPieces(page.Pieces); err != nil {
			return err
		}
		cursor = page.Cursor
	}
}

// showTail shows the end of an agent's output, all of it if lines is 0, and gives the cursor after it.
func (p *program) showTail(ctx context.Context, agent string, lines int) (uint64, error) {
	client := p.client()
	defer client.Close()
	var all []json.RawMessage
	cursor := uint64(0)
	for {
		page, err := readOutput(ctx, client, p.acting(), agent, cursor, 0)
		if err != nil {
			return 0, err
		}
		if len(page.Pieces) == 0 {
			break
		}
		cursor, all = page.Cursor, append(all, page.Pieces...)
	}
	if lines > 0 {
		var err error
		if all, err = lastLines(all, lines); err != nil {
			return 0, err
		}
	}
	return cursor, p.sayPieces(all)
}

// lastLines drops pieces from the front, and lines of the first that stays, as long as enough are left.
func lastLines(pieces []json.RawMessage, lines int) ([]json.RawMessage, error) {
	for i := len(pieces) - 1; i >= 0; i-- {
		var o actors.OutputPiece
		if err := json.Unmarshal(pieces[i], &o); err != nil {
			return nil, notANode(err)
		}
		in := strings.Split(strings.TrimSuffix(o.Text, "\n"), "\n")
		if len(in) < lines {
			lines -= len(in)
			continue
		}
		o.Text = strings.Join(in[len(in)-lines:], "\n")
		first, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		return append([]json.RawMessage{first}, pieces[i+1:]...), nil
	}
	return pieces, nil
}

func (p *program) sayPieces(pieces []json.RawMessage) error {
	for _, raw := range pieces {
		if p.options.json {
			if err := p.sayJSON(raw); err != nil {
				return err
			}
			continue
		}
		var o actors.OutputPiece
		if err := json.Unmarshal(raw, &o); err != nil {
			return notANode(err)
		}
		out := p.stdout
		if o.Stream != "output" {
			out = p.stderr
		}
		for line := range strings.SplitSeq(strings.TrimSuffix(o.Text, "\n"), "\n") {
			if _, err := fmt.Fprintln(out, visible(line)); err != nil {
				return err
			}
		}
	}
	return nil
}
