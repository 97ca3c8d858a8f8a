package client

import (
	"bytes"
	"context"
	"errors"
	"net/http"

	"parley/gateway/mux"
)

// window is the number of items that the node may send ahead.
const window = 64

// stream is a follow on a connection.
type stream struct {
	link  *link
	p     *pending
	taken uint64 // items for which the node has no credit yet
}

// follow begins a follow. It returns nil if calls go by HTTP.
func (m *muxed) follow(ctx context.Context, kind mux.Kind, body []byte) (*stream, error) {
	p := newPending()
	p.items = make(chan []byte, window)
	l, err := m.send(ctx, mux.Frame{Kind: kind, Body: body, Credit: window}, p)
	if err != nil || l == nil {
		return nil, err
	}
	return &stream{link: l, p: p}, nil
}

// next blocks until there is an item and returns it as JSON. It returns a *lost if the connection has ended.
func (s *stream) next(ctx context.Context) ([]byte, error) {
	select {
	case item := <-s.p.items:
		return s.take(item), nil
	case <-s.p.first:
	case <-ctx.Done():
		return nil, &lost{sent: true, cause: ctx.Err()}
	}
	select {
	case item := <-s.p.items: // before the end
		return s.take(item), nil
	default:
	}
	if s.p.err == nil && s.p.answer.status != http.StatusOK {
		return nil, refusal(s.p.answer)
	}
	return nil, &lost{sent: true, cause: errLinkEnded}
}

// take returns an item, and gives the node credit for others.
func (s *stream) take(item []byte) []byte {
	if s.taken++; s.taken >= window/2 {
		s.link.allow(s.p, s.taken)
		s.taken = 0
	}
	return item
}

// close ends the follow.
func (s *stream) close() { s.link.forget(s.p) }

// allow gives the node credit for more items of a follow.
func (l *link) allow(p *pending, n uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls[p.id] == p && !l.ended {
		l.queue(mux.Frame{Kind: mux.Credit, ID: p.id, Credit: n})
	}
}

// take takes an item of a follow.
func (p *pending) take(f mux.Frame) error {
	text, err := mux.ToJSON(f.Body)
	if err != nil {
		return err
	}
	select {
	case p.items <- bytes.Clone(text):
		return nil
	default:
		return errors.New("the node sent an item that it had no credit for")
	}
}
