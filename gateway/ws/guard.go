package ws

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"unicode/utf8"
)

// The library checks frames by RFC 6455, but for two things. It drops a client that does not mask its frames, without a
// close frame. It takes a reason of a close frame that is not UTF-8, and sends it back. Both are to fail the connection
// with a protocol error. So frames pass a guard, which sets a reserved bit in the head of such a frame. The library answers
// that with 1002:
//
//	81 05 h e l l o          text, not masked           passed on as b1 05 …
//	88 84 mask 03 e8 ff ff   closes, for a reason       passed on as b8 84 …
//	81 85 mask …             text, masked               as it is
const (
	reservedBits = 0x30
	opcodeBits   = 0x0f
	closeOpcode  = 0x8
	maskedBit    = 0x80
	lengthBits   = 0x7f
	maxControl   = 125 // bytes of a control frame
	closeCode    = 2   // bytes before the reason
)

// guardedWriter is a response whose hijacked connection is guarded.
type guardedWriter struct{ http.ResponseWriter }

// Hijack implements http.Hijacker.
func (w guardedWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	g := &guarded{Conn: conn, in: rw.Reader}
	return g, bufio.NewReadWriter(bufio.NewReader(g), rw.Writer), nil
}

// guarded is a connection of a client whose frames are checked as they are read.
type guarded struct {
	net.Conn
	in   *bufio.Reader
	head []byte // of a frame, and the whole of a close frame: bytes that were not passed on yet
	left uint64 // bytes of the payload after it
	room [14 + maxControl]byte
}

// Read implements io.Reader.
func (g *guarded) Read(p []byte) (int, error) {
	if len(g.head) == 0 && g.left == 0 {
		if err := g.next(); err != nil {
			return 0, err
		}
	}
	if len(g.head) > 0 {
		n := copy(p, g.head)
		g.head = g.head[n:]
		return n, nil
	}
	if uint64(len(p)) > g.left {
		p = p[:g.left]
	}
	n, err := g.in.Read(p)
	g.left -= uint64(n)
	return n, err
}

// next reads the head of the next frame.
func (g *guarded) next() error {
	head := g.room[:2]
	if _, err := io.ReadFull(g.in, head); err != nil {
		return err
	}
	masked, length := head[1]&maskedBit != 0, uint64(head[1]&lengthBits)
	more := map[uint64]int{126: 2, 127: 8}[length]
	if masked {
		more += 4
	}
	head = g.room[:2+more]
	if _, err := io.ReadFull(g.in, head[2:]); err != nil {
		return err
	}
	switch length {
	case 126:
		length = uint64(binary.BigEndian.Uint16(head[2:]))
	case 127:
		length = binary.BigEndian.Uint64(head[2:])
	}
	g.head, g.left = head, length
	if !masked {
		head[0] |= reservedBits
		return nil
	}
	if head[0]&opcodeBits != closeOpcode || length > maxControl {
		return nil
	}
	g.head, g.left = g.room[:len(head)+int(length)], 0
	payload := g.head[len(head):]
	if _, err := io.ReadFull(g.in, payload); err != nil {
		return err
	}
	if mask := head[len(head)-4:]; !isReason(mask, payload) {
		head[0] |= reservedBits
	}
	return nil
}

// isReason reports whether the masked payload of a close frame has a reason of UTF-8, or none.
func isReason(mask, payload []byte) bool {
	if len(payload) <= closeCode {
		return true
	}
	reason := make([]byte, 0, maxControl)
	for i := closeCode; i < len(payload); i++ {
		reason = append(reason, payload[i]^mask[i%4])
	}
	return utf8.Valid(reason)
}
