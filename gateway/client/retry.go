package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"parley"
)

// lost is the error of a call without a response.
type lost struct {
	sent  bool // the node may have received the call
	cause error
}

func (e *lost) Error() string { return e.cause.Error() }
func (e *lost) Unwrap() error { return e.cause }

// refusal returns the error in a response. A response without an error of the node is from a proxy.
func refusal(a answer) error {
	var f struct {
		Error *parley.Error `json:"error"`
	}
	err := json.Unmarshal(a.body, &f)
	switch {
	case err == nil && f.Error != nil && f.Error.Code == parley.NotRunning: // the node is about to stop
		return &lost{sent: true, cause: f.Error}
	case err == nil && f.Error != nil:
		return f.Error
	case a.status == http.StatusBadGateway, a.status == http.StatusServiceUnavailable, a.status == http.StatusGatewayTimeout:
		return &lost{sent: true, cause: fmt.Errorf("HTTP status %d", a.status)}
	}
	return parley.Refuse(parley.Internal, "the node answered with HTTP status %d and no error", a.status)
}

// unsent returns the error of a call that could not be sent.
func unsent(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return parley.Refuse(parley.NotPermitted, "the node's socket may not be opened by this user").
			WithHint("run this as the user that runs the node, or name that user's --state; ls -l on the state folder shows whose it is")
	}
	if e, ok := errors.AsType[*parley.Error](err); ok {
		return e
	}
	return &lost{cause: err}
}

// again decides whether a call is repeated, and pauses before that.
type again struct {
	client    *Client
	operation string
	body      []byte
	keyed     bool                                                                     // a repetition has no further effect
	until     time.Time                                                                // no repetition later; zero: until the context ends
	exchange  func(ctx context.Context, operation string, body []byte) (answer, error) // nil: the transport's
	pause     time.Duration
}

func (a *again) harmless() bool { return a.keyed || repeats(a.operation, a.body) }

// Pauses between attempts. Each is up to twice as long as the one before.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// after returns nil if the call is to be repeated now, and otherwise the error to return.
func (a *again) after(ctx context.Context, err error) error {
	l, isLost := errors.AsType[*lost](err)
	if !isLost || ctx.Err() != nil {
		return a.over(ctx, err)
	}
	c := a.client
	if l.sent {
		c.saw()
	}
	absence := time.Since(time.Unix(0, c.seen.Load()))
	switch patience := c.options.Patience; {
	case l.sent && !a.harmless(), patience < 0, c.seen.Load() == 0, patience > 0 && absence > patience:
		return a.over(ctx, err)
	case !a.until.IsZero() && !time.Now().Before(a.until):
		return parley.Refuse(parley.Timeout, "the time for %s has passed, and the node is away", a.operation)
	}
	a.pause = min(max(2*a.pause, firstPause), lastPause)
	timer := time.NewTimer(a.pause/2 + rand.N(a.pause/2)) // spreads the attempts of several clients
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return a.over(ctx, err)
	}
}

// over returns the error for the caller of a call that is not repeated.
func (a *again) over(ctx context.Context, err error) error {
	l, isLost := errors.AsType[*lost](err)
	if !isLost {
		return err
	}
	refused, isRefused := errors.AsType[*parley.Error](l.cause)
	switch {
	case ctx.Err() != nil:
		return a.ended(ctx)
	case isRefused:
		return refused
	case !l.sent:
		return &absent{parley.Refuse(parley.NotRunning, "%s", a.client.transport.absence()).WithHint("start one with: parley start")}
	case a.harmless():
		return parley.Refuse(parley.NotRunning, "the node went away before it answered %s", a.operation).
			WithHint("parley status --wait 15s says when it is back")
	}
	return parley.Refuse(parley.NotRunning, "the node went away before it answered; whether %s was done is not known", a.operation).
		WithHint("parley status --wait 15s says when it is back")
}

// ended returns the error for an ended context: that of the node, which wraps the context's.
func (a *again) ended(ctx context.Context) error {
	e := parley.Refuse(parley.Timeout, "%s ended before the node answered", a.operation)
	if !a.harmless() {
		e = e.WithHint("what was asked for may still happen")
	}
	return &ended{e, ctx.Err()}
}

// absent is the error of a call that reached no node: nothing of it has been done.
type absent struct{ refused *parley.Error }

func (e *absent) Error() string { return e.refused.Error() }
func (e *absent) Unwrap() error { return e.refused }

// IsAbsent reports whether an error says that a call reached no node. Nothing of it has been done then.
func IsAbsent(err error) bool {
	_, is := errors.AsType[*absent](err)
	return is
}

// ended is an error of the node that also wraps its context's error.
type ended struct {
	refused *parley.Error
	cause   error
}

func (e *ended) Error() string   { return e.refused.Error() }
func (e *ended) Unwrap() []error { return []error{e.refused, e.cause} }

// isDial reports whether err occurred while a connection was opened.
func isDial(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial" || errors.Is(err, fs.ErrNotExist)
}
