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

// Append appends the encoding of events to dst. Each is a msgpack sequence of kind, version, time and payload. The
// payload is an array in bytes of the 32-bit form. It fails only for a value that cannot be encoded.
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
	if isPlain { // earlier versions of the program can decode it
		w.uint(1)
	} else {
		w.uint(uint64(schemas[k].version))
	}
	w.time(r.At)
	if w.err != nil {
		return w.err
	}
	buf.Write([]byte{msgpcode.Bin32, 0, 0, 0, 0}) // the length is filled in below
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

// Decode decodes exactly count events. It fails with an *UnknownError for an event of a newer version of the program.
// Any other error means a malformed encoding. With an error, it also returns the events before it.
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

// decodeOne decodes the next event from dec, which reads no further in rd than needed.
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
	if err := msgpack.NewDecoder(bytes.NewReader(payload)).Skip(); err != nil { // the library allocates the claimed length of a list
		return r, fmt.Errorf("%w: %s: %w", errMalformed, s.name, err)
	}
	e := s.make()
	if err := msgpack.Unmarshal(payload, e); err != nil {
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
	payload := make([]byte, n, n+1) // an upcast may lengthen it
	return payload, dec.ReadFull(payload)
}

// The events of a form's life encode themselves, since reflection takes several times as long. A test compares their
// encoding with that of reflection.

// formFields is the number of fields of FormRequested.
const formFields = 21

// EncodeMsgpack writes the event as an array.
func (e *FormRequested) EncodeMsgpack(enc *msgpack.Encoder) error {
	w := writer{enc: enc}
	w.form(e, formFields)
	if e.Origin == nil {
		w.null()
	} else {
		w.origin(e.Origin)
	}
	return w.err
}

// form encodes all fields of a form but its Origin, as the first of an array of n.
func (w *writer) form(e *FormRequested, n int) {
	w.array(n)
	w.uint(e.Number)
	w.ids(&e.ID, &e.Promise, &e.Resolver, &e.From, &e.To, &e.Via)
	w.facet(e.Facet)
	w.text(string(e.Kind), e.Title, e.Description)
	if e.Fields == nil {
		w.null()
	} else {
		w.array(len(e.Fields))
		for i := range e.Fields {
			w.field(&e.Fields[i])
		}
	}
	w.time(e.Deadline)
	w.bool(e.NoForward)
	w.ids(&e.ReplyTo)
	w.time(e.Date)
	w.text(e.Key, e.Result)
	w.ids(&e.Forwarder)
	w.idList(e.Chain)
}

func (w *writer) origin(o *Origin) {
	w.array(8)
	w.text(o.Dialect, o.ID, o.Session, o.Submit, o.Run, o.Agent)
	w.uint(o.Turn)
	w.bool(o.Bare)
}

// EncodeMsgpack writes the event as an array.
func (e *FormAnswered) EncodeMsgpack(enc *msgpack.Encoder) error {
	w := writer{enc: enc}
	w.array(7)
	w.ids(&e.Form, &e.By)
	w.value(e.Values)
	w.time(e.Date)
	if e.Grants == nil {
		w.null()
	} else {
		w.array(len(e.Grants))
		for i := range e.Grants {
			w.any(&e.Grants[i])
		}
	}
	w.bool(e.Withheld)
	w.ids(&e.Answer)
	return w.err
}

// EncodeMsgpack writes the event as an array.
func (e *MessageDelivered) EncodeMsgpack(enc *msgpack.Encoder) error {
	w := writer{enc: enc}
	w.delivered(e)
	return w.err
}

// writer encodes values until the first error.
type writer struct {
	enc *msgpack.Encoder
	err error
}

func (w *writer) do(err error) {
	if w.err == nil {
		w.err = err
	}
}

func (w *writer) null() { w.do(w.enc.EncodeNil()) }

func (w *writer) array(n int) { w.do(w.enc.EncodeArrayLen(n)) }

func (w *writer) uint(n uint64) { w.do(w.enc.EncodeUint(n)) }

func (w *writer) bool(b bool) { w.do(w.enc.EncodeBool(b)) }

func (w *writer) any(x any) { w.do(w.enc.Encode(x)) }

func (w *writer) time(t capabilities.Time) { w.do(t.EncodeMsgpack(w.enc)) }

func (w *writer) value(v capabilities.Value) { w.do(v.EncodeMsgpack(w.enc)) }

func (w *writer) text(texts ...string) {
	for _, t := range texts {
		w.do(w.enc.EncodeString(t))
	}
}

func (w *writer) ids(ids ...*capabilities.ID) {
	for _, id := range ids {
		w.do(capabilities.EncodeID(w.enc, id))
	}
}

func (w *writer) facet(f capabilities.Facet) {
	w.array(3)
	w.text(string(f.Mode))
	w.time(f.Until)
	w.uint(uint64(f.Uses))
}

func (w *writer) idList(ids []capabilities.ID) {
	if ids == nil {
		w.null()
		return
	}
	w.array(len(ids))
	for i := range ids {
		w.ids(&ids[i])
	}
}

func (w *writer) field(f *Field) {
	w.array(10)
	w.text(f.Name, f.Label, string(f.Type))
	w.bool(f.Required)
	w.value(f.Default)
	w.text(f.Placeholder, f.Help)
	if f.Options == nil {
		w.null()
	} else {
		w.array(len(f.Options))
		for _, o := range f.Options {
			w.array(3)
			w.text(o.Value, o.Label, o.Description)
		}
	}
	w.value(f.Example)
	w.do(w.enc.EncodeBytes(f.Pattern))
}

func (w *writer) delivered(e *MessageDelivered) {
	w.array(2)
	if e.Items == nil {
		w.null()
	} else {
		w.array(len(e.Items))
		for _, p := range e.Items {
			w.uint(p)
		}
	}
	w.text(e.Refused)
}
