package events

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"parley/capabilities"
	"parley/internal/pack"
)

var errMalformed = errors.New("malformed event")

// Append appends the encoding of events to dst. Each is a msgpack sequence of kind, version, time and payload. The
// payload is an array in bytes of the 32-bit form. It fails only for a value that cannot be encoded.
func Append(dst []byte, evs ...Recorded) ([]byte, error) {
	b := dst
	for _, r := range evs {
		var err error
		if b, err = appendOne(b, r); err != nil {
			return dst, fmt.Errorf("encode %s: %w", Name(r.Event), err)
		}
	}
	return b, nil
}

func appendOne(b []byte, r Recorded) (_ []byte, err error) {
	b = pack.AppendUint(b, uint64(r.Event.kind()))
	b = pack.AppendUint(b, uint64(Version(r.Event)))
	b = r.At.AppendMsgpack(b)
	b = append(b, msgpcode.Bin32, 0, 0, 0, 0) // the length is filled in below
	start := len(b)
	if b, err = appendPayload(b, r.Event); err != nil {
		return nil, err
	}
	binary.BigEndian.PutUint32(b[start-4:], uint32(len(b)-start))
	return b, nil
}

// Decode decodes exactly count events. It fails with an *UnknownError for an event of another version of the program.
// Any other error means a malformed encoding. With an error, it also returns the events before it.
func Decode(body []byte, count int) ([]Recorded, error) {
	rd := bytes.NewReader(body)
	dec := msgpack.NewDecoder(rd)
	evs := make([]Recorded, 0, min(count, 1024))
	for range count {
		r, err := decodeOne(dec, rd)
		if err != nil {
			return evs, err
		}
		evs = append(evs, r)
	}
	if rd.Len() != 0 {
		return evs, fmt.Errorf("%w: %d bytes too many", errMalformed, rd.Len())
	}
	return evs, nil
}

// decodeOne decodes the next event from dec, which reads no further in rd than needed.
func decodeOne(dec *msgpack.Decoder, rd *bytes.Reader) (r Recorded, err error) {
	kind, err := dec.DecodeUint8()
	if err != nil {
		return r, err
	}
	version, err := dec.DecodeUint8()
	if err != nil {
		return r, err
	}
	var at capabilities.Time
	if err := at.DecodeMsgpack(dec); err != nil {
		return r, err
	}
	payload, err := decodePayload(dec, rd)
	if err != nil {
		return r, err
	}
	s, ok := schemas[Kind(kind)]
	if !ok || version != s.version {
		return r, &UnknownError{Kind: Kind(kind), Version: uint64(version)}
	}
	if err := msgpack.NewDecoder(bytes.NewReader(payload)).Skip(); err != nil { // the library allocates the claimed length of a list
		return r, fmt.Errorf("%w: %s: %w", errMalformed, s.name, err)
	}
	e := s.make()
	if form, ok := e.(*FormRequested); ok {
		err = form.read(payload)
	} else {
		err = msgpack.Unmarshal(payload, e)
	}
	if err != nil {
		return r, fmt.Errorf("%w: %s: %w", errMalformed, s.name, err)
	}
	return Recorded{At: at, Event: e}, nil
}

// decodePayload decodes a payload. The library would allocate the claimed length first.
func decodePayload(dec *msgpack.Decoder, rd *bytes.Reader) ([]byte, error) {
	n, err := dec.DecodeBytesLen()
	if err != nil {
		return nil, err
	}
	if n < 0 || n > rd.Len() {
		return nil, fmt.Errorf("%w: a payload of %d bytes, and %d are left", errMalformed, n, rd.Len())
	}
	payload := make([]byte, n)
	return payload, dec.ReadFull(payload)
}
