package persistence

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A server of a cluster that hangs takes requests as before, and answers none. Nothing tells its clients: the connection
// is up, and other servers pass requests on to it for minutes. So each request to an external server is bounded, and made
// again. The server of the connection may pass on a request for a commit, though the stream has another leader. Such a
// request is made of the leader next, and so are those after it for a while:
//
//	direct get of 17    passed on to the server that hangs
//	get of 17           the leader answers
//	get of 18, 19 …     the leader answers at once
const (
	attemptTimeout = time.Second            // for one request
	soon           = 250 * time.Millisecond // for the first request for a commit
	leaderFirst    = 5 * time.Second        // for how long the leader is asked first
	remoteAtOnce   = 32                     // commits that are asked for together
)

// request sends a request that changes nothing, and blocks for the answer until ctx ends. An external server that does not
// answer is asked again: by then the connection may lead to another one, or the servers have another leader.
func (l *link) request(ctx context.Context, subject string, body []byte) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	for l.server == nil {
		attempt, done := context.WithTimeout(ctx, attemptTimeout)
		m, err := l.conn.RequestWithContext(attempt, subject, body)
		done()
		if err == nil || ctx.Err() != nil || !isUnanswered(err) {
			return m, err
		}
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return nil, err
		}
	}
	return l.conn.RequestWithContext(ctx, subject, body)
}

// answers reports whether the server at the other end of the connection answers.
func answers(ctx context.Context, l *link) bool {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	return l.conn.FlushWithContext(ctx) == nil
}

// fetchFromAny returns the frame of a commit from the nearest external server, or from the leader. It blocks for
// answerTimeout at most.
func fetchFromAny(ctx context.Context, l *link, number uint64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	fromLeader, within := time.Now().UnixNano() < l.leaderUntil.Load(), soon
	for first := true; ; first = false {
		attempt, done := context.WithTimeout(ctx, within)
		get := l.fetchNearest
		if fromLeader {
			get = l.fetchFromLeader
		}
		bytes, err := get(attempt, number)
		done()
		switch {
		case err == nil && !first && fromLeader:
			l.leaderUntil.Store(time.Now().Add(leaderFirst).UnixNano())
			return bytes, nil
		case err == nil || errors.Is(err, errNotThere) && fromLeader || ctx.Err() != nil:
			return bytes, err
		}
		if attempt.Err() == nil && !errors.Is(err, errNotThere) { // it failed at once
			select {
			case <-time.After(lookAgain):
			case <-ctx.Done():
			}
		}
		fromLeader, within = !fromLeader, attemptTimeout
	}
}

// eachRemote is link.each for an external server. It makes no consumer: the servers that make and serve one may hang. The
// server of the connection has every commit, or one of the others has.
func eachRemote(ctx context.Context, l *link, first, last uint64, fn func(number uint64, bytes []byte) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		bytes []byte
		err   error
	}
	asked := make(chan chan answer, remoteAtOnce)
	go func() {
		defer close(asked)
		for number := first; number <= last; number++ {
			one := make(chan answer, 1)
			select {
			case asked <- one:
			case <-ctx.Done():
				return
			}
			go func() {
				bytes, err := l.fetch(ctx, number)
				if errors.Is(err, errNotThere) {
					bytes, err = l.fetchSurely(ctx, number)
				}
				one <- answer{bytes, err}
			}()
		}
	}()
	next := first
	for one := range asked {
		got := <-one
		if got.err != nil {
			return got.err
		}
		if err := fn(next, got.bytes); err != nil {
			return err
		}
		next++
	}
	if next <= last {
		return context.Cause(ctx)
	}
	return nil
}

// getRemote returns an object of an external server. It fails when nothing of it comes for snapshotTimeout. The client's
// reader heeds no end of its context while it waits.
func getRemote(ctx context.Context, bucket jetstream.ObjectStore, name string) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		bytes []byte
		err   error
	}
	done, came := make(chan result, 1), make(chan struct{}, 1)
	go func() { // ends within the context's own time
		o, err := bucket.Get(ctx, name)
		var b bytes.Buffer
		for err == nil {
			_, err = io.CopyN(&b, o, pieceSize)
			signal(came)
		}
		if errors.Is(err, io.EOF) {
			err = o.Close()
		}
		done <- result{b.Bytes(), err}
	}()
	for {
		select {
		case got := <-done:
			return got.bytes, got.err
		case <-came:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(snapshotTimeout):
			return nil, context.DeadlineExceeded
		}
	}
}

// pieceSize is that of the pieces of an object, in bytes.
const pieceSize = 128 << 10

// silence spares an external server that does not answer reads of snapshots. Each would wait as long, and the log has all
// that they have.
type silence struct {
	until    atomic.Int64 // when it is asked again, in Unix nanoseconds
	doubtful atomic.Int64 // until when it is given less time
}

const (
	snapshotTimeout = 2 * time.Second
	doubtfulTimeout = 400 * time.Millisecond // when another of its streams has just been without a leader
	snapshotPause   = 5 * time.Second
	doubtfulTime    = 15 * time.Second
)

// doubt gives the server less time for a while, since mailboxes are read that clients wait for.
func (s *silence) doubt() { s.doubtful.Store(time.Now().Add(doubtfulTime).UnixNano()) }

// ErrSilent is the error of a read that an external server does not answer, or of which it is spared for a while.
var ErrSilent = errors.New("the server gives no snapshots now")

// ask reads from the server. An embedded one is always asked.
func (s *silence) ask(ctx context.Context, o *Options, read func(context.Context) ([]byte, error)) ([]byte, error) {
	if o.URL == "" {
		return read(ctx)
	}
	before, now, within := s.until.Load(), time.Now().UnixNano(), snapshotTimeout
	if now < before {
		return nil, ErrSilent
	}
	if now < s.doubtful.Load() {
		within = doubtfulTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	b, err := read(ctx)
	if !isUnanswered(err) {
		return b, err
	}
	if s.until.CompareAndSwap(before, time.Now().Add(snapshotPause).UnixNano()) && now-before > int64(time.Minute) { // else it was said
		o.Log.Warn("the server gives no snapshots; for a while mailboxes are read from the log", "for", snapshotPause, "error", err)
	}
	return nil, ErrSilent
}
