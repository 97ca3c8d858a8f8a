package websocket

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/gobwas/ws"
)

// Kind is the kind of a message.
type Kind = ws.OpCode

// The kinds of messages.
const (
	Text   = ws.OpText // valid UTF-8
	Binary = ws.OpBinary
)

const (
	smallSize = 4 << 10  // bytes of the buffers that reads and small writes use
	largeSize = 64 << 10 // of those for larger messages
	closeTime = 5 * time.Second
)

// Buffers are shared by all connections.
var (
	readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, smallSize) }}
	small   = sync.Pool{New: func() any { return bytes.NewBuffer(make([]byte, 0, smallSize)) }}
	large   = sync.Pool{New: func() any { return bytes.NewBuffer(make([]byte, 0, largeSize)) }}
)

// take returns a buffer for a number of bytes.
func take(size int) *bytes.Buffer {
	switch {
	case size <= smallSize:
		return small.Get().(*bytes.Buffer)
	case size <= largeSize:
		return large.Get().(*bytes.Buffer)
	}
	return bytes.NewBuffer(make([]byte, 0, size))
}

// give gives back a buffer that take has returned.
func give(b *bytes.Buffer) {
	b.Reset()
	switch b.Cap() {
	case smallSize:
		small.Put(b)
	case largeSize:
		large.Put(b)
	}
}

// Code is the code of a close frame.
type Code = ws.StatusCode

// The codes that Parley sends.
const (
	Normal         = ws.StatusNormalClosure
	GoingAway      = ws.StatusGoingAway
	Policy         = ws.StatusPolicyViolation
	TryLater  Code = 1013 // registered after the RFC
)

// Closed is the error of a connection that was closed with a close frame, by either side. A frame without a code has
// ws.StatusNoStatusRcvd.
type Closed struct {
	Code   Code
	Reason string
}

// Error implements error.
func (c *Closed) Error() string {
	return fmt.Sprintf("the WebSocket was closed: %d %s", c.Code, c.Reason)
}

// Options bound a connection.
type Options struct {
	MaxMessage int // bytes

	// FrameTime bounds how long the other side takes to receive what is written. It also bounds the time for a message that
	// has begun to come. 0 is any time.
	FrameTime time.Duration

	// Memory is charged for a message that is larger than a small buffer, until the next Read. The connection is closed with
	// TryLater if it refuses. Nil takes all.
	Memory Memory
}

// Memory is an account of memory.
type Memory interface {
	Add(bytes int64) error
	Release() // all that was added
}

// Conn is a WebSocket. One goroutine at a time reads; all may write and close.
type Conn struct {
	o     Options
	conn  io.ReadWriteCloser
	timed deadlines       // of conn; nil if it has none
	raw   syscall.RawConn // of conn; nil if nothing says when bytes are there
	out   syscall.RawConn // that conn writes to; nil if a write may have to wait
	side  ws.State

	reading sync.Mutex
	came    []byte // with the handshake, and was not read
	now     bool   // a read is one of fd, which does not wait
	fd      uintptr
	reader  *bufio.Reader // pooled; nil at rest
	message *bytes.Buffer // pooled, of the last message; nil if that was small
	late    bool          // a message has begun, and has to end in time
	broken  error         // of all reads that follow
	heard   atomic.Bool

	writing sync.Mutex
	rest    []byte  // of what WriteNow was given
	said    *Closed // in a close frame of this side
	cut     atomic.Bool
}

type deadlines interface {
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
}

// newConn returns the WebSocket of one side over a connection of which some bytes have come already.
func newConn(conn io.ReadWriteCloser, came []byte, side ws.State, o Options) *Conn {
	c := &Conn{o: o, conn: conn, came: bytes.Clone(came), side: side}
	c.timed, _ = conn.(deadlines)
	if s, ok := conn.(syscall.Conn); ok && readsNow {
		c.raw, _ = s.SyscallConn() // nil if it has none
		c.out = c.raw
	}
	return c
}

// Read returns the next message, which is good until the next Read. It answers pings, and the close frame of the other side.
func (c *Conn) Read() (Kind, []byte, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	return c.next()
}

// drop reads the next message for nobody. Another goroutine may still use the last one.
func (c *Conn) drop() error {
	c.reading.Lock()
	defer c.reading.Unlock()
	c.leave()
	_, _, err := c.next()
	return err
}

// leave leaves the buffers to who uses the last message: they go to no pool.
func (c *Conn) leave() {
	if c.reader != nil {
		rest, _ := c.reader.Peek(c.reader.Buffered()) // they are there
		c.came, c.reader = append(bytes.Clone(rest), c.came...), nil
	}
	if c.message != nil {
		c.message = nil
		if c.o.Memory != nil {
			c.o.Memory.Release()
		}
	}
}

// next is Read for a caller that holds c.reading.
func (c *Conn) next() (Kind, []byte, error) {
	if c.broken != nil {
		return 0, nil, c.broken
	}
	kind, message, err := c.read()
	if err == nil && kind == Text && !utf8.Valid(message) {
		err = c.fail(ws.StatusInvalidFramePayloadData, "the text is not valid UTF-8")
	}
	if err != nil {
		c.broken = err
		c.free()
		return 0, nil, err
	}
	return kind, message, nil
}

// fail closes the connection with a code, because of what the other side has sent.
func (c *Conn) fail(code Code, reason string) error {
	c.say(code, reason)
	return &Closed{code, reason}
}

// free gives back the buffers.
func (c *Conn) free() {
	if c.message != nil {
		give(c.message)
		c.message = nil
		if c.o.Memory != nil {
			c.o.Memory.Release()
		}
	}
	if c.reader != nil && c.reader.Buffered() == 0 {
		c.reader.Reset(nil)
		readers.Put(c.reader)
		c.reader = nil
	}
}

func (c *Conn) read() (kind Kind, message []byte, err error) {
	state, room := c.side, int64(c.o.MaxMessage)
	for {
		if err := c.await(state); err != nil {
			return 0, nil, err
		}
		h, err := ws.ReadHeader(c.reader)
		if err != nil && err != ws.ErrHeaderLengthMSB {
			return 0, nil, err
		}
		if err == nil {
			err = ws.CheckHeader(h, state)
		}
		switch {
		case err != nil:
			return 0, nil, c.fail(ws.StatusProtocolError, err.Error())
		case h.OpCode.IsControl():
			if err := c.control(h); err != nil {
				return 0, nil, err
			}
			continue
		case h.Length > room:
			err := c.fail(ws.StatusMessageTooBig, "the message is too large")
			late := time.AfterFunc(closeTime, c.Cut) // a connection that is closed with bytes unread loses its close frame
			defer late.Stop()
			_, _ = c.reader.Discard(int(min(h.Length, 2*int64(c.o.MaxMessage)))) // as far as they come
			return 0, nil, err
		case h.OpCode != ws.OpContinuation:
			kind = h.OpCode
		}
		if h.Fin && c.message == nil && h.Length <= smallSize {
			message, err = c.payload(h)
			return kind, message, err
		}
		if err := c.extend(h); err != nil {
			return 0, nil, err
		}
		if h.Fin {
			return kind, c.message.Bytes(), nil
		}
		state, room = state.Set(ws.StateFragmented), room-h.Length
	}
}

// await waits for the next frame. Between messages it does so without a buffer, and for any time.
func (c *Conn) await(state ws.State) (err error) {
	if !state.Fragmented() {
		c.free()
		if c.late {
			c.late = false
			_ = c.timed.SetReadDeadline(time.Time{}) // a connection that is closed already fails the next read
		}
	}
	switch {
	case c.reader != nil:
		return nil
	case c.raw == nil || len(c.came) > 0:
		return c.begin()
	}
	failed := c.raw.Read(func(fd uintptr) bool {
		c.now, c.fd = true, fd
		err = c.begin()
		c.now = false
		return err != errNotYet
	})
	if failed != nil {
		return failed
	}
	return err
}

// begin takes a reader with the first bytes.
func (c *Conn) begin() error {
	r := readers.Get().(*bufio.Reader)
	r.Reset((*source)(c))
	if _, err := r.Peek(1); err != nil {
		r.Reset(nil)
		readers.Put(r)
		return err
	}
	c.reader = r
	return nil
}

// source is a connection as its reader reads it.
type source Conn

// Read implements io.Reader. What follows the first bytes has to come in time.
func (c *source) Read(b []byte) (n int, err error) {
	switch {
	case len(c.came) > 0:
		n = copy(b, c.came)
		if c.came = c.came[n:]; len(c.came) == 0 {
			c.came = nil // a connection at rest holds none of it
		}
		return n, nil
	case c.now:
		if n, err = readNow(c.fd, b); n == 0 && err == nil {
			err = io.EOF
		}
	default:
		if c.reader != nil && !c.late && c.timed != nil && c.o.FrameTime > 0 {
			c.late = true
			if err := c.timed.SetReadDeadline(time.Now().Add(c.o.FrameTime)); err != nil {
				return 0, err
			}
		}
		n, err = c.conn.Read(b)
	}
	if n = max(n, 0); n > 0 {
		c.heard.Store(true)
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF // without a close frame
	}
	return n, err
}

// payload returns the payload of a frame that fits in the reader.
func (c *Conn) payload(h ws.Header) ([]byte, error) {
	n := int(h.Length)
	b, err := c.reader.Peek(n)
	if err != nil {
		return nil, err
	}
	if h.Masked {
		ws.Cipher(b, h.Mask, 0)
	}
	_, err = c.reader.Discard(n)
	return b[:n:n], err
}

// extend adds the payload of a frame to the message. It takes memory as bytes come.
func (c *Conn) extend(h ws.Header) error {
	if c.message == nil {
		c.message = take(largeSize)
		if err := c.charge(largeSize); err != nil {
			return err
		}
	}
	for at, n := 0, int(h.Length); at < n; {
		size := min(n-at, max(c.message.Len(), largeSize))
		if full := c.message; size > full.Available() {
			if err := c.charge(full.Cap()); err != nil {
				return err
			}
			c.message = take(2 * full.Cap())
			c.message.Write(full.Bytes())
			give(full)
		}
		b := c.message.AvailableBuffer()[:size]
		if _, err := io.ReadFull(c.reader, b); err != nil {
			return err
		}
		if h.Masked {
			ws.Cipher(b, h.Mask, at)
		}
		c.message.Write(b)
		at += size
	}
	return nil
}

// charge charges for memory.
func (c *Conn) charge(bytes int) error {
	if c.o.Memory != nil {
		if err := c.o.Memory.Add(int64(bytes)); err != nil {
			return c.fail(TryLater, err.Error())
		}
	}
	return nil
}

// control handles a control frame. It returns an error at the end of the connection.
func (c *Conn) control(h ws.Header) error {
	b, err := c.payload(h)
	switch {
	case err != nil || h.OpCode == ws.OpPong:
		return err
	case h.OpCode == ws.OpPing:
		return c.Write(ws.OpPong, b)
	case len(b) == 0:
		return c.fail(ws.StatusNoStatusRcvd, "")
	}
	code, reason := ws.ParseCloseFrameData(b)
	known := code
	switch {
	case code >= 1012 && code <= 1014: // registered after the RFC, and unknown to the library
		known = ws.StatusInternalServerError
	case code > ws.StatusRangePrivate.Max: // it has no range for them
		known = ws.StatusNoMeaningYet
	}
	if err := ws.CheckCloseFrameData(known, reason); err != nil {
		return c.fail(ws.StatusProtocolError, err.Error())
	}
	return c.fail(code, reason)
}
