package main

import (
	"context"
	"errors"
	"io"
	"strings"

	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/terminal"
	"parley/gateway/api"
	"parley/gateway/client"
)

// shownOutput is what was shown of an agent's output. A piece may end within a line, which the next one goes on with.
type shownOutput struct {
	p       *program
	message capabilities.ID // if not zero, only what was put out for it is shown
	cursor  uint64          // the last that was dealt with

	run  capabilities.ID
	open map[io.Writer]bool // where the last line is not at its end
}

func (p *program) showing(after uint64) *shownOutput {
	return &shownOutput{p: p, cursor: after, open: map[io.Writer]bool{}}
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
	if s.p.options.json {
		return s.p.sayJSON(o)
	}
	if o.Run != s.run {
		if err := s.end(); err != nil {
			return err
		}
		s.run = o.Run
	}
	out := s.p.stdout
	if o.Stream != "output" {
		out = s.p.stderr
	}
	var b strings.Builder
	for line := range strings.Lines(o.Text) {
		text, whole := strings.CutSuffix(line, "\n")
		if whole {
			text = strings.TrimSuffix(text, "\r")
		}
		b.WriteString(visibleOutput(text))
		if whole {
			b.WriteByte('\n')
		}
		s.open[out] = !whole
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// visibleOutput is visible with the tabs that programs align their output by.
func visibleOutput(line string) string {
	columns := strings.Split(line, "\t")
	for i, c := range columns {
		columns[i] = terminal.Visible(c)
	}
	return strings.Join(columns, "\t")
}

// end ends the lines that are not at their end.
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

// follow shows an agent's output as it comes, through restarts of the node, until ctx ends.
func (s *shownOutput) follow(ctx context.Context, agent string) error {
	waiter := s.p.waiter(true)
	defer waiter.Close()
	for {
		req := api.ReadOutputRequest{Acting: s.p.acting(), AgentID: agent, After: s.cursor, WaitMs: oneWait.Milliseconds()}
		page, err := readOutput(ctx, waiter, req)
		if err == nil {
			err = s.page(page)
		}
		if err != nil {
			return err
		}
	}
}

// rest shows what there is already of an agent's output.
func (s *shownOutput) rest(ctx context.Context, agent string) error {
	client := s.p.client()
	defer client.Close()
	for {
		page, err := readOutput(ctx, client, api.ReadOutputRequest{Acting: s.p.acting(), AgentID: agent, After: s.cursor})
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
	var page api.ReadOutputResponse
	err := client.Call(ctx, "read_output", req, &page)
	return page, err
}

// outputEnd gives the newest pieces of an agent's output, and the cursor after them.
func (p *program) outputEnd(ctx context.Context, agent string, pieces int) (api.ReadOutputResponse, error) {
	client := p.client()
	defer client.Close()
	return readOutput(ctx, client, api.ReadOutputRequest{Acting: p.acting(), AgentID: agent, Tail: &pieces})
}

// tail shows the last lines of an agent's output.
func (s *shownOutput) tail(ctx context.Context, agent string, lines int) error {
	asked := min(lines, api.MaxPieces)
	page, err := s.p.outputEnd(ctx, agent, asked)
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

// all gives all that the node keeps of an agent's output.
func (s *shownOutput) all(ctx context.Context, agent string) ([]view.OutputPiece, uint64, error) {
	client := s.p.client()
	defer client.Close()
	var all []view.OutputPiece
	for cursor := uint64(0); ; {
		page, err := readOutput(ctx, client, api.ReadOutputRequest{Acting: s.p.acting(), AgentID: agent, After: cursor})
		if err != nil || len(page.Pieces) == 0 {
			return all, cursor, err
		}
		cursor, all = page.Cursor, append(all, page.Pieces...)
	}
}

// lastLines gives the last lines of output, and whether it is sure that they are as many, and whole.
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
