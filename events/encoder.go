package events

import (
	"github.com/vmihailenco/msgpack/v5"

	"parley/capabilities"
)

// The events of the way from ask to answer encode themselves: reflection takes several times as long. What
// they write is what reflection would; a test holds them to that.

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

// form writes all fields of a form but its Origin, as an array of n.
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

// writer writes one thing after another until the first error.
type writer struct {
	enc *msgpack.Encoder
	err error
}

func (w *writer) do(err error) {
	if w.err == nil {
		w.err = err
	}
}

func (w *writer) null()                      { w.do(w.enc.EncodeNil()) }
func (w *writer) array(n int)                { w.do(w.enc.EncodeArrayLen(n)) }
func (w *writer) uint(n uint64)              { w.do(w.enc.EncodeUint(n)) }
func (w *writer) bool(b bool)                { w.do(w.enc.EncodeBool(b)) }
func (w *writer) any(x any)                  { w.do(w.enc.Encode(x)) }
func (w *writer) time(t capabilities.Time)   { w.do(t.EncodeMsgpack(w.enc)) }
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
