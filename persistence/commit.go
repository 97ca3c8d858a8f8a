package persistence

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// committer stores the appends, one commit after another, until ctx ends.
func (j *Journal) committer(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-j.order.wake:
		}
		for more := true; more; {
			more = j.commitNext(ctx) > 0
		}
	}
}

// commitNext stores as many appends as fit a frame, and returns their number.
func (j *Journal) commitNext(ctx context.Context) int {
	j.busy.Lock()
	defer j.busy.Unlock()
	batch := j.order.take(j.o.MaxFrame)
	if batch == nil {
		return 0
	}
	if hasSections(batch) {
		f, err := j.encode(batch)
		if err == nil {
			err = j.store(ctx, f)
		}
		switch {
		case err != nil && slices.Contains(j.inDoubt, f):
			j.failInDoubt(err)
			return 0
		case err != nil:
			j.fail(err)
			return 0
		}
	}
	j.order.stored(batch)
	return len(batch)
}

// hasSections reports whether a batch has a section to store. It has none if all appends were lost at once.
func hasSections(batch []appended) bool {
	return slices.ContainsFunc(batch, func(a appended) bool { return len(a.sections) > 0 })
}

// maxBuffer bounds the buffer that is kept for the next frame.
const maxBuffer = 1 << 20

// encode returns the frame of the next commit.
func (j *Journal) encode(batch []appended) (*frame, error) {
	head := j.lastCommit()
	f := &frame{Commit: events.Commit{
		Number: head.Number + 1,
		Prev:   head.Hash,
		At:     max(capabilities.At(j.o.Clock()), head.at),
		Node:   j.o.Node,
	}}
	_, _ = rand.Read(f.Blind[:]) // it never fails
	n := 0
	for i := range batch {
		n += len(batch[i].sections)
	}
	f.Sections = make([]events.Section, 0, n)
	for i := range batch {
		f.Sections = append(f.Sections, batch[i].sections...)
	}
	if err := j.fits(&f.Commit); err != nil {
		return nil, err
	}
	buffer := j.buffer
	j.buffer = nil // until keep gives it back
	var err error
	if f.bytes, f.hash, err = f.Encode(buffer); err != nil {
		return nil, readOnly("the commit cannot be encoded", err)
	}
	return f, nil
}

// keep makes a stored commit visible to readers. The caller holds busy.
func (j *Journal) keep(f *frame) error {
	j.inDoubt = nil
	if j.buffer = f.bytes; cap(j.buffer) > maxBuffer {
		j.buffer = nil
	}
	if err := j.directory.add(f); err != nil {
		return err
	}
	j.bytes.Add(uint64(len(f.bytes)))
	j.grouped.add(&f.Commit, len(f.bytes), f.hash)
	signal(j.marks)
	j.indexes.grown(len(f.bytes))
	return nil
}

// The server's codes for a message that does not follow the last one.
const (
	wrongLastSequence       = 10071
	wrongLastSequenceQuorum = 10164
)

const (
	commitTimeout = 250 * time.Millisecond // for the answer to a commit, until the embedded server is asked for another one
	remoteTimeout = 5 * time.Second        // for that of an external server, which may have died
	probeSeldom   = 10 * time.Second       // between two of these
	settleTimeout = 500 * time.Millisecond // to find out whether a commit is stored
)

var errTaken = errors.New("its number is taken")

// store sends a commit and blocks until it is on disk. If the acknowledgement is lost, it looks for the commit in the
// log. A commit that cannot be looked for is left in doubt for Reopen. The caller holds busy.
func (j *Journal) store(ctx context.Context, f *frame) error {
	l := j.connection()
	j.inDoubt = append(j.inDoubt, f)
	if l.server != nil {
		j.o.slow.begin()
		defer j.o.slow.end()
	}
	err := j.o.step(StepPublish, func() error { return l.publish(ctx, f) })
	switch {
	case errors.Is(err, errTaken):
		j.inDoubt = j.inDoubt[:len(j.inDoubt)-1]
		return j.takenError(ctx, l, f)
	case errors.Is(err, nats.ErrMaxPayload):
		j.inDoubt = j.inDoubt[:len(j.inDoubt)-1]
		return parley.Refuse(parley.ReadOnly, "an append of %d bytes fits no commit", len(f.bytes))
	case err != nil && !j.settled(ctx, l, f):
		return readOnly(fmt.Sprintf("commit %d cannot be stored", f.Number), err)
	case err != nil:
		j.log.Warn("a commit's acknowledgement was lost; the commit is stored", "commit", f.Number, "error", err)
	}
	return j.keep(f)
}

// publish sends a commit and waits for the server's acknowledgement: then the commit is on disk.
//
// The embedded server acknowledges nothing that it could not write, and says nothing either. It takes messages one after
// another. So a while later a message follows that it can only refuse: if that is answered first, the commit has failed.
// While a slow disk has the server wait, neither is answered.
func (l *link) publish(ctx context.Context, f *frame) error {
	l.resetInterrupt()
	if err := l.blocks.whole(); err != nil {
		return err
	}
	reply, err := l.send(f.Number-1, f.bytes)
	if err != nil {
		return err
	}
	var probes []string
	within := l.o.answerWithin
	timer := time.NewTimer(within)
	defer timer.Stop()
	for {
		select {
		case m := <-l.acks:
			if m.Subject == reply {
				if err := readAck(m, l.o.streamName(), f.Number); err != nil {
					return err
				}
				return l.flush()
			}
			if slices.Contains(probes, m.Subject) { // else it is the answer to an earlier commit
				return l.writeError()
			}
		case <-l.interrupts:
			return l.err()
		case <-timer.C:
			if l.server == nil {
				return errors.New("the server does not answer")
			}
			probe, err := l.send(math.MaxInt64, nil)
			if err != nil {
				return err
			}
			probes = append(probes, probe)
			within = min(2*within, probeSeldom)
			timer.Reset(within)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// send sends a message that follows another one. It returns the subject of the answer.
func (l *link) send(after uint64, data []byte) (reply string, err error) {
	l.sent++
	reply = l.inbox + strconv.FormatUint(l.sent, 10)
	msg := nats.NewMsg(l.o.subject())
	msg.Header[nats.ExpectedLastSeqHdr] = []string{strconv.FormatUint(after, 10)}
	msg.Reply = reply
	msg.Data = data
	err = l.conn.PublishMsg(msg)
	if errors.Is(err, nats.ErrReconnectBufExceeded) { // nothing is kept for a server that is not there
		err = fmt.Errorf("connection lost: %w", cmp.Or(l.conn.LastError(), nats.ErrDisconnected))
	}
	return reply, err
}

// flush flushes the names of the files with the commits that the embedded server has acknowledged.
func (l *link) flush() error {
	if l.blocks == nil {
		return nil
	}
	err := l.blocks.flush()
	if err != nil {
		l.interrupt(err) // readable data may not be on disk
	}
	return err
}

// writeError returns the error of a commit that the embedded server could not write. The reason is what its log says last.
func (l *link) writeError() error {
	err := errors.New("the server could not write it")
	if last := l.serverLog.last.Load(); last != nil {
		err = cause(*last)
	}
	l.interrupt(err) // what can be read may not be on disk
	return err
}

type ack struct {
	Stream string `json:"stream"`
	Seq    uint64 `json:"seq"`
	Error  *struct {
		Code        int    `json:"err_code"`
		Description string `json:"description"`
	} `json:"error"`
}

func readAck(m *nats.Msg, stream string, number uint64) error {
	if m.Header.Get("Status") != "" {
		return errors.New("the server has no such journal now")
	}
	var a ack
	if err := json.Unmarshal(m.Data, &a); err != nil {
		return fmt.Errorf("acknowledgement: %w", err)
	}
	switch {
	case a.Error != nil && (a.Error.Code == wrongLastSequence || a.Error.Code == wrongLastSequenceQuorum):
		return fmt.Errorf("%w: %s", errTaken, a.Error.Description)
	case a.Error != nil:
		return serverError{a.Error.Code, a.Error.Description}
	case a.Stream != stream:
		return fmt.Errorf("acknowledged by stream %q", a.Stream)
	case a.Seq != number:
		return lost(number, "was stored as message %d", a.Seq)
	}
	return nil
}

// settled reports whether a commit whose acknowledgement was lost is stored.
func (j *Journal) settled(ctx context.Context, l *link, f *frame) bool {
	if l.err() != nil && l.server != nil {
		return false // after a failed write, readable data may not be on disk
	}
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	found := false
	err := j.o.step(StepSettle, func() error {
		data, err := l.fetchSurely(ctx, f.Number)
		if found = err == nil && string(data) == string(f.bytes); found {
			return l.flush()
		}
		return err
	})
	return err == nil && found
}

// takenError returns the reason why a commit's number is taken: the log was cut, or another process writes to it. A
// server of a cluster that was just elected leader may not have applied the commit before. It refuses the next one, and
// Reopen finds out.
func (j *Journal) takenError(ctx context.Context, l *link, f *frame) error {
	if l.server == nil {
		if _, err := l.fetch(ctx, f.Number); err == nil {
			return errFenced
		}
		return unreachable(errors.New("it does not have the end of the journal yet"))
	}
	s, err := l.js.Stream(ctx, l.o.streamName())
	switch {
	case err == nil && s.CachedInfo().State.LastSeq >= f.Number:
		return errFenced
	case err == nil && s.CachedInfo().State.LastSeq < f.Number-1:
		return lostFrom(s.CachedInfo().State.LastSeq+1, f.Number-1, "gone", "durable")
	}
	return errFenced
}
