package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"parley"
	"parley/actors"
)

// patience is how long a wait outlasts its node: long enough for a restart.
const patience = 15 * time.Second

// Waiting says how to wait.
type Waiting struct {
	Timeout time.Duration // 0: without limit
	Known   bool          // the node was there a moment ago: an absence is a restart
}

// Await waits until a form has ended and gives its outcome, as JSON. It goes on through restarts of the
// node. When the timeout passes it refuses with TIMEOUT.
func (c *Client) Await(ctx context.Context, as Acting, subject Subject, w Waiting) (json.RawMessage, error) {
	turns := newTurns(w)
	for {
		waitMs, err := turns.next()
		if err != nil {
			return nil, err
		}
		var outcome json.RawMessage
		err = c.call(ctx, "await", AwaitRequest{Acting: as, Subject: subject, WaitMs: &waitMs}, &outcome)
		if err == nil {
			var state struct {
				Status actors.Status `json:"status"`
			}
			if err := json.Unmarshal(outcome, &state); err != nil {
				return nil, err
			}
			if state.Status != actors.StatusOpen {
				return outcome, nil
			}
		}
		if err := turns.took(ctx, err); err != nil {
			return nil, err
		}
	}
}

// Page is what list_messages and follow_messages answer, with the messages as they are.
type Page struct {
	Messages []json.RawMessage `json:"messages"`
	Cursor   uint64            `json:"cursor"`
	Next     uint64            `json:"next"`
}

// List gives all messages of a view, page by page, to each, and the cursor from which to follow them.
func (c *Client) List(ctx context.Context, as Acting, v actors.View, each func(json.RawMessage) error) (uint64, error) {
	var cursor uint64
	for r := (ListMessagesRequest{Acting: as, View: v}); ; {
		var page Page
		if err := c.Call(ctx, "list_messages", r, &page); err != nil {
			return 0, err
		}
		if r.First == 0 {
			cursor = page.Cursor // what changes while the others are read is shown again
		}
		for _, m := range page.Messages {
			if err := each(m); err != nil {
				return 0, err
			}
		}
		if r.First = page.Next; page.Next == 0 {
			return cursor, nil
		}
	}
}

// Follow gives what changes after the cursor to each, until ctx ends or each fails. It goes on through
// restarts of the node.
func (c *Client) Follow(ctx context.Context, as Acting, v actors.View, cursor uint64, each func(json.RawMessage) error) error {
	turns := newTurns(Waiting{Known: true})
	for {
		waitMs, err := turns.next()
		if err != nil {
			return err
		}
		var page Page
		err = c.call(ctx, "follow_messages", FollowMessagesRequest{Acting: as, View: v, Cursor: cursor, WaitMs: &waitMs}, &page)
		if err := turns.took(ctx, err); err != nil {
			return err
		}
		if err != nil {
			continue
		}
		for _, m := range page.Messages {
			if err := each(m); err != nil {
				return err
			}
		}
		cursor = page.Cursor
	}
}

// turns are the calls of which a long wait is made.
type turns struct {
	deadline time.Time // zero: none
	seen     time.Time // when the node was last there; zero: never
}

func newTurns(w Waiting) *turns {
	t := &turns{}
	if w.Timeout > 0 {
		t.deadline = time.Now().Add(w.Timeout)
	}
	if w.Known {
		t.seen = time.Now()
	}
	return t
}

// next gives how long the next call may wait, or TIMEOUT.
func (t *turns) next() (int64, error) {
	if t.deadline.IsZero() {
		return defaultWait.Milliseconds(), nil
	}
	left := time.Until(t.deadline)
	if left <= 0 && !t.seen.IsZero() {
		return 0, parley.Refuse(parley.Timeout, "the wait's timeout passed")
	}
	return min(max(left, minWait), defaultWait).Milliseconds(), nil
}

// took notes how a call ended and says whether the wait is over by it. While the node is away, it
// pauses.
func (t *turns) took(ctx context.Context, err error) error {
	_, wasCut := errors.AsType[*cutOff](err)
	switch {
	case err == nil || wasCut:
		t.seen = time.Now()
	case parley.CodeOf(err) != parley.NotRunning || t.seen.IsZero():
		return err
	}
	if err == nil {
		return nil
	}
	if !wasCut && time.Since(t.seen) > patience {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(100 * time.Millisecond):
		return nil
	}
}
