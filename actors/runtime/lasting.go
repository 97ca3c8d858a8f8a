package runtime

import (
	"context"
	"time"
)

// lasting gives a context that outlasts another one by some time, and what ends it.
func lasting(ctx context.Context, more time.Duration) (context.Context, func()) {
	longer, end := context.WithCancel(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(ctx, func() {
		defer end()
		select {
		case <-time.After(more):
		case <-longer.Done():
		}
	})
	return longer, func() {
		unhook()
		end()
	}
}

// withCause gives why a request failed, which is its context's cause if that has ended.
func withCause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
