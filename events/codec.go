package events

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"parley/capabilities"
)

var errMalformed = errors.New("malformed event")

// Append encodes events one after another behind dst. Each is the msgpack sequence: kind, version, time,
// payload, where the payload is an array in bytes of the 32-bit form. It fails only for a value that cannot
// be passed.
func Append(dst []byte, evs ...Recorded) ([]byte, error) {
	buf := bytes.NewBuffer(dst)
	enc := msgpack.GetEncoder()
	defer msgpack.PutEncoder(enc)
	enc.Reset(buf)
	enc.UseCompactInts(true)
	enc.SetSortMapKeys(true)
	enc.UseArrayEncodedStructs(true)
	for _, r := range evs {
		if err := appendOne(enc, buf, r); err != nil {
			return dst, fmt.Errorf("encode %s: %w", Name(r.Event), err)
		}
	}
	return buf.Bytes(), nil
}

func appendOne(enc *msgpack.Encoder, buf *bytes.Buffer, r Recorded) error {
	k := r.Event.kind()
	w := writer{enc: enc}
	w.uint(uint64(k))
	plain, isPlain := r.Event.(*FormRequested)
	isPlain = isPlain && plain.Origin == nil
	if isPlain { // programs before this one read it too
		w.uint(1)
	} else {
		w.uint(uint64(schemas[k].version))
	}
	w.time(r.At)
	if w.err != nil {
		return w.err
	}
	buf.Write([]byte{msgpcode.Bin32, 0, 0, 0, 0}) // the length is known afterwards
	start := buf.Len()
	if isPlain {
		w.form(plain, formFields-1)
	} else {
		w.do(enc.Encode(r.Event))
	}
	if w.err != nil {
		return w.err
	}
	all := buf.Bytes()
	binary.BigEndian.PutUint32(all[start-4:], uint32(len(all)-start))
	return nil
}

// Decode reads count events that Append wrote, and nothing may follow them. Its errors are an
// *UnknownError for what a newer program wrote, and otherwise say that the encoding is malformed; the
// events before the one at fault are returned too.
func Decode(body []byte, count int) ([]Recorded, error) {
	return decodeAs(schemas, body, count)
}

func decodeAs(known map[Kind]schema, body []byte, count int) ([]Recorded, error) {
	rd := bytes.NewReader(body)
	dec := msgpack.NewDecoder(rd)
	evs := make([]Recorded, 0, min(count, 1024))
	for range count {
		r, err := decodeOne(known, dec, rd)
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

// decodeOne reads the next event from dec, which reads from rd and no further than it has to.
func decodeOne(known map[Kind]schema, dec *msgpack.Decoder, rd *bytes.Reader) (r Recorded, err error) {
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
	s, ok := known[Kind(kind)]
	if !ok {
		return r, &UnknownError{Kind: Kind(kind), Version: version}
	}
	if payload, err = s.lift(Kind(kind), version, payload); err != nil {
		return r, err
	}
	if err := msgpack.NewDecoder(bytes.NewReader(payload)).Skip(); err != nil { // the library allocates what a list claims to be
		return r, fmt.Errorf("%w: %s: %w", errMalformed, s.name, err)
	}
	e := s.make()
	if err := msgpack.Unmarshal(payload, e); err != nil {
		return r, fmt.Errorf("%w: %s: %w", errMalformed, s.name, err)
	}
	return Recorded{At: at, Event: e}, nil
}

// decodePayload does not leave it to the library, which allocates what the length claims.
func decodePayload(dec *msgpack.Decoder, rd *bytes.Reader) ([]byte, error) {
	n, err := dec.DecodeBytesLen()
	if err != nil {
		return nil, err
	}
	if n < 0 || n > rd.Len() {
		return nil, fmt.Errorf("%w: a payload of %d bytes, and %d are left", errMalformed, n, rd.Len())
	}
	payload := make([]byte, n, n+1) // an upcast may lengthen it
	return payload, dec.ReadFull(payload)
}
