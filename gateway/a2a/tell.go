package a2a

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"parley"
	"parley/capabilities"
	"parley/gateway/bridge"
	"parley/gateway/exchange"
)

// pause is the time after which something that failed on the node itself is tried again.
const pause = 5 * time.Second

// tell sends each change of a task to a receiver until ctx ends. It reports whether the configuration has ended: the
// receiver has the end of the task or refuses more, or the token has ended.
func (ps *pushes) tell(ctx context.Context, u *push) (ended bool) {
	for ctx.Err() == nil {
		err := parley.Survive(func() error { return ps.follow(ctx, u) })
		switch {
		case err == nil:
			return ctx.Err() == nil
		case ctx.Err() != nil:
			return false
		case isEnd(err):
			ps.Log.Warn("a push configuration has ended", "agent", u.By.Agent.String(), "task", string(u.Config.TaskID), "error", err)
			return true
		}
		ps.Log.Warn("a task with a push configuration cannot be followed", "task", string(u.Config.TaskID), "error", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
	return false
}

// isEnd reports whether an error ends a configuration for good.
func isEnd(err error) bool {
	switch parley.CodeOf(err) {
	case parley.Unauthenticated, parley.NotPermitted, parley.NoSuchMessage, parley.NotAForm, parley.Archived, parley.AgentArchived:
		return true
	}
	return errors.Is(err, bridge.ErrGone)
}

// follow tells a receiver of each change of a task. It returns nil once the receiver was told of the end, or ctx has ended.
func (ps *pushes) follow(ctx context.Context, u *push) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	c, err := ps.Resume(ctx, u.By)
	if err != nil {
		return err
	}
	changed, failed := make(chan struct{}, 1), make(chan error, 1)
	watched := make(chan struct{})
	defer func() { stop(); <-watched }()
	go func() {
		defer close(watched)
		err := parley.Survive(func() error {
			for _, err := range exchange.Follow(ctx, c, string(u.Config.TaskID)) {
				if err != nil {
					return err
				}
				select {
				case changed <- struct{}{}:
				default:
				}
			}
			return nil
		})
		if err != nil {
			failed <- err
		}
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-changed:
		case <-timer.C:
		case err := <-failed:
			return err
		case <-ctx.Done():
			return nil
		}
		wake, err := ps.look(ctx, c, u)
		if err != nil || wake < 0 {
			return err
		}
		timer.Reset(time.Hour)
		if wake > 0 {
			timer.Reset(max(wake.Std().Sub(ps.Now()), time.Millisecond))
		}
	}
}

// look sends the present state of a task, unless the receiver has it. It returns the time of the next look, or 0 for
// the next change. A negative time says that the receiver has the end.
func (ps *pushes) look(ctx context.Context, c Client, u *push) (wake capabilities.Time, err error) {
	e, err := exchange.Find(ctx, c, string(u.Config.TaskID)) // this asks for the token again
	if err != nil {
		return 0, err
	}
	mark := e.Mark()
	if mark != u.Told {
		wake, err = ps.try(ctx, u, e, mark)
	}
	if err == nil && u.Told == mark && e.Ended() {
		return -1, nil
	}
	return wake, err
}

// try sends the state of a task if a try is due. It returns when the next one is due. The try is on disk before it is
// made.
func (ps *pushes) try(ctx context.Context, u *push, e *exchange.Exchange, mark string) (capabilities.Time, error) {
	now := capabilities.At(ps.Now())
	if mark != u.Mark {
		u.Mark, u.Schedule = mark, bridge.Schedule{Since: now}
	}
	key := u.key()
	due, more := u.Due(key, now)
	switch {
	case !more:
		ps.Log.Warn("a receiver has not taken a state of a task, and is not told of it again", "task", e.ID())
		u.Told = mark
		return 0, u.keep()
	case due != 0:
		return due, nil
	}
	u.Begin()
	if err := u.keep(); err != nil {
		return 0, err
	}
	err := ps.post(ctx, u, e)
	switch {
	case err == nil:
		u.Told = mark
		return 0, u.keep()
	case errors.Is(err, bridge.ErrGone) || ctx.Err() != nil:
		return 0, err
	}
	ps.Log.Warn("a receiver has not taken a state of a task", "task", e.ID(), "try", u.Tries, "error", err)
	return u.After(key, capabilities.At(ps.Now())), nil
}

// key returns a text that is the same for all tries to tell the same state, and no other.
func (u *push) key() string {
	sum := sha256.Sum256([]byte(u.path + "\n" + u.Mark + "\n" + u.Since.String()))
	return hex.EncodeToString(sum[:16])
}

// mediaType is the media type of a pushed task.
const mediaType = "application/a2a+json"

// post sends a task as it is to the receiver.
func (ps *pushes) post(ctx context.Context, u *push, e *exchange.Exchange) error {
	t := taskOf(e, nil)
	t.History = nil
	body, err := json.Marshal(a2a.StreamResponse{Event: t})
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, u.Config.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", mediaType)
	r.Header.Set("Webhook-Id", u.key())
	r.Header.Set(a2a.SvcParamVersion, string(a2a.Version))
	if u.Config.Token != "" { // libraries differ in the name
		r.Header.Set("A2A-Notification-Token", u.Config.Token)
		r.Header.Set("X-A2A-Notification-Token", u.Config.Token)
	}
	if a := u.Config.Auth; a != nil && a.Credentials != "" {
		r.Header.Set("Authorization", a.Scheme+" "+a.Credentials)
	}
	return bridge.Post(ps.client, r)
}
