package backend

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"parley"
	"parley/capabilities"
	"parley/gateway/api"
)

// uses holds what lasts as long as a credential is good: WebSocket sessions, streams and calls that wait. One goroutine
// checks all of them whenever a token was revoked. From time to time it looks for those that have expired.
type uses struct {
	mu   sync.Mutex
	open map[*use]bool
	look chan struct{} // has Watch check all uses now; has room for one
}

// use is one use of a token.
type use struct {
	of  *principal
	end func()
}

// WhileGood implements api.Backend.
func (b *Backend) WhileGood(p api.Principal, end func()) (stop func()) {
	own := p.(*principal)
	if own.local {
		return func() {}
	}
	u := &use{own, end}
	b.uses.mu.Lock()
	b.uses.open[u] = true
	b.uses.mu.Unlock()
	if own.epoch != b.node.Credentials().Epoch() { // a token was revoked before this use was here to be ended
		select {
		case b.uses.look <- struct{}{}:
		default:
		}
	}
	return func() {
		b.uses.mu.Lock()
		delete(b.uses.open, u)
		b.uses.mu.Unlock()
	}
}

// principals returns the principals of all uses by token.
func (u *uses) principals() map[capabilities.ID]*principal {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := map[capabilities.ID]*principal{}
	for one := range u.open {
		all[one.of.token.ID] = one.of
	}
	return all
}

// end ends the uses of a token.
func (u *uses) end(token capabilities.ID) {
	u.mu.Lock()
	var ends []func()
	for one := range u.open {
		if one.of.token.ID == token {
			ends = append(ends, one.end)
			delete(u.open, one)
		}
	}
	u.mu.Unlock()
	for _, end := range ends {
		end()
	}
}

// Watch ends the uses of tokens and sessions that have ended, until ctx ends. Its checks count as use of a session, so that
// a session with an open page does not expire.
func (b *Backend) Watch(ctx context.Context) {
	revoked := make(chan struct{}, 1)
	defer b.node.Credentials().Watch(revoked)()
	tick := time.NewTicker(b.look)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-revoked:
		case <-b.uses.look:
		case <-tick.C:
		}
		for token, p := range b.uses.principals() {
			if b.Check(ctx, p) != nil {
				b.uses.end(token)
			}
		}
	}
}

// InUse returns the number of uses.
func (b *Backend) InUse() int {
	b.uses.mu.Lock()
	defer b.uses.mu.Unlock()
	return len(b.uses.open)
}

// Check implements api.Backend. It asks the token's mailbox only if a token may have ended since it last did. It logs an
// error of the node.
func (b *Backend) Check(ctx context.Context, p api.Principal) error {
	own := p.(*principal)
	if own.local || b.node.Credentials().IsGood(&own.token, own.checked.Load()) {
		return nil
	}
	epoch := b.node.Credentials().Epoch()
	err := b.node.Credentials().Keep(ctx, own.token)
	if err == nil {
		own.checked.Store(epoch)
	}
	if parley.CodeOf(err) == parley.Unauthenticated {
		return err
	}
	if err != nil && parley.CodeOf(err) == parley.Internal && !api.IsContextEnd(err) {
		b.log.LogAttrs(ctx, slog.LevelError, "operation failed", slog.String("operation", "look at a token"), slog.Any("error", err))
	}
	return nil
}
