package persistence

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"parley"
	"parley/events"
)

var errNotThere = errors.New("not there")

// fetch gets the frame of one commit, from whichever server is nearest.
func (l *link) fetch(ctx context.Context, number uint64) ([]byte, error) {
	if err := l.old.check(number, number); err != nil {
		return nil, err
	}
	query := append(strconv.AppendUint([]byte(`{"seq":`), number, 10), '}')
	m, err := l.request(ctx, "$JS.API.DIRECT.GET."+l.o.streamName(), query)
	if err != nil {
		return nil, unreachable(err)
	}
	switch status := m.Header.Get("Status"); {
	case status == "404":
		return nil, errNotThere
	case status != "":
		return nil, unreachable(fmt.Errorf("%s %s", status, m.Header.Get("Description")))
	case m.Header.Get("Nats-Sequence") != strconv.FormatUint(number, 10):
		return nil, errNotThere
	}
	return m.Data, nil
}

// noMessage is the server's code for a message that it does not have, or cannot read.
const noMessage = 10037

// lookAgain is how long a reader waits before it believes that a commit is missing: a server that is
// stopping says so of commits that it has.
const lookAgain = 100 * time.Millisecond

// fetchSurely gets the frame of one commit from the stream's leader. A commit that it does not have is
// CORRUPT_LOG: who asks knows that it was there.
func (l *link) fetchSurely(ctx context.Context, number uint64) ([]byte, error) {
	bytes, err := l.fetchFromLeader(ctx, number)
	if !errors.Is(err, errNotThere) {
		return bytes, err
	}
	select {
	case <-time.After(lookAgain):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if _, err := l.js.Stream(ctx, l.o.streamName()); err != nil {
		return nil, unreachable(err)
	}
	if bytes, err = l.fetchFromLeader(ctx, number); errors.Is(err, errNotThere) {
		return nil, lost(number, "is missing")
	}
	return bytes, err
}

func (l *link) fetchFromLeader(ctx context.Context, number uint64) ([]byte, error) {
	if err := l.old.check(number, number); err != nil {
		return nil, err
	}
	query := append(strconv.AppendUint([]byte(`{"seq":`), number, 10), '}')
	m, err := l.request(ctx, "$JS.API.STREAM.MSG.GET."+l.o.streamName(), query)
	if err != nil {
		return nil, unreachable(err)
	}
	var got struct {
		Error *struct {
			Code        int    `json:"err_code"`
			Description string `json:"description"`
		} `json:"error"`
		Message struct {
			Seq  uint64 `json:"seq"`
			Data []byte `json:"data"`
		} `json:"message"`
	}
	if err := json.Unmarshal(m.Data, &got); err != nil {
		return nil, unreachable(err)
	}
	switch {
	case got.Error != nil && got.Error.Code == noMessage:
		return nil, errNotThere
	case got.Error != nil:
		return nil, unreachable(errors.New(got.Error.Description))
	case got.Message.Seq != number:
		return nil, errNotThere
	}
	return got.Message.Data, nil
}

// commit gives one commit of the log, from the cache if it is there. Damage fails the journal.
func (j *Journal) commit(ctx context.Context, number uint64) (*events.Commit, events.Hash, error) {
	if c, hash, ok := j.frames.get(number); ok {
		return c, hash, nil
	}
	c, hash, size, err := j.read(ctx, number)
	if err != nil {
		if parley.CodeOf(err) == parley.CorruptLog {
			j.fail(err)
		}
		return nil, events.Hash{}, err
	}
	j.frames.put(c, size, hash)
	return c, hash, nil
}

func (j *Journal) read(ctx context.Context, number uint64) (*events.Commit, events.Hash, int, error) {
	l := j.way()
	bytes, err := l.fetch(ctx, number)
	if errors.Is(err, errNotThere) {
		bytes, err = l.fetchSurely(ctx, number)
	}
	if err != nil {
		return nil, events.Hash{}, 0, err
	}
	j.garbage.took(len(bytes))
	c, hash, err := decode(number, bytes)
	return c, hash, len(bytes), err
}
