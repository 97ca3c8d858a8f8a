package persistence

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"parley/events"
)

var errNotThere = errors.New("not there")

// fetch gets the frame of one commit, from whichever server is nearest.
func (l *link) fetch(ctx context.Context, number uint64) ([]byte, error) {
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

// fetchSurely gets the frame of one commit from the stream's leader. A commit that it does not have is
// CORRUPT_LOG: who asks knows that it was there.
func (l *link) fetchSurely(ctx context.Context, number uint64) ([]byte, error) {
	query := append(strconv.AppendUint([]byte(`{"seq":`), number, 10), '}')
	m, err := l.request(ctx, "$JS.API.STREAM.MSG.GET."+l.o.streamName(), query)
	if err != nil {
		return nil, unreachable(err)
	}
	var got struct {
		Error *struct {
			Code        int    `json:"code"`
			Description string `json:"description"`
		} `json:"error"`
		Message struct {
			Seq  uint64 `json:"seq"`
			Data string `json:"data"`
		} `json:"message"`
	}
	if err := json.Unmarshal(m.Data, &got); err != nil {
		return nil, unreachable(err)
	}
	if got.Error != nil && got.Error.Code != 404 {
		// A message whose checksum is wrong is a 500 with the store's words.
		return nil, lost(number, "cannot be read: %s", got.Error.Description)
	}
	if got.Error != nil || got.Message.Seq != number {
		return nil, lost(number, "is missing")
	}
	data, err := base64.StdEncoding.DecodeString(got.Message.Data)
	if err != nil {
		return nil, unreachable(err)
	}
	return data, nil
}

// commit gives one commit of the log, from the cache if it is there.
func (j *Journal) commit(ctx context.Context, number uint64) (*events.Commit, events.Hash, error) {
	if c, hash, ok := j.frames.get(number); ok {
		return c, hash, nil
	}
	l := j.way()
	bytes, err := l.fetch(ctx, number)
	if errors.Is(err, errNotThere) {
		bytes, err = l.fetchSurely(ctx, number)
	}
	if err != nil {
		return nil, events.Hash{}, err
	}
	c, hash, err := decode(number, bytes)
	if err != nil {
		return nil, events.Hash{}, err
	}
	j.frames.put(c, len(bytes), hash)
	return c, hash, nil
}
