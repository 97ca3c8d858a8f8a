package persistence

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/textproto"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/oklog/ulid/v2"

	"parley"
	"parley/capabilities"
	"parley/internal/regular"
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
	line  func() *link
	log   *slog.Logger
	index outputIndex
}

// AppendOutput stores a piece of at most MaxOutputPiece bytes. It returns the piece's cursor once the piece is on disk.
func (u *outputs) AppendOutput(ctx context.Context, agent capabilities.ID, body []byte) (uint64, error) {
	if len(body) > MaxOutputPiece {
		return 0, parley.Refuse(parley.TooLarge, "a piece of output has %d bytes at most", MaxOutputPiece)
	}
	l := u.line()
	cursor, err := u.index.publish(ctx, l, agent, body)
	if err == nil && l.outputs != nil {
		err = l.outputs.flush()
	}
	if err != nil {
		return 0, readOnly("output cannot be stored", err)
	}
	return cursor, nil
}

// makeOutput creates the store. Its cursors begin after those of an earlier store.
func (l *link) makeOutput(ctx context.Context, after uint64) error {
	first := uint64(0)
	if after > 0 {
		first = after + 1
	}
	if err := l.prepare(ctx, l.o.outputName()); err != nil {
		return err
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
	l := u.line()
	t, err := u.of(ctx, l, agent)
	if t == nil || err != nil {
		return nil, err
	}
	return t.after(ctx, after, limit)
}

// LatestOutput returns the newest pieces of an agent that are on disk, oldest first and at most limit. It also returns
// the cursor of the last one: 0 if the agent never had output. With limit 0 it reads no pieces.
func (u *outputs) LatestOutput(ctx context.Context, agent capabilities.ID, limit int) ([]OutputPiece, uint64, error) {
	l := u.line()
	t, err := u.of(ctx, l, agent)
	if t == nil || err != nil {
		return nil, 0, err
	}
	if t.newest.cursor == 0 {
		return nil, 0, nil
	}
	pieces, err := t.before(ctx, t.newest.cursor, limit)
	return pieces, t.newest.cursor, err
}

// OutputBefore returns the last pieces of an agent before a cursor, oldest first and at most limit. All of them are on disk.
func (u *outputs) OutputBefore(ctx context.Context, agent capabilities.ID, cursor uint64, limit int) ([]OutputPiece, error) {
	l := u.line()
	t, err := u.of(ctx, l, agent)
	if t == nil || err != nil || cursor == 0 {
		return nil, err
	}
	t.end = cursor - 1
	return t.before(ctx, min(t.newest.cursor, t.end), limit)
}

// agentOutput is the part of the store that has one agent's output.
type agentOutput struct {
	stream  jetstream.Stream
	subject string
	newest  piecePosition // of all pieces ever
	end     uint64        // the last cursor that is read
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
	return &agentOutput{stream: s, subject: l.o.outputSubject(agent), newest: newest, end: math.MaxUint64}, nil
}

func (t *agentOutput) after(ctx context.Context, cursor uint64, limit int) ([]OutputPiece, error) {
	var pieces []OutputPiece
	last := piecePosition{cursor: cursor}
	for len(pieces) < limit {
		m, err := t.stream.GetMsg(ctx, last.cursor+1, jetstream.WithGetMsgSubject(t.subject))
		if err == nil && m.Sequence > t.end {
			break
		}
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			if lost := lostAtEnd(last, t.newest); lost > 0 && t.newest.cursor <= t.end {
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
// agents. So before starts as many pieces back as it wants. It goes four times as far back until it has enough.
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

// Each piece has its number among the agent's pieces, and the cursor of the one before it. The server skips damaged
// pieces silently, and these headers show it.
const (
	pieceNumberHeader = "Parley-Piece"  // its number among the agent's: 1 for the first
	pieceBeforeHeader = "Parley-Before" // the cursor of the one before it
)

// piecePosition is the place of a piece among those of its agent. The count is 0 if it is unknown.
type piecePosition struct{ cursor, count uint64 }

// positionOf reads the position of a piece, and the cursor of the piece before it.
func positionOf(m *jetstream.RawStreamMsg) (at piecePosition, before uint64) {
	number := func(key string) uint64 {
		n, _ := strconv.ParseUint(textproto.MIMEHeader(m.Header).Get(key), 10, 64) // old pieces have no number
		return n
	}
	return piecePosition{m.Sequence, number(pieceNumberHeader)}, number(pieceBeforeHeader)
}

// outputIndex has the newest piece of each agent. It is kept in a file beside the store, so that a loss of the newest
// pieces is detected.
type outputIndex struct {
	path string

	mu      sync.Mutex
	newest  map[ulid.ULID]piecePosition
	current map[ulid.ULID]bool // agents whose entries are as new as the store
	changed bool
}

// publish stores the next piece of an agent and returns its cursor.
func (c *outputIndex) publish(ctx context.Context, l *link, agent capabilities.ID, body []byte) (uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, err := c.last(ctx, l, agent)
	if err != nil {
		return 0, err
	}
	delete(c.current, agent.ULID) // until the piece is known to be stored
	m := nats.NewMsg(l.o.outputSubject(agent))
	m.Data = body
	m.Header.Set(pieceNumberHeader, strconv.FormatUint(last.count+1, 10))
	m.Header.Set(pieceBeforeHeader, strconv.FormatUint(last.cursor, 10))
	ack, err := l.js.PublishMsg(ctx, m)
	if errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrNoResponders) {
		if err = l.makeOutput(ctx, c.end()); err == nil {
			ack, err = l.js.PublishMsg(ctx, m)
		}
	}
	if err != nil {
		return 0, err
	}
	c.newest[agent.ULID], c.current[agent.ULID], c.changed = piecePosition{ack.Sequence, last.count + 1}, true, true
	return ack.Sequence, nil
}

// last returns the newest piece that an agent ever had. The lock is held.
func (c *outputIndex) last(ctx context.Context, l *link, agent capabilities.ID) (piecePosition, error) {
	last := c.newest[agent.ULID]
	if c.current[agent.ULID] {
		return last, nil
	}
	there, err := l.newestPiece(ctx, agent)
	if err != nil {
		return last, err
	}
	if there.cursor > last.cursor {
		last = there
	}
	c.newest[agent.ULID], c.current[agent.ULID] = last, true
	return last, nil
}

// end returns the cursor of the newest piece of all. The lock is held.
func (c *outputIndex) end() (end uint64) {
	for _, p := range c.newest {
		end = max(end, p.cursor)
	}
	return end
}

// open reads the file. It ignores a file that cannot be read.
func (c *outputIndex) open(folder string) {
	c.path = filepath.Join(folder, "outputs")
	c.newest, c.current = map[ulid.ULID]piecePosition{}, map[ulid.ULID]bool{}
	b, err := regular.Read(c.path)
	end := len(b) - sha256.Size
	if err != nil || end < 0 || sha256.Sum256(b[:end]) != [sha256.Size]byte(b[end:]) {
		return
	}
	for ; end >= pieceCountSize; end -= pieceCountSize {
		e := b[end-pieceCountSize : end]
		c.newest[ulid.ULID(e[:16])] = piecePosition{binary.BigEndian.Uint64(e[16:]), binary.BigEndian.Uint64(e[24:])}
	}
}

// pieceCountSize is the size of an agent's entry in the file.
const pieceCountSize = 16 + 8 + 8

// save writes the file if the index has changed.
func (c *outputIndex) save() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.changed {
		return nil
	}
	b := make([]byte, 0, len(c.newest)*pieceCountSize+sha256.Size)
	for agent, p := range c.newest {
		b = append(b, agent[:]...)
		b = binary.BigEndian.AppendUint64(b, p.cursor)
		b = binary.BigEndian.AppendUint64(b, p.count)
	}
	sum := sha256.Sum256(b)
	if err := os.WriteFile(c.path+".new", append(b, sum[:]...), 0o600); err != nil {
		return err
	}
	if err := os.Rename(c.path+".new", c.path); err != nil {
		return err
	}
	c.changed = false
	return nil
}

// save writes the index every second until ctx ends, and then once more.
func (u *outputs) save(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for ended := false; !ended; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			ended = true
		}
		if err := u.index.save(); err != nil {
			u.log.Warn("the counts of output cannot be stored", "error", err)
		}
	}
}

// fill stores pieces without an agent in place of lost pieces at the end of the store. So no cursor is used twice.
func (u *outputs) fill(ctx context.Context) error {
	u.index.mu.Lock()
	end := u.index.end()
	u.index.mu.Unlock()
	if end == 0 {
		return nil
	}
	l := u.line()
	s, err := l.js.Stream(ctx, l.o.outputName())
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil // a new store begins after these cursors
	}
	if err != nil {
		return unreachable(err)
	}
	last := s.CachedInfo().State.LastSeq
	if last < end {
		u.log.Warn("the store of output has lost its newest pieces", "from", last+1, "to", end)
	}
	for ; last < end; last++ {
		if _, err := l.js.Publish(ctx, "PARLEY.OUT."+l.o.Node.String()+".lost", nil); err != nil {
			return unreachable(err)
		}
	}
	return nil
}

// newestPiece returns the newest piece of an agent in the store, or the zero position.
func (l *link) newestPiece(ctx context.Context, agent capabilities.ID) (piecePosition, error) {
	s, err := l.js.Stream(ctx, l.o.outputName())
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return piecePosition{}, nil
	}
	var m *jetstream.RawStreamMsg
	if err == nil {
		m, err = s.GetLastMsgForSubject(ctx, l.o.outputSubject(agent))
	}
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return piecePosition{}, nil
	}
	if err != nil {
		return piecePosition{}, fmt.Errorf("find the newest piece: %w", err)
	}
	at, _ := positionOf(m)
	return at, nil
}

// lostAtEnd returns the number of an agent's pieces that are missing after the last one read.
func lostAtEnd(last, newest piecePosition) uint64 {
	switch {
	case newest.cursor <= last.cursor || newest.count == 0:
		return 0
	case last.count > 0:
		return newest.count - last.count
	}
	return 1 // or more
}

// lostBetween returns the number of missing pieces between two pieces of an agent. The store drops the oldest pieces
// first, so a piece that is missing after an existing one was lost. At the start of reading, last has no count.
func (t *agentOutput) lostBetween(ctx context.Context, last, at piecePosition, before uint64) (uint64, error) {
	switch {
	case at.count == 0 || before <= last.cursor:
		return 0, nil
	case last.count > 0:
		return at.count - last.count - 1, nil
	}
	in, err := t.stream.Info(ctx)
	if err != nil {
		return 0, unreachable(err)
	}
	if kept := t.newest.count + 1 - at.count; kept >= outputPieces || in.State.Bytes > outputBytes/4*3 {
		return 0, nil // the pieces before it were dropped
	}
	return 1, nil // or more: the last piece that the reader had is unknown
}
