package websocket

import (
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

// send is Write for a caller that holds c.writing.
func (c *Conn) send(op ws.OpCode, payloads ...[]byte) error {
	size := 0
	for _, p := range payloads {
		size += len(p) + ws.MaxHeaderSize
	}
	b := take(size)
	defer give(b)
	for _, p := range payloads {
		f := ws.NewFrame(op, true, p)
		if c.side.ClientSide() {
			f.Header.Masked, f.Header.Mask = true, ws.NewMask()
		}
		if err := ws.WriteFrame(b, f); err != nil {
			return err
		}
		if f.Header.Masked {
			ws.Cipher(b.Bytes()[b.Len()-len(p):], f.Header.Mask, 0)
		}
	}
	if c.timed != nil && c.o.FrameTime > 0 {
		if err := c.timed.SetWriteDeadline(time.Now().Add(c.o.FrameTime)); err != nil {
			return err
		}
	}
	_, err := c.conn.Write(b.Bytes())
	if err != nil {
		c.Cut() // a part of a frame may have gone
	}
	return err
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
