package persistence

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"parley"
)

// The server's codes for a message that does not follow the last one.
const (
	wrongLastSequence       = 10071
	wrongLastSequenceQuorum = 10164
)

const (
	commitTimeout = 15 * time.Second       // for an answer that nothing says will not come
	remoteTimeout = 5 * time.Second        // the same of an external server, which may have died unseen
	settleTimeout = 500 * time.Millisecond // for a look at what became of a commit
)

var errTaken = errors.New("its number is taken")

// store sends a commit and waits until it is on disk. When the answer is lost it looks whether the commit
// is there; what cannot be found out now is left in doubt for Reopen. The caller has busy.
func (j *Journal) store(ctx context.Context, f *frame) error {
	l := j.way()
	j.doubts = append(j.doubts, f)
	err := j.o.step(StepPublish, func() error { return l.publish(ctx, f) })
	switch {
	case errors.Is(err, errTaken):
		j.doubts = j.doubts[:len(j.doubts)-1]
		return j.whoTook(ctx, l, f)
	case errors.Is(err, nats.ErrMaxPayload):
		j.doubts = j.doubts[:len(j.doubts)-1]
		return parley.Refuse(parley.ReadOnly, "an append of %d bytes fits no commit", len(f.bytes))
	case err != nil && !j.settled(ctx, l, f):
		return readOnly(fmt.Sprintf("commit %d cannot be stored", f.Number), err)
	case err != nil:
		j.log.Warn("a commit's acknowledgement was lost; the commit is stored", "commit", f.Number, "error", err)
	}
	return j.keep(f)
}

// publish sends a commit, waits for the server's word that it is stored, and sees to it that it is on disk.
func (l *link) publish(ctx context.Context, f *frame) error {
	l.calm()
	l.sent++
	reply := l.inbox + strconv.FormatUint(l.sent, 10)
	msg := nats.NewMsg(l.o.subject())
	msg.Header[nats.ExpectedLastSeqHdr] = []string{strconv.FormatUint(f.Number-1, 10)}
	msg.Reply = reply
	msg.Data = f.bytes
	if err := l.conn.PublishMsg(msg); err != nil {
		return err
	}
	timer := time.NewTimer(l.o.answerWithin)
	defer timer.Stop()
	for {
		select {
		case m := <-l.acks:
			if m.Subject != reply {
				continue // the answer to one that was given up
			}
			if err := readAck(m, l.o.streamName(), f.Number); err != nil {
				return err
			}
			return l.flush()
		case <-l.alarm:
			return l.whatTrouble()
		case <-timer.C:
			if !l.isBusy(ctx) {
				return errors.New("the server does not answer")
			}
			l.o.Log.Warn("the disk does not take a write yet", "commit", f.Number)
			timer.Reset(l.o.answerWithin)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// flush sees to it that what the embedded server has answered is on disk.
func (l *link) flush() error {
	if l.blocks == nil {
		return nil
	}
	err := l.blocks.flush()
	if err != nil {
		l.raise(err) // what can be read may not be on disk
	}
	return err
}

// isBusy reports whether the embedded server can say nothing of the stream now: a write of its own, to a disk that is
// slow, has not ended. A server that can has answered, or never will.
func (l *link) isBusy(ctx context.Context) bool {
	if l.server == nil {
		return false
	}
	asked, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	_, err := l.js.Stream(asked, l.o.streamName())
	return asked.Err() != nil && err != nil && ctx.Err() == nil
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
		return fmt.Errorf("server: %s (%d)", a.Error.Description, a.Error.Code)
	case a.Stream != stream:
		return fmt.Errorf("acknowledged by stream %q", a.Stream)
	case a.Seq != number:
		return lost(number, "was stored as message %d", a.Seq)
	}
	return nil
}

// settled looks whether a commit whose acknowledgement was lost is stored.
func (j *Journal) settled(ctx context.Context, l *link, f *frame) bool {
	if l.whatTrouble() != nil && l.server != nil {
		return false // what the embedded server shows after a failed write may not be on disk
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

// whoTook says why a commit's number is not the next: the log was cut, or another writes it.
func (j *Journal) whoTook(ctx context.Context, l *link, f *frame) error {
	s, err := l.js.Stream(ctx, l.o.streamName())
	if err == nil && s.CachedInfo().State.LastSeq < f.Number-1 {
		return lost(s.CachedInfo().State.LastSeq+1, "is gone, and so are those to %d, which were durable", f.Number-1)
	}
	return errFenced
}
