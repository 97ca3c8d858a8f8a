package persistence

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// stall is how long a reader waits for a message before it asks for it by number.
const stall = 500 * time.Millisecond

// each calls fn with the frames of commits first to last, in order, as they come from the server, and
// fails at the first that does not come. fn must not keep the bytes. fn's error ends it.
func (l *link) each(ctx context.Context, first, last uint64, fn func(number uint64, bytes []byte) error) error {
	if first > last {
		return nil
	}
	if err := l.old.check(first, last); err != nil {
		return err
	}
	var at atomic.Uint64
	next := first
	at.Store(first)
	done := make(chan error, 1) // what fn or the order said, or nil at the end
	ended := false
	end := func(err error) {
		ended = true
		done <- err
	}
	sub, err := l.legacy.Subscribe(l.o.subject(), func(m *nats.Msg) { // one goroutine of the client's
		if ended {
			return
		}
		in, err := m.Metadata()
		if err != nil {
			end(fmt.Errorf("read commit %d: %w", next, err))
			return
		}
		if in.Sequence.Stream != next {
			end(lost(next, "is missing"))
			return
		}
		if err := fn(next, m.Data); err != nil {
			end(err)
			return
		}
		if next++; next > last {
			end(nil)
			return
		}
		at.Store(next)
	}, nats.OrderedConsumer(), nats.BindStream(l.o.streamName()), nats.StartSequence(first), nats.Context(ctx))
	if err != nil {
		return unreachable(err)
	}
	err = l.watch(ctx, &at, done)
	return errors.Join(err, leave(sub))
}

// watch waits for a reader's end. While it stands still, the commit that it waits for is asked for by
// number: the server passes over damaged messages without a word.
func (l *link) watch(ctx context.Context, at *atomic.Uint64, done <-chan error) error {
	ticker := time.NewTicker(stall)
	defer ticker.Stop()
	for seen := uint64(0); ; {
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
			now := at.Load()
			if now == seen {
				if _, err := l.fetchSurely(ctx, now); err != nil {
					return err
				}
			}
			seen = now
		}
	}
}

func leave(sub *nats.Subscription) error {
	if err := sub.Unsubscribe(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) && !errors.Is(err, nats.ErrBadSubscription) {
		return unreachable(err)
	}
	return nil
}
