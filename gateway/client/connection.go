package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httputil"
	"strconv"
	"sync"
	"syscall"
	"time"

	"parley/gateway/api"
	"parley/gateway/mux"
)

// The client implements the part of HTTP that a node's socket needs: one write for a request, and the response read by
// the caller. net/http's client needs three goroutines and twice the time for the same.

// maxIdle is the time for which an idle connection is kept: less than in the server.
const maxIdle = time.Minute

// connection is a connection to the node's socket. It serves one call at a time.
type connection struct {
	net.Conn
	in    *bufio.Reader
	out   []byte
	since time.Time // of the last use; zero: never used
}

// connections are the idle connections, the last used on top.
type connections struct {
	dial func(ctx context.Context) (net.Conn, error)
	mu   sync.Mutex
	idle []*connection
}

// take returns a connection, and reports whether it was used before.
func (c *connections) take(ctx context.Context, fresh bool) (*connection, bool, error) {
	if !fresh {
		c.mu.Lock()
		for n := len(c.idle); n > 0; n = len(c.idle) {
			top := c.idle[n-1]
			c.idle = c.idle[:n-1]
			if time.Since(top.since) < maxIdle {
				c.mu.Unlock()
				return top, true, nil
			}
			_ = top.Close() // it is idle
		}
		c.mu.Unlock()
	}
	conn, err := c.dial(ctx)
	if err != nil {
		return nil, false, err
	}
	return &connection{Conn: conn, in: bufio.NewReaderSize(conn, 4<<10)}, false, nil
}

func (c *connections) give(conn *connection) {
	conn.since = time.Now()
	if cap(conn.out) > 64<<10 { // keep no buffer of a large request
		conn.out = nil
	}
	c.mu.Lock()
	c.idle = append(c.idle, conn)
	c.mu.Unlock()
}

func (c *connections) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.idle {
		_ = conn.Close() // it is idle
	}
	c.idle = nil
}

func (c *connections) absence() string { return "no node runs on this state folder" }

// exchange sends a request and reads the response. A connection that the node had closed accepts nothing, so that a
// second attempt with a new one repeats nothing.
func (c *connections) exchange(ctx context.Context, operation string, body []byte) (answer, error) {
	text, err := mux.ToJSON(body)
	if err != nil {
		return answer{}, err
	}
	conn, used, err := c.take(ctx, false)
	if err != nil {
		return answer{}, unsent(err)
	}
	a, err := c.over(ctx, conn, operation, text)
	if used && errors.Is(err, syscall.EPIPE) {
		if conn, _, err = c.take(ctx, true); err != nil {
			return answer{}, unsent(err)
		}
		a, err = c.over(ctx, conn, operation, text)
	}
	if err != nil {
		return answer{}, &lost{sent: true, cause: err}
	}
	return a, nil
}

// over makes a call over a connection, and keeps the connection if it can be reused.
func (c *connections) over(ctx context.Context, conn *connection, operation string, body []byte) (answer, error) {
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // fails if the connection is closed already
		defer stop()
	}
	if err := conn.send(operation, body); err != nil {
		return answer{}, errors.Join(err, conn.Close())
	}
	r, keep, err := conn.receive()
	switch {
	case err != nil:
		return r, errors.Join(err, conn.Close())
	case keep && ctx.Err() == nil:
		c.give(conn)
	default:
		_ = conn.Close() // the response is complete
	}
	return r, nil
}

func (c *connection) send(operation string, body []byte) error {
	c.out = append(c.out[:0], "POST "+api.CallPath...)
	c.out = append(c.out, operation...)
	c.out = append(c.out, " HTTP/1.1\r\nHost: parley\r\nContent-Type: application/json\r\nContent-Length: "...)
	c.out = strconv.AppendInt(c.out, int64(len(body)), 10)
	c.out = append(c.out, "\r\n\r\n"...)
	c.out = append(c.out, body...)
	_, err := c.Write(c.out)
	return err
}

// receive reads a response, and reports whether the connection can be reused.
func (c *connection) receive() (r answer, keep bool, err error) {
	h, err := c.header()
	if err != nil {
		return r, false, err
	}
	r.status = h.status
	switch {
	case h.chunked:
		r.body, err = io.ReadAll(httputil.NewChunkedReader(c.in))
		return r, false, err // the trailer is left unread
	case h.length < 0:
		r.body, err = io.ReadAll(c.in)
		return r, false, err
	}
	r.body = make([]byte, h.length)
	_, err = io.ReadFull(c.in, r.body)
	return r, !h.last, err
}

// header has the members of a response's header that the client uses.
type header struct {
	status  int
	length  int // -1: until the end of the connection
	chunked bool
	last    bool // the connection is closed after it
}

var errNotHTTP = errors.New("the answer is not HTTP")

func (c *connection) header() (header, error) {
	h := header{length: -1}
	line, err := c.line()
	if err != nil {
		return h, err
	}
	proto, rest, _ := bytes.Cut(line, []byte(" "))
	if !bytes.HasPrefix(proto, []byte("HTTP/1.")) || len(rest) < 3 {
		return h, errNotHTTP
	}
	if h.status, err = strconv.Atoi(string(rest[:3])); err != nil {
		return h, errNotHTTP
	}
	for {
		line, err := c.line()
		if err != nil || len(line) == 0 {
			return h, err
		}
		if err := h.note(line); err != nil {
			return h, err
		}
	}
}

// line reads a line without its end. It is valid until the next read.
func (c *connection) line() ([]byte, error) {
	line, err := c.in.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		return nil, fmt.Errorf("%w: a line is too long", errNotHTTP)
	}
	if err == io.EOF {
		return nil, io.ErrUnexpectedEOF
	}
	return bytes.TrimRight(line, "\r\n"), err
}

func (h *header) note(line []byte) error {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimSpace(value)
	switch {
	case bytes.EqualFold(name, []byte("Content-Length")):
		n, err := strconv.Atoi(string(value))
		if err != nil || n < 0 {
			return errNotHTTP
		}
		h.length = n
	case bytes.EqualFold(name, []byte("Transfer-Encoding")):
		h.chunked = bytes.EqualFold(value, []byte("chunked"))
	case bytes.EqualFold(name, []byte("Connection")):
		h.last = bytes.EqualFold(value, []byte("close"))
	}
	return nil
}
