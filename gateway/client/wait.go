package client

import (
	"context"
	"time"

	"parley"
	"parley/gateway/api"
)

// Bounds of one waiting call. A longer wait is made of several.
const (
	turnTime = 25 * time.Second
	minWait  = 50 * time.Millisecond // what it takes to find out, also on a busy node
)

// Await waits until a form has ended, and gives its outcome: at once if it has. It goes on through restarts of the node,
// until ctx ends.
func (c *Client) Await(ctx context.Context, form ID) (Outcome, error) {
	for {
		o, err := c.wait(ctx, form, turnTime, time.Time{})
		if err != nil || o.Status != Open {
			return o, err
		}
	}
}

// AwaitWithin is Await for so long at most; 0 is to look whether the form has ended. If it has not, AwaitWithin refuses
// with TIMEOUT.
func (c *Client) AwaitWithin(ctx context.Context, form ID, within time.Duration) (Outcome, error) {
	deadline := time.Now().Add(within)
	for {
		o, err := c.wait(ctx, form, time.Until(deadline), deadline)
		if err != nil || o.Status != Open {
			return o, err
		}
		if time.Until(deadline) <= 0 {
			return Outcome{}, parley.Refuse(parley.Timeout, "%s has no outcome after %s", form, within)
		}
	}
}

// wait is one waiting call, which is not made again after a time, if that is not zero.
func (c *Client) wait(ctx context.Context, form ID, long time.Duration, until time.Time) (o Outcome, err error) {
	ms := turn(ctx, long)
	err = c.callUntil(ctx, until, "await", api.AwaitRequest{FormRef: refTo(form), WaitMs: &ms}, &o)
	return o, err
}

// turn gives how long one waiting call may take, in milliseconds: not longer than ctx does.
func turn(ctx context.Context, long time.Duration) int64 {
	if deadline, ok := ctx.Deadline(); ok {
		long = min(long, time.Until(deadline))
	}
	return max(min(long, turnTime), minWait).Milliseconds()
}
