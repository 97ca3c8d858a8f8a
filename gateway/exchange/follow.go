package exchange

import (
	"context"
	"iter"
	"time"

	"parley/actors/view"
	"parley/gateway/api"
)

// step is the longest time of one wait for changes.
const step = 25 * time.Second

// Follow returns the states of an exchange: as it is now, and after each change, until it has ended or ctx ends. An error
// is the last item. The end of ctx is no error.
func Follow(ctx context.Context, c api.Client, id string) iter.Seq2[*Exchange, error] {
	return func(yield func(*Exchange, error) bool) {
		now, err := api.ListMessages.Do(ctx, c, api.ListMessagesRequest{MessageFilter: view.MessageFilter{All: true}, Last: 1})
		var last *Exchange
		for cursor := now.Cursor; err == nil; {
			var e *Exchange
			if e, err = Find(ctx, c, id); err != nil {
				break
			}
			if last == nil || !e.IsSame(last) {
				if last = e; !yield(e, nil) {
					return
				}
			}
			if e.Ended() {
				return
			}
			cursor, err = awaitChange(ctx, c, cursor)
		}
		if ctx.Err() == nil {
			yield(nil, err)
		}
	}
}

// awaitChange blocks until messages have changed after a cursor, or for one step. It returns the cursor after them.
func awaitChange(ctx context.Context, c api.Client, cursor uint64) (uint64, error) {
	ms := step.Milliseconds()
	request := api.FollowMessagesRequest{MessageFilter: view.MessageFilter{All: true}, Cursor: cursor, WaitMs: &ms}
	in, err := api.FollowMessages.Do(ctx, c, request)
	return in.Cursor, err
}

// Await returns an exchange once it needs the caller or has ended, or as it is after a time.
func Await(ctx context.Context, c api.Client, id string, longest time.Duration) (*Exchange, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	var last *Exchange
	for e, err := range Follow(ctx, c, id) {
		if err != nil {
			return nil, err
		}
		last = e
		if e.Question != nil || e.Approval != nil {
			break
		}
	}
	if last == nil {
		return nil, ctx.Err()
	}
	return last, nil
}
