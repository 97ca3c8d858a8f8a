package websocket

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// Write writes messages of a kind, all at once. It does not keep them.
func (c *Conn) Write(kind Kind, messages ...[]byte) error { return c.write(byte(kind), messages...) }

// write writes frames with an opcode.
func (c *Conn) write(op byte, payloads ...[]byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.said != nil {
		return c.said
	}
	return c.send(op, payloads...)
}

// send is write for a caller that holds c.writing.
func (c *Conn) send(op byte, payloads ...[]byte) error {
	size := 0
	for _, p := range payloads {
		size += len(p) + maxHead
	}
	var b []byte
	if pool := &small; size <= largeSize {
		if size > smallSize {
			pool = &large
		}
		pooled := pool.Get().(*[]byte)
		defer pool.Put(pooled)
		b = (*pooled)[:0]
	} else {
		b = make([]byte, 0, size)
	}
	for _, p := range payloads {
		b = c.appendFrame(b, op, p)
	}
	if c.timed != nil && c.o.FrameTime > 0 {
		if err := c.timed.SetWriteDeadline(time.Now().Add(c.o.FrameTime)); err != nil {
			return err
		}
	}
	_, err := c.conn.Write(b)
	if err != nil {
		c.Cut() // a part of a frame may have gone
	}
	return err
}

func (c *Conn) appendFrame(b []byte, op byte, payload []byte) []byte {
	side := byte(0)
	if c.client {
		side = masked
	}
	b = append(b, final|op)
	switch n := len(payload); {
	case n < 126:
		b = append(b, side|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, side|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, side|127), uint64(n))
	}
	if !c.client {
		return append(b, payload...)
	}
	var mask [4]byte
	binary.LittleEndian.PutUint32(mask[:], rand.Uint32()) // unpredictable for whoever chose the payload
	b = append(b, mask[:]...)
	at := len(b)
	b = append(b, payload...)
	unmask(b[at:], mask, 0)
	return b
}

// say sends a close frame, unless one was sent.
func (c *Conn) say(code int, reason string) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.said != nil {
		return
	}
	for len(reason) > maxReason || !utf8.ValidString(reason) {
		reason = reason[:min(len(reason)-1, maxReason)]
	}
	payload := []byte(nil)
	if code != NoCode {
		payload = append(binary.BigEndian.AppendUint16(nil, uint16(code)), reason...)
	}
	_ = c.send(closing, payload) // the other side may have gone
	c.said = &Closed{code, reason}
}

// Close sends a close frame with a code and a reason, of which 123 bytes are sent. It waits a while for that of the other
// side, and closes the connection.
func (c *Conn) Close(code int, reason string) {
	c.say(code, reason)
	late := time.AfterFunc(closeTime, c.Cut)
	defer late.Stop()
	for {
		if _, _, err := c.Read(); err != nil { // another goroutine may read, up to that error
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
			_ = c.write(ping, nil) // a failure cuts the connection, or it is closing already
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
