package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/terminal"
	"parley/gateway/api"
	"parley/gateway/client"
)

func logsCommand(env *environment) *cobra.Command {
	var (
		follow bool
		tail   int
	)
	c := &cobra.Command{
		Use:   "logs AGENT",
		Short: "Print the output of an agent's program",
		Long: `Shows what an agent's program has put out, the newest part that the node keeps. What it wrote as errors goes to
standard error, and so do notices: a tool call is a line there. As JSON it is a piece a line, with its run and what that was for.`,
		Example:           "  parley logs builder\n  parley logs builder -f --tail 20",
		Args:              exactly("AGENT"),
		ValidArgsFunction: completeArguments(env, api.CompleteNames),
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on showing what comes")
	c.Flags().IntVarP(&tail, "tail", "n", 0, "only the last `lines` (default: all that is kept)")
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		if tail < 0 {
			return usage(c, "--tail %d: want a number of lines", tail)
		}
		ctx, agent := c.Context(), args[0]
		if follow { // of the one that is meant now
			snap, err := fetchAgent(env, c, agent)
			if err != nil {
				return err
			}
			agent = snap.ID.String()
		}
		s := showOutput(env, 0)
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
		return cmp.Or(followed(ctx, follow, err), s.end())
	}
	return c
}

// shownOutput prints an agent's output. A piece may end within a line, which the next one continues.
type shownOutput struct {
	env     *environment
	message capabilities.ID // if not zero, only what was put out for it is shown
	cursor  uint64          // the last that was dealt with

	run  capabilities.ID
	open map[io.Writer]bool // where the last line is not at its end
}

func showOutput(env *environment, after uint64) *shownOutput {
	return &shownOutput{env: env, cursor: after, open: map[io.Writer]bool{}}
}

// page shows a page of output.
func (s *shownOutput) page(page api.ReadOutputResponse) error {
	for _, piece := range page.Pieces {
		if s.message.IsZero() || piece.Message == s.message {
			if err := s.piece(piece); err != nil {
				return err
			}
		}
		s.cursor = piece.Cursor
	}
	return nil
}

func (s *shownOutput) piece(o view.OutputPiece) error {
	if s.env.options.json {
		return s.env.printJSON(o)
	}
	if o.Run != s.run {
		if err := s.end(); err != nil {
			return err
		}
		s.run = o.Run
	}
	out := s.env.stdout
	if o.Stream != "output" {
		out = s.env.stderr
	}
	shown := o.Text
	if line, isCall := o.CallLine(); isCall {
		shown = line
	}
	var b strings.Builder
	screen := s.env.screenOf(out)
	if o.Stream == "notice" && shown != "" { // a notice is a line of its own
		shown += "\n"
		if s.open[out] {
			b.WriteByte('\n')
		}
	}
	for line := range strings.Lines(shown) {
		text, whole := strings.CutSuffix(line, "\n")
		if whole {
			text = strings.TrimSuffix(text, "\r")
		}
		b.WriteString(screen.Output(text))
		if whole {
			b.WriteByte('\n')
		}
		s.open[out] = !whole
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// end completes lines that have no end yet.
func (s *shownOutput) end() error {
	var failed []error
	for out, open := range s.open {
		if open {
			_, err := io.WriteString(out, "\n")
			failed = append(failed, err)
		}
	}
	clear(s.open)
	return errors.Join(failed...)
}

// follow prints an agent's output as it comes, through restarts of the node, until ctx ends.
func (s *shownOutput) follow(ctx context.Context, agent string) error {
	waiter := s.env.waiter(true)
	defer waiter.Close()
	for {
		req := api.ReadOutputRequest{Acting: s.env.acting(), AgentID: agent, After: s.cursor, WaitMs: maxWait.Milliseconds()}
		page, err := readOutput(ctx, waiter, req)
		if err == nil {
			err = s.page(page)
		}
		if err != nil {
			return err
		}
	}
}

// rest prints the output that the node has already.
func (s *shownOutput) rest(ctx context.Context, agent string) error {
	client := s.env.client()
	defer client.Close()
	for {
		page, err := readOutput(ctx, client, api.ReadOutputRequest{Acting: s.env.acting(), AgentID: agent, After: s.cursor})
		if err != nil {
			return err
		}
		if len(page.Pieces) == 0 {
			return s.end()
		}
		if err := s.page(page); err != nil {
			return err
		}
	}
}

func readOutput(ctx context.Context, client *client.Client, req api.ReadOutputRequest) (api.ReadOutputResponse, error) {
	page, err := api.ReadOutput.Do(ctx, client, req)
	return page, err
}

// outputEnd returns the newest pieces of an agent's output, and the cursor after them.
func outputEnd(ctx context.Context, env *environment, agent string, pieces int) (api.ReadOutputResponse, error) {
	client := env.client()
	defer client.Close()
	return readOutput(ctx, client, api.ReadOutputRequest{Acting: env.acting(), AgentID: agent, Tail: &pieces})
}

// tail prints the last lines of an agent's output.
func (s *shownOutput) tail(ctx context.Context, agent string, lines int) error {
	asked := min(lines, api.MaxPieces)
	page, err := outputEnd(ctx, s.env, agent, asked)
	if err != nil {
		return err
	}
	pieces, enough := lastLines(page.Pieces, lines)
	if !enough && len(page.Pieces) > 0 { // there may be more, and it is needed
		if pieces, page.Cursor, err = s.all(ctx, agent); err != nil {
			return err
		}
		pieces, _ = lastLines(pieces, lines)
	}
	page.Pieces = pieces
	err = s.page(page)
	s.cursor = page.Cursor
	return err
}

// all returns all of an agent's output that the node keeps.
func (s *shownOutput) all(ctx context.Context, agent string) ([]view.OutputPiece, uint64, error) {
	client := s.env.client()
	defer client.Close()
	var all []view.OutputPiece
	for cursor := uint64(0); ; {
		page, err := readOutput(ctx, client, api.ReadOutputRequest{Acting: s.env.acting(), AgentID: agent, After: cursor})
		if err != nil || len(page.Pieces) == 0 {
			return all, cursor, err
		}
		cursor, all = page.Cursor, append(all, page.Pieces...)
	}
}

// lastLines returns the last lines of output. It reports whether they are certainly as many as asked for, and whole.
func lastLines(pieces []view.OutputPiece, lines int) ([]view.OutputPiece, bool) {
	if lines <= 0 {
		return nil, true
	}
	for i := len(pieces) - 1; i >= 0; i-- {
		text := pieces[i].Text
		before := text
		if i == len(pieces)-1 {
			before = strings.TrimSuffix(text, "\n")
		}
		for at := strings.LastIndexByte(before, '\n'); at >= 0; at = strings.LastIndexByte(before, '\n') {
			if lines--; lines == 0 {
				pieces[i].Text = text[at+1:]
				return pieces[i:], true
			}
			before = before[:at]
		}
	}
	return pieces, false
}

// entry is one event of a log as the node sends it.
type entry struct {
	Commit  uint64            `json:"commit"`
	Version uint64            `json:"version"`
	Type    string            `json:"type"`
	At      capabilities.Time `json:"at"`
	Payload json.RawMessage   `json:"payload"`
}

func logCommand(env *environment) *cobra.Command {
	var (
		agent           string
		archive, follow bool
	)
	c := &cobra.Command{
		Use:   "log",
		Short: "Print an agent's log",
		Long: `Prints the events of a mailbox, oldest first: the commit of the journal that each stands in, the mailbox's
version after it, when, and what. What a mailbox is, is the fold of these. It begins with what the journal has, and says
how many events are in the archive; with --archive it begins with these. Events in a segment of the archive that is
elsewhere are named, and left out.`,
		Example: "  parley log\n  parley log --agent fae --json\n  parley log --archive\n  parley log --follow",
	}
	c.Flags().StringVar(&agent, "agent", "", "the log of the agent held under this `name`")
	c.Flags().BoolVar(&archive, "archive", false, "from the first event on, also what is in the archive")
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on printing events as they come, through restarts of the node")
	_ = c.RegisterFlagCompletionFunc("agent", completeFlag(env, api.CompleteNames)) // the flag exists
	c.RunE = func(c *cobra.Command, _ []string) error {
		as, err := logReader(env, agent)
		if err != nil {
			return err
		}
		client := env.client()
		if follow {
			client = env.waiter(false)
		}
		defer client.Close()
		wait := int64(0) // in ms, at the end of the log
		for after, first := uint64(0), true; ; first = false {
			var page logPage
			if err := client.Call(c.Context(), string(api.ReadLog), api.ReadLogRequest{Acting: as, After: after, Journal: !archive, WaitMs: wait}, &page); err != nil {
				return followed(c.Context(), follow, err)
			}
			if first && !archive && page.Archived > 0 {
				if err := noteArchived(env, page.Archived); err != nil {
					return err
				}
			}
			last, err := printLog(env, page, after)
			if err != nil {
				return err
			}
			after = max(after, last)
			if page.More {
				continue
			}
			if !follow {
				return nil
			}
			wait = maxWait.Milliseconds()
		}
	}
	return c
}

// followed returns the error with which a command ends. An interrupt is the way to end one that follows.
func followed(ctx context.Context, follow bool, err error) error {
	if follow && ctx.Err() != nil {
		return &interrupted{}
	}
	return err
}

// logPage is a part of a log as the node sends it.
type logPage struct {
	Entries  []json.RawMessage    `json:"entries"`
	More     bool                 `json:"more"`
	Missing  []view.MissingEvents `json:"missing"`
	Archived uint64               `json:"archived"`
}

// noteArchived says how many events are in the archive.
func noteArchived(env *environment, last uint64) error {
	if env.options.json {
		return env.printJSON(map[string]any{"archived": map[string]any{"first": 1, "last": last, "hint": "parley log --archive"}})
	}
	_, err := fmt.Fprintf(env.stderr, "events 1 to %d are in the archive: parley log --archive\n", last)
	return err
}

// printLog prints a part of a log, and where events are missing. It returns the version of the last event.
func printLog(env *environment, page logPage, after uint64) (uint64, error) {
	missing := page.Missing
	noteMissing := func(before uint64) error {
		for len(missing) > 0 && missing[0].First < before {
			m := missing[0]
			missing = missing[1:]
			if env.options.json {
				if err := env.printJSON(map[string]any{"archived": m}); err != nil {
					return err
				}
				continue
			}
			_, err := fmt.Fprintf(env.stderr, "events %d to %d are in segment %d of the archive, which is elsewhere: %s\n", m.First, m.Last, m.Segment, terminal.Visible(m.Hint))
			if err != nil {
				return err
			}
		}
		return nil
	}
	for _, raw := range page.Entries {
		var e entry
		if err := json.Unmarshal(raw, &e); err != nil {
			return 0, notANode(err)
		}
		if err := noteMissing(e.Version); err != nil {
			return 0, err
		}
		after = e.Version
		err := env.print(raw, func() string {
			return fmt.Sprintf("%d %d %s %s %s", e.Commit, e.Version, e.At, e.Type, terminal.Visible(string(e.Payload)))
		})
		if err != nil {
			return 0, err
		}
	}
	return after, noteMissing(math.MaxUint64)
}

// logReader returns the authority to read the log of an agent: that of the agent itself, which the host has too.
func logReader(env *environment, agent string) (api.Acting, error) {
	if agent == "" || agent == env.options.as {
		return env.acting(), nil
	}
	if env.options.as != "" && capabilities.Special(env.options.as) != capabilities.NameHost {
		return api.Acting{}, parley.Refuse(parley.NotPermitted, "%s may read its own log, not that of %s", env.options.as, agent)
	}
	return api.Acting{As: agent}, nil
}
