package gateway

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"parley/gateway/api"
)

// charge is what one call has been charged of an account's memory.
type charge struct {
	account *account
	bytes   int64
}

// add charges n bytes more. It refuses with RATE_LIMITED.
func (c *charge) add(n int64) error {
	if err := c.account.take(api.KindMemory, n); err != nil {
		return err
	}
	c.bytes += n
	return nil
}

// release gives back all that was charged.
func (c *charge) release() {
	if c.bytes > 0 {
		c.account.give(api.KindMemory, c.bytes)
		c.bytes = 0
	}
}

// produce performs an operation and has encode write its response. encode returns the size of that. What is large is
// charged to the account until the caller releases it. It takes a place only now, when the whole request is there.
func (s *Server) produce(ctx context.Context, held *charge, o operation, r request, encode func(resp any) (int, error)) error {
	a := held.account
	if err := a.take(o.kind(), 1); err != nil {
		return err
	}
	defer a.give(o.kind(), 1)
	if o.Lists && !o.Waits {
		if err := a.build(ctx); err != nil {
			return err
		}
		defer a.built()
	}
	resp, err := s.carryOut(ctx, o, r)
	if err != nil {
		return err
	}
	if o.Lists && o.Waits {
		if err := a.buildReady(ctx); err != nil {
			return err
		}
		defer a.built()
	}
	size, err := encode(resp)
	if err != nil {
		return fmt.Errorf("encode the response: %w", err)
	}
	if size <= pieceSize {
		return nil
	}
	if o.Scope == api.ScopeRead { // it can be asked for again
		return held.add(int64(size))
	}
	a.force(api.KindMemory, int64(size))
	held.bytes += int64(size)
	return nil
}

// pieceSize bounds how much of a large response is written at once. What is larger is charged to its account.
const pieceSize = 64 << 10

// send writes a body that is whole. A reader that takes none of it for some time is cut off.
func (s *Server) send(w http.ResponseWriter, body []byte) {
	if len(body) > pieceSize {
		rc := http.NewResponseController(w)
		for ; len(body) > pieceSize; body = body[pieceSize:] {
			if rc.SetWriteDeadline(time.Now().Add(s.slowest)) != nil {
				break
			}
			if _, err := w.Write(body[:pieceSize]); err != nil {
				return
			}
		}
		_ = rc.SetWriteDeadline(time.Now().Add(s.slowest)) // else the server's own bound holds
	}
	_, _ = w.Write(body) // who has gone away does not miss it
}

// encodeInto returns what encodes a response into buf, and tells how large that is then.
func encodeInto(buf *bytes.Buffer) func(resp any) (int, error) {
	return func(resp any) (int, error) {
		err := encode(buf, resp)
		return buf.Cap(), err
	}
}
