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

// Await blocks until a form has ended and returns its outcome. The wait goes on through restarts of the node until ctx ends.
func (c *Client) Await(ctx context.Context, form ID) (Outcome, error) {
	for {
		o, err := c.wait(ctx, form, turnTime, time.Time{})
		if err != nil || o.Status != Open {
			return o, err
		}
	}
}

// AwaitWithin is Await with a limit; with 0 it looks once. It refuses with TIMEOUT if the form has not ended within the limit.
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

// wait makes one waiting call. It does not repeat the call after a time, unless that is zero.
func (c *Client) wait(ctx context.Context, form ID, long time.Duration, until time.Time) (o Outcome, err error) {
	ms := turn(ctx, long)
	err = c.callUntil(ctx, until, "await", api.AwaitRequest{FormRef: refTo(form), WaitMs: &ms}, &o)
	return o, err
}

// turn returns the longest duration of one waiting call in milliseconds. It does not exceed the deadline of ctx.
func turn(ctx context.Context, long time.Duration) int64 {
	if deadline, ok := ctx.Deadline(); ok {
		long = min(long, time.Until(deadline))
	}
	return max(min(long, turnTime), minWait).Milliseconds()
}
