package client

import (
	"cmp"
	"context"
	"time"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
)

// Bounds of one waiting call. A longer wait is made of several.
const (
	turnTime = 25 * time.Second
	minWait  = 50 * time.Millisecond // what it takes to find out, also on a busy node
)

// Await blocks until a form has ended and returns its outcome. The wait goes on through restarts of the node until ctx ends.
func (c *Client) Await(ctx context.Context, form ID) (Outcome, error) {
	return await(ctx, c, api.AwaitRequest{FormRef: refTo(form)})
}

// State is how far a message has come with its reader: delivered, offered, shown or handled.
type State = events.MessageState

// AwaitState blocks until a message that the agent sent has come to a state: at once if it has come further. The status of the
// outcome is the state that it is in, or Declined if its recipient refused it. It goes on as Await does. Unless within is 0, it
// refuses with TIMEOUT if the message has not come so far within that time.
func (c *Client) AwaitState(ctx context.Context, message ID, until State, within time.Duration) (Outcome, error) {
	r := api.AwaitRequest{FormRef: refTo(message), Until: until}
	if within > 0 {
		return awaitWithin(ctx, c, r, within)
	}
	return await(ctx, c, r)
}

// AwaitStateOfAll is Client.AwaitState for a message to groups: it waits for all members that the message reached, whoever has replied for
// the group.
func AwaitStateOfAll(ctx context.Context, c *Client, message ID, until State, within time.Duration) (Outcome, error) {
	r := api.AwaitRequest{FormRef: refTo(message), Until: until, All: true}
	if within > 0 {
		return awaitWithin(ctx, c, r, within)
	}
	return await(ctx, c, r)
}

// AwaitQuestion is Client.Await, or with a limit AwaitWithin, for a form that the client's agent asked. It ends also when one who may
// answer the form has asked back: with the status asked, the words as Note, and the number of the message, which is higher than
// after. A reply to that message goes to who asked.
func AwaitQuestion(ctx context.Context, c *Client, form ID, after uint64, within time.Duration) (Outcome, error) {
	r := api.AwaitRequest{FormRef: refTo(form), Until: api.UntilAsked, After: after}
	if within > 0 {
		return awaitWithin(ctx, c, r, within)
	}
	return await(ctx, c, r)
}

func await(ctx context.Context, c *Client, r api.AwaitRequest) (Outcome, error) {
	for {
		o, err := waitOnce(ctx, c, r, turnTime, time.Time{})
		if err != nil || o.Status != Open {
			return o, err
		}
	}
}

// AwaitWithin is Await with a limit; with 0 it looks once. It refuses with TIMEOUT if the form has not ended within the limit.
func (c *Client) AwaitWithin(ctx context.Context, form ID, within time.Duration) (Outcome, error) {
	return awaitWithin(ctx, c, api.AwaitRequest{FormRef: refTo(form)}, within)
}

func awaitWithin(ctx context.Context, c *Client, r api.AwaitRequest, within time.Duration) (Outcome, error) {
	deadline := time.Now().Add(within)
	for {
		o, err := waitOnce(ctx, c, r, time.Until(deadline), deadline)
		if err != nil || o.Status != Open {
			return o, err
		}
		if time.Until(deadline) <= 0 {
			if r.Until != "" && r.Until != api.UntilAsked {
				return Outcome{}, parley.Refuse(parley.Timeout, "%s is not %s after %s", cmp.Or(string(r.ID), string(r.Number)), r.Until, capabilities.Span(within))
			}
			return Outcome{}, parley.Refuse(parley.Timeout, "%s has no outcome after %s", cmp.Or(string(r.ID), string(r.Number)), capabilities.Span(within))
		}
	}
}

// waitOnce makes one waiting call. It does not repeat the call after a time, unless that is zero.
func waitOnce(ctx context.Context, c *Client, r api.AwaitRequest, long time.Duration, until time.Time) (o Outcome, err error) {
	ms := turn(ctx, long)
	r.WaitMs = &ms
	err = c.callUntil(ctx, until, "await", r, &o)
	return o, err
}

// turn returns the longest duration of one waiting call in milliseconds. It does not exceed the deadline of ctx.
func turn(ctx context.Context, long time.Duration) int64 {
	if deadline, ok := ctx.Deadline(); ok {
		long = min(long, time.Until(deadline))
	}
	return max(min(long, turnTime), minWait).Milliseconds()
}
