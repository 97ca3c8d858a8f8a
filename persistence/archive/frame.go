package archive

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"parley/events"
)

// The beginning of a frame: its magic, the length of its head, the format, the number, and the hash before as 32 bytes behind
// their length.
const (
	frameStart = 4 + 2
	hashSize   = sha256.Size
)

// prevAt returns the offset of the hash of the frame before, in a frame or a stored frame.
func prevAt(frame []byte) (int, bool) {
	at := frameStart
	for range 2 { // the format and the number
		if len(frame) <= at {
			return 0, false
		}
		switch c := frame[at]; {
		case c <= msgpcode.PosFixedNumHigh:
			at++
		case c == msgpcode.Uint8:
			at += 2
		case c == msgpcode.Uint16:
			at += 3
		case c == msgpcode.Uint32:
			at += 5
		case c == msgpcode.Uint64:
			at += 9
		default:
			return 0, false
		}
	}
	if len(frame) < at+2 || frame[at] != msgpcode.Bin8 || frame[at+1] != hashSize {
		return 0, false
	}
	return at + 2, true
}

// appendStored appends a frame to a block, behind the length of what is stored. The frame has been decoded.
func appendStored(to, frame []byte) ([]byte, bool) {
	at, ok := prevAt(frame)
	if !ok || len(frame) < at+2*hashSize {
		return to, false
	}
	to = binary.AppendUvarint(to, uint64(len(frame)-2*hashSize))
	to = append(to, frame[:at]...)
	return append(to, frame[at+hashSize:len(frame)-hashSize]...), true
}

// takeStored takes the next frame from a block and appends it, without its hash, to a buffer. It returns the rest of the
// block.
func takeStored(to, raw []byte, prev events.Hash) (unsealed, rest []byte, ok bool) {
	size, n := binary.Uvarint(raw)
	if n <= 0 || size > uint64(len(raw)-n) || size < minStored-1 || size > maxFrame {
		return nil, nil, false
	}
	stored, rest := raw[n:n+int(size)], raw[n+int(size):]
	at, ok := prevAt(stored)
	if !ok {
		return nil, nil, false
	}
	to = append(to, stored[:at]...)
	to = append(to, prev[:]...)
	return append(to, stored[at:]...), rest, true
}
