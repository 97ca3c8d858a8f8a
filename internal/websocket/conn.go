package websocket

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unicode/utf8"
)

// Kind is the kind of a message.
type Kind byte

// The kinds of messages.
const (
	Text   Kind = 1 // valid UTF-8
	Binary Kind = 2
)

// The other opcodes.
const (
	more    = 0 // of a message that has begun
	closing = 8
	ping    = 9
	pong    = 10
)

// The bits of the first two bytes of a frame.
const (
	final     = 0x80
	reserved  = 0x70
	opcode    = 0x0f
	control   = 0x08
	masked    = 0x80
	shortBits = 0x7f
)

const (
	maxControl = 125      // bytes of a control frame
	maxHead    = 14       // bytes
	smallSize  = 4 << 10  // of the buffers that reads and small writes use
	largeSize  = 64 << 10 // of those for larger messages
	closeTime  = 5 * time.Second
)

// Buffers of two sizes are shared by all connections.
var (
	small = sync.Pool{New: func() any { b := make([]byte, smallSize); return &b }}
	large = sync.Pool{New: func() any { b := make([]byte, largeSize); return &b }}
)

// The codes of a close frame that the package uses.
const (
	Normal       = 1000
	GoingAway    = 1001
	Protocol     = 1002
	NoCode       = 1005 // the frame had none
	NotUTF8      = 1007
	Policy       = 1008
	TooBig       = 1009
	TryLater     = 1013
	maxReason    = maxControl - 2
	firstPrivate = 3000
	lastPrivate  = 4999
)

// Closed is the error of a connection that was closed with a close frame, by either side.
type Closed struct {
	Code   int
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
	o      Options
	conn   io.ReadWriteCloser
	timed  deadlines       // of conn; nil if it has none
	raw    syscall.RawConn // of conn; nil if nothing says when bytes are there
	client bool            // masks its frames

	reading sync.Mutex
	buffer  *[]byte // pooled; nil at rest
	came    []byte  // in it, that was not read
	message *[]byte // pooled, of the last message; nil if that was small
	late    bool    // a message has begun, and has to end in time
	broken  error   // of all reads that follow
	heard   atomic.Bool

	writing sync.Mutex
	said    *Closed // in a close frame of this side
	cut     atomic.Bool
}

type deadlines interface {
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
}

// newConn returns the WebSocket over a connection of which some bytes have come already.
func newConn(conn io.ReadWriteCloser, came []byte, client bool, o Options) *Conn {
	c := &Conn{o: o, conn: conn, client: client}
	c.timed, _ = conn.(deadlines)
	if s, ok := conn.(syscall.Conn); ok && readsNow {
		c.raw, _ = s.SyscallConn() // nil if it has none
	}
	if len(came) > 0 {
		b := make([]byte, max(len(came), smallSize))
		c.buffer, c.came = &b, b[:copy(b, came)]
	}
	return c
}

// Read returns the next message, which is good until the next Read. It answers pings, and the close frame of the other side.
func (c *Conn) Read() (Kind, []byte, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	if c.broken != nil {
		return 0, nil, c.broken
	}
	kind, message, err := c.read()
	if err == nil && kind == Text && !utf8.Valid(message) {
		err = c.fail(NotUTF8, "the text is not valid UTF-8")
	}
	if err != nil {
		c.broken = err
		c.free()
		return 0, nil, err
	}
	c.rest()
	return kind, message, nil
}

// rest has the other side take its time, after a frame that it had to end in time.
func (c *Conn) rest() {
	if c.late {
		c.late = false
		_ = c.timed.SetReadDeadline(time.Time{}) // a connection that is closed already fails the next read
	}
}

// fail closes the connection with a code, because of what the other side has sent.
func (c *Conn) fail(code int, reason string) error {
	c.say(code, reason)
	return &Closed{code, reason}
}

// free gives back the buffers.
func (c *Conn) free() {
	if c.message != nil {
		large.Put(c.message)
		c.message = nil
		if c.o.Memory != nil {
			c.o.Memory.Release()
		}
	}
	if c.buffer != nil && len(c.came) == 0 {
		if cap(*c.buffer) == smallSize {
			small.Put(c.buffer)
		}
		c.buffer, c.came = nil, nil
	}
}

// head is the head of a frame.
type head struct {
	op, flags byte
	length    uint64
	mask      [4]byte
}

func (c *Conn) read() (kind Kind, message []byte, err error) {
	c.free()
	for {
		h, err := c.readHead()
		if err != nil {
			return 0, nil, err
		}
		if h.op&control != 0 {
			if err := c.control(h); err != nil {
				return 0, nil, err
			}
			if kind == 0 {
				c.rest()
				c.free()
			}
			continue
		}
		switch {
		case h.op == more && kind == 0 || h.op != more && kind != 0, h.op > byte(Binary):
			return 0, nil, c.fail(Protocol, "a frame is out of order")
		case h.length > uint64(c.o.MaxMessage-len(message)):
			err := c.fail(TooBig, "the message is too large")
			c.discard(min(h.length, 2*uint64(c.o.MaxMessage)))
			return 0, nil, err
		}
		if h.op != more {
			kind = Kind(h.op)
		}
		n := int(h.length)
		if whole := h.flags&final != 0; whole && message == nil && n <= smallSize {
			message, err = c.take(n)
			if err == nil && !c.client {
				unmask(message, h.mask, 0)
			}
			return kind, message, err
		} else if message, err = c.append(message, n, h.mask); err != nil || whole {
			return kind, message, err
		}
	}
}

// discard reads what is on its way for a while: a connection that is closed with bytes unread loses its close frame.
func (c *Conn) discard(n uint64) {
	late := time.AfterFunc(closeTime, c.Cut)
	defer late.Stop()
	n -= min(n, uint64(len(c.came)))
	for n > 0 {
		got, err := c.conn.Read(*c.buffer)
		if err != nil {
			return
		}
		n -= min(n, uint64(got))
	}
}

// readHead reads and checks the head of a frame.
func (c *Conn) readHead() (h head, err error) {
	b, err := c.need(2)
	if err != nil {
		return h, err
	}
	size := 2
	switch b[1] & shortBits {
	case 126:
		size += 2
	case 127:
		size += 8
	}
	if b[1]&masked != 0 {
		size += 4
	}
	if b, err = c.need(size); err != nil {
		return h, err
	}
	h.op, h.flags, h.length = b[0]&opcode, b[0]&^opcode, uint64(b[1]&shortBits)
	switch h.length {
	case 126:
		h.length = uint64(binary.BigEndian.Uint16(b[2:]))
	case 127:
		h.length = binary.BigEndian.Uint64(b[2:])
	}
	isMasked := b[1]&masked != 0
	if isMasked {
		copy(h.mask[:], b[size-4:])
	}
	c.came = c.came[size:]
	switch {
	case isMasked == c.client:
		return h, c.fail(Protocol, "the frames of a client are masked, and of a server not")
	case h.flags&reserved != 0 || h.op > byte(Binary) && h.op < closing || h.op > pong:
		return h, c.fail(Protocol, "a frame has bits that mean nothing")
	case h.op&control != 0 && (h.flags&final == 0 || h.length > maxControl):
		return h, c.fail(Protocol, "a control frame is short and whole")
	}
	return h, nil
}

// take returns the next n bytes, which fit in a small buffer.
func (c *Conn) take(n int) ([]byte, error) {
	b, err := c.need(n)
	if err == nil {
		c.came = c.came[n:]
	}
	return b, err
}

// need returns the next n bytes without taking them.
func (c *Conn) need(n int) ([]byte, error) {
	for len(c.came) < n {
		if len(c.came) == 0 && c.buffer == nil {
			if err := c.wait(); err != nil {
				return nil, err
			}
			continue
		}
		if err := c.hurry(); err != nil {
			return nil, err
		}
		room := *c.buffer
		if at := cap(room) - cap(c.came); at+n > len(room) || len(c.came) == 0 {
			if cap(room) < n {
				room = make([]byte, smallSize)
				c.buffer = &room
			}
			c.came = room[:copy(room, c.came)]
		}
		got, err := c.conn.Read(c.came[len(c.came):cap(c.came)])
		c.came = c.came[:len(c.came)+got]
		if err != nil && len(c.came) < n {
			return nil, ended(err)
		}
		c.listen()
	}
	return c.came[:n:n], nil
}

// wait waits until bytes are there, and takes a buffer with the first.
func (c *Conn) wait() error {
	buffer := (*[]byte)(nil)
	n, err := 0, error(nil)
	if c.raw == nil {
		buffer = small.Get().(*[]byte)
		n, err = c.conn.Read(*buffer)
	} else if failed := c.raw.Read(func(fd uintptr) bool {
		buffer = small.Get().(*[]byte)
		if n, err = readNow(fd, *buffer); err == errNotYet {
			small.Put(buffer)
			buffer = nil
			return false
		}
		return true
	}); failed != nil {
		return ended(failed)
	}
	c.buffer, c.came = buffer, (*buffer)[:max(n, 0)]
	c.listen()
	if n > 0 {
		return nil
	}
	if err == nil {
		err = io.EOF
	}
	return ended(err)
}

// ended returns the error of a connection that gives no more.
func ended(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF // without a close frame
	}
	return err
}

func (c *Conn) listen() {
	if !c.heard.Load() {
		c.heard.Store(true)
	}
}

// hurry has a message that has begun end in time.
func (c *Conn) hurry() error {
	if c.late || c.timed == nil || c.o.FrameTime == 0 || c.broken != nil {
		return nil
	}
	c.late = true
	return c.timed.SetReadDeadline(time.Now().Add(c.o.FrameTime))
}

// append appends n bytes of a frame to a message. It takes memory as they come.
func (c *Conn) append(message []byte, n int, mask [4]byte) ([]byte, error) {
	if message == nil {
		c.message = large.Get().(*[]byte)
		message = (*c.message)[:0]
	}
	for at := 0; at < n; {
		if len(message) == cap(message) || cap(message) == largeSize && len(message) == 0 {
			if c.o.Memory != nil {
				if err := c.o.Memory.Add(int64(max(len(message), largeSize))); err != nil {
					return nil, c.fail(TryLater, err.Error())
				}
			}
			if len(message) == cap(message) {
				message = append(make([]byte, 0, 2*cap(message)), message...)
			}
		}
		piece := message[len(message):min(cap(message), len(message)+n-at)]
		got := copy(piece, c.came)
		c.came = c.came[got:]
		if got == 0 {
			if err := c.hurry(); err != nil {
				return nil, err
			}
			var err error
			if got, err = c.conn.Read(piece); err != nil && got == 0 {
				return nil, ended(err)
			}
			c.listen()
		}
		if !c.client {
			unmask(piece[:got], mask, at)
		}
		message, at = message[:len(message)+got], at+got
	}
	return message, nil
}

// control handles a control frame. It returns an error at the end of the connection.
func (c *Conn) control(h head) error {
	b, err := c.take(int(h.length))
	if err != nil {
		return err
	}
	if !c.client {
		unmask(b, h.mask, 0)
	}
	switch h.op {
	case ping:
		return c.write(pong, b)
	case closing:
		end := &Closed{Code: NoCode}
		if len(b) > 0 {
			if len(b) == 1 || !mayCome(int(binary.BigEndian.Uint16(b))) || !utf8.Valid(b[2:]) {
				return c.fail(Protocol, "the close frame is malformed")
			}
			end = &Closed{int(binary.BigEndian.Uint16(b)), string(b[2:])}
		}
		c.say(end.Code, end.Reason)
		return end
	}
	return nil
}

// mayCome reports whether a close frame may have a code.
func mayCome(code int) bool {
	switch code {
	case 1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014:
		return true
	}
	return code >= firstPrivate && code <= lastPrivate
}

// unmask masks or unmasks a part of a payload that begins at a position.
func unmask(b []byte, mask [4]byte, at int) {
	var key [8]byte
	for i := range key {
		key[i] = mask[(at+i)&3]
	}
	wide := binary.LittleEndian.Uint64(key[:])
	for len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)^wide)
		b = b[8:]
	}
	for i := range b {
		b[i] ^= key[i]
	}
}
