package websocket

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gobwas/ws"
)

// Write writes messages of a kind, all at once. It does not keep them.
func (c *Conn) Write(kind Kind, messages ...[]byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.said != nil {
		return c.said
	}
	return c.send(kind, messages...)
}

// WriteNow writes messages of a kind as Write does, as far as it can without waiting. If it returns false, Flush has to
// follow, which waits for the rest.
func (c *Conn) WriteNow(kind Kind, messages ...[]byte) (all bool, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.said != nil {
		return true, c.said
	}
	b := c.framed(kind, messages)
	defer give(b)
	n := 0
	if c.out != nil && len(c.rest) == 0 {
		failed := c.out.Write(func(fd uintptr) bool {
			n, err = writeNow(fd, b.Bytes())
			return true
		})
		if err = errors.Join(failed, err); err != nil {
			c.Cut() // a part of a frame may have gone
			return true, err
		}
	}
	c.rest = append(c.rest, b.Bytes()[n:]...)
	return len(c.rest) == 0, nil
}

// Flush writes what WriteNow has left.
func (c *Conn) Flush() error {
	c.writing.Lock()
	defer c.writing.Unlock()
	return c.put(nil)
}

// send is Write for a caller that holds c.writing.
func (c *Conn) send(op ws.OpCode, payloads ...[]byte) error {
	b := c.framed(op, payloads)
	defer give(b)
	return c.put(b.Bytes())
}

// framed returns frames in a pooled buffer.
func (c *Conn) framed(op ws.OpCode, payloads [][]byte) *bytes.Buffer {
	size := 0
	for _, p := range payloads {
		size += len(p) + ws.MaxHeaderSize
	}
	b := take(size)
	for _, p := range payloads {
		f := ws.NewFrame(op, true, p)
		if c.side.ClientSide() {
			f.Header.Masked, f.Header.Mask = true, ws.NewMask()
		}
		_ = ws.WriteFrame(b, f) // a buffer takes all
		if f.Header.Masked {
			ws.Cipher(b.Bytes()[b.Len()-len(p):], f.Header.Mask, 0)
		}
	}
	return b
}

// put writes frames behind what WriteNow has left. The caller holds c.writing.
func (c *Conn) put(frames []byte) (err error) {
	timed := c.timed != nil && c.o.FrameTime > 0
	if timed {
		if err := c.timed.SetWriteDeadline(time.Now().Add(c.o.FrameTime)); err != nil {
			return err
		}
	}
	if len(c.rest) > 0 {
		_, err = c.conn.Write(c.rest)
		c.rest = nil
	}
	if err == nil && len(frames) > 0 {
		_, err = c.conn.Write(frames)
	}
	if err != nil {
		c.Cut() // a part of a frame may have gone
		return err
	}
	if timed {
		return c.timed.SetWriteDeadline(time.Time{}) // WriteNow has none
	}
	return nil
}

// say sends a close frame, unless one was sent.
func (c *Conn) say(code Code, reason string) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.said != nil {
		return
	}
	reason = strings.ToValidUTF8(reason[:min(len(reason), ws.MaxControlFramePayloadSize-2)], "")
	payload := []byte(nil)
	if code != ws.StatusNoStatusRcvd {
		payload = ws.NewCloseFrameBody(code, reason)
	}
	_ = c.send(ws.OpClose, payload) // the other side may have gone
	c.said = &Closed{code, reason}
}

// Close sends a close frame with a code and a reason, of which 123 bytes are sent. It waits a while for that of the other
// side, and closes the connection.
func (c *Conn) Close(code Code, reason string) {
	c.say(code, reason)
	late := time.AfterFunc(closeTime, c.Cut)
	defer late.Stop()
	for {
		if err := c.drop(); err != nil { // another goroutine may read, up to that error
			break
		}
	}
	c.Cut()
}

// Cut closes the connection at once.
func (c *Conn) Cut() {
	if c.cut.CompareAndSwap(false, true) {
		_ = c.conn.Close() // it may have broken already
	}
}

// KeepAlive pings the other side with a pause between, and cuts the connection if nothing comes from it in time. The function
// that it returns ends that.
func (c *Conn) KeepAlive(pause, patience time.Duration) (stop func()) {
	var asked, ended atomic.Bool
	var timer *time.Timer
	timer = time.AfterFunc(math.MaxInt64, func() {
		switch {
		case ended.Load():
		case !asked.Load():
			asked.Store(true)
			c.heard.Store(false)
			_ = c.Write(ws.OpPing, nil) // a failure cuts the connection, or it is closing already
			timer.Reset(patience)
		case c.heard.Load():
			asked.Store(false)
			timer.Reset(pause)
		default:
			c.Cut()
		}
	})
	timer.Reset(pause)
	return func() {
		ended.Store(true)
		timer.Stop()
	}
}
