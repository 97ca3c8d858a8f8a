package capabilities

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"parley/internal/fault"
	"parley/internal/pack"
)

// Time is an instant in milliseconds since 1970 in UTC. Zero is no time. Times compare as numbers.
type Time int64

const timeLayout = "2006-01-02T15:04:05.000Z"

// At returns the Time of t, truncated to the millisecond.
func At(t time.Time) Time {
	if t.IsZero() {
		return 0
	}
	return Time(t.UnixMilli())
}

// Std returns t as a time.Time in UTC.
func (t Time) Std() time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(t)).UTC()
}

// Add returns t plus d.
func (t Time) Add(d time.Duration) Time { return t + Time(d.Milliseconds()) }

// The first and last instants of RFC 3339.
const (
	firstTime Time = -62_167_219_200_000
	lastTime  Time = 253_402_300_799_999
)

// String returns t in RFC 3339, in UTC with milliseconds, or "" for the zero time. A time out of range becomes the
// nearest in range, so that every output can be parsed.
func (t Time) String() string {
	if t == 0 {
		return ""
	}
	return min(max(t, firstTime), lastTime).Std().Format(timeLayout)
}

// MarshalText is String.
func (t Time) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText parses RFC 3339 with any offset and precision.
func (t *Time) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*t = 0
		return nil
	}
	std, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil {
		return fault.Refuse(fault.InvalidArgument, "%.40q is not a time: want RFC 3339, as in 2026-01-31T12:00:00Z", text)
	}
	*t = At(std)
	return nil
}

// AppendMsgpack appends extension 3.
func (t Time) AppendMsgpack(b []byte) []byte {
	return binary.BigEndian.AppendUint64(pack.AppendExt(b, extTime, 8), uint64(t))
}

// EncodeMsgpack encodes what AppendMsgpack appends.
func (t Time) EncodeMsgpack(enc *msgpack.Encoder) error {
	room := rooms.Get().(*room)
	room.b = t.AppendMsgpack(room.b[:0])
	return room.encode(enc)
}

// DecodeMsgpack reads extension 3.
func (t *Time) DecodeMsgpack(dec *msgpack.Decoder) error {
	if err := wantExt(dec, extTime, 8); err != nil {
		return fmt.Errorf("time: %w", err)
	}
	var b [8]byte
	if err := dec.ReadFull(b[:]); err != nil {
		return err
	}
	*t = Time(binary.BigEndian.Uint64(b[:]))
	return nil
}

// Span returns a time span as people write it and flags take it: "1h", "1h30m", "1m30s", "250ms". The standard library adds the units that
// are 0, as in "1h0m0s".
func Span(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
