package persistence

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/nats-io/nats.go/jetstream"

	"parley"
	"parley/capabilities"
)

// Bounds of the output of programs.
const (
	outputPieces   = 2048    // kept of each agent
	outputBytes    = 4 << 30 // kept of all agents
	MaxOutputPiece = 128 << 10
)

// OutputPiece is one entry of an agent's output. Cursor grows from each piece of an agent to the next. A piece without
// a body stands for pieces that were lost to damage of the store.
type OutputPiece struct {
	Cursor uint64
	Body   []byte
	Lost   uint64 // the number of lost pieces
}

func (o *Options) outputName() string { return "PARLEY_OUT_" + o.Node.String() }

func (o *Options) outputSubject(agent capabilities.ID) string {
	return "PARLEY.OUT." + o.Node.String() + "." + agent.ULID.String()
}

// outputs is the store of output: a stream of its own beside the journal, which drops old pieces. Backups do not
// contain it. It is safe for concurrent use.
type outputs struct {
	hold  func() (*link, func())
	log   *slog.Logger
	index outputIndex
}

// AppendOutput stores a piece of at most MaxOutputPiece bytes. It returns the piece's cursor once the piece is on disk.
func (u *outputs) AppendOutput(ctx context.Context, agent capabilities.ID, body []byte) (uint64, error) {
	if len(body) > MaxOutputPiece {
		return 0, parley.Refuse(parley.TooLarge, "a piece of output has %d bytes at most", MaxOutputPiece)
	}
	l, release := u.hold()
	defer release()
	cursor, err := u.index.publish(ctx, l, agent, body)
	if err == nil && l.outputs != nil {
		err = l.outputs.flush()
	}
	if err != nil {
		return 0, readOnly("output cannot be stored", err)
	}
	u.index.flushedTo(cursor)
	return cursor, nil
}

// makeOutput creates the store. Its cursors begin after those of an earlier store.
func (l *link) makeOutput(ctx context.Context, after uint64) error {
	first := uint64(0)
	if after > 0 {
		first = after + 1
	}
	_, err := l.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name:              l.o.outputName(),
		Subjects:          []string{"PARLEY.OUT." + l.o.Node.String() + ".*"},
		Description:       "what the programs of a Parley node put out: the newest of it",
		Storage:           jetstream.FileStorage,
		Retention:         jetstream.LimitsPolicy,
		Discard:           jetstream.DiscardOld,
		MaxMsgsPerSubject: outputPieces,
		MaxBytes:          outputBytes,
		MaxMsgSize:        MaxOutputPiece + frameOverhead,
		Replicas:          l.o.Replicas,
		AllowDirect:       true,
		FirstSeq:          first,
	})
	if err != nil {
		return err
	}
	return l.o.flushBeside()
}

// Output returns at most limit pieces of an agent after a cursor, oldest first. All of them are on disk.
func (u *outputs) Output(ctx context.Context, agent capabilities.ID, after uint64, limit int) ([]OutputPiece, error) {
	l, release := u.hold()
	defer release()
	t, err := u.of(ctx, l, agent)
	if t == nil || err != nil {
		return nil, err
	}
	return t.after(ctx, after, limit)
}

// LatestOutput returns the newest pieces of an agent that are on disk, oldest first and at most limit, and the
// cursor of the last one: 0 if the agent never had output. With limit 0 it reads no pieces.
func (u *outputs) LatestOutput(ctx context.Context, agent capabilities.ID, limit int) ([]OutputPiece, uint64, error) {
	l, release := u.hold()
	defer release()
	t, err := u.of(ctx, l, agent)
	if t == nil || err != nil {
		return nil, 0, err
	}
	end := min(t.newest.cursor, t.flushed)
	if end == 0 {
		return nil, 0, nil
	}
	pieces, err := t.before(ctx, end, limit)
	return pieces, end, err
}

// OutputBefore returns the last pieces of an agent before a cursor, oldest first and at most limit. All of them are on disk.
func (u *outputs) OutputBefore(ctx context.Context, agent capabilities.ID, cursor uint64, limit int) ([]OutputPiece, error) {
	l, release := u.hold()
	defer release()
	t, err := u.of(ctx, l, agent)
	if t == nil || err != nil || cursor == 0 {
		return nil, err
	}
	t.flushed = min(t.flushed, cursor-1)
	return t.before(ctx, min(t.newest.cursor, t.flushed), limit)
}

// agentOutput is the part of the store that has one agent's output.
type agentOutput struct {
	stream  jetstream.Stream
	subject string
	newest  piecePosition // of all pieces ever
	flushed uint64        // the newest cursor of any agent that is on disk
}

// of returns an agent's part of the store. It is nil if there is no store yet.
func (u *outputs) of(ctx context.Context, l *link, agent capabilities.ID) (*agentOutput, error) {
	s, err := l.js.Stream(ctx, l.o.outputName())
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, unreachable(err)
	}
	u.index.mu.Lock()
	defer u.index.mu.Unlock()
	newest, err := u.index.last(ctx, l, agent)
	if err != nil {
		return nil, unreachable(err)
	}
	flushed, err := u.index.flushedEnd(ctx, l, s)
	if err != nil {
		return nil, err
	}
	return &agentOutput{stream: s, subject: l.o.outputSubject(agent), newest: newest, flushed: flushed}, nil
}

func (t *agentOutput) after(ctx context.Context, cursor uint64, limit int) ([]OutputPiece, error) {
	var pieces []OutputPiece
	last := piecePosition{cursor: cursor}
	for len(pieces) < limit {
		m, err := t.stream.GetMsg(ctx, last.cursor+1, jetstream.WithGetMsgSubject(t.subject))
		if err == nil && m.Sequence > t.flushed {
			break
		}
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			if lost := lostAtEnd(last, t.newest); lost > 0 && t.newest.cursor <= t.flushed {
				pieces = append(pieces, OutputPiece{Cursor: t.newest.cursor, Lost: lost})
			}
			break
		}
		if err != nil {
			return pieces, fmt.Errorf("read the output: %w", unreachable(err))
		}
		at, before := positionOf(m)
		lost, err := t.lostBetween(ctx, last, at, before)
		if err != nil {
			return pieces, err
		}
		if lost > 0 {
			pieces = append(pieces, OutputPiece{Cursor: before, Lost: lost})
		}
		pieces = append(pieces, OutputPiece{Cursor: m.Sequence, Body: m.Data})
		last = at
	}
	return pieces[:min(len(pieces), limit)], nil
}

// before returns the last pieces up to a cursor. The stream can only be read forwards, and has the pieces of all
// agents. So before starts as many pieces back as it wants, and then four times as far back until it has enough.
func (t *agentOutput) before(ctx context.Context, newest uint64, limit int) ([]OutputPiece, error) {
	if limit <= 0 {
		return nil, nil
	}
	for back := uint64(limit); ; back *= 4 {
		from := newest - min(back, newest)
		pieces, err := t.after(ctx, from, outputPieces)
		if err != nil {
			return nil, err
		}
		if len(pieces) >= limit || from == 0 {
			return pieces[max(0, len(pieces)-limit):], nil
		}
	}
}
