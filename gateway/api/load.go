package api

import (
	"sync/atomic"

	"parley"
)

// Load counts the requests of one connection, and their bytes.
type Load struct {
	calls, waits admission
	bytes        atomic.Int64
	room         int64 // for those
}

// NewLoad returns the load of a connection. It may have so many calls and waits under way, and so many bytes of them.
func NewLoad(calls, waits, room int64) *Load {
	return &Load{calls: admission{limit: calls}, waits: admission{limit: waits}, room: room}
}

// Calls returns how many calls are under way.
func (l *Load) Calls() int64 { return l.calls.now.Load() }

// Admit takes one of the connection's places for a request, which is there, and room for its bytes: of the
// connection's, and of an account's if there is one yet. It refuses with RATE_LIMITED.
func (l *Load) Admit(k Kind, a Account, size int) (leave func(), err error) {
	own := &l.calls
	if k == KindWaits {
		own = &l.waits
	}
	if err := own.enter(); err != nil {
		return nil, err
	}
	free, err := l.Keep(a, size)
	if err != nil {
		own.leave()
		return nil, err
	}
	return func() { free(); own.leave() }, nil
}

// Keep is Admit for a frame that is no request: it takes room only.
func (l *Load) Keep(a Account, size int) (leave func(), err error) {
	held := ChargeOf(a)
	leave = func() {
		held.Release()
		l.bytes.Add(-int64(size))
	}
	if l.bytes.Add(int64(size)) > l.room {
		err = parley.Refuse(parley.RateLimited, "the requests under way are over %d bytes", l.room).
			WithHint("send more when some have been answered")
	} else if a != nil && size > BodyFree {
		err = held.Add(int64(size))
	}
	if err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// admission counts the requests that one connection has under way.
type admission struct {
	limit int64
	now   atomic.Int64
}

// enter takes a place, or refuses with RATE_LIMITED. The caller leaves when the request has ended.
func (a *admission) enter() error {
	if a.now.Add(1) > a.limit {
		a.now.Add(-1)
		return parley.Refuse(parley.RateLimited, "the connection has %d requests under way already", a.limit).
			WithHint("send more when some have been answered")
	}
	return nil
}

func (a *admission) leave() { a.now.Add(-1) }
