package events

import (
	"bytes"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"

	"parley/capabilities"
	"parley/internal/pack"
)

// Reflection takes ten times as long as these functions. So the events of the life of a form or message have some. A
// test compares their encodings with those of reflection.

// appendPayload appends an event as an array of its fields.
func appendPayload(b []byte, e Event) ([]byte, error) {
	switch e := e.(type) {
	case *FormRequested:
		return appendRequested(b, e), nil
	case *FormAnswered:
		return appendAnswered(b, e), nil
	case *FormCancelled:
		return appendCancelled(b, e), nil
	case *MessagePosted:
		return appendPosted(b, e), nil
	case *MessageDelivered:
		return appendDelivered(b, e), nil
	case *ReceiptReported:
		return appendReported(b, e), nil
	}
	return encodeArray(b, e)
}

// encodeArray appends a struct as the array of its fields.
func encodeArray(b []byte, v any) ([]byte, error) {
	buf := bytes.NewBuffer(b)
	enc := msgpack.GetEncoder()
	defer msgpack.PutEncoder(enc)
	enc.Reset(buf)
	enc.UseCompactInts(true)
	enc.SetSortMapKeys(true)
	enc.UseArrayEncodedStructs(true)
	err := enc.Encode(v)
	return buf.Bytes(), err
}

// EncodeMsgpack writes the event as an array.
func (e *FormRequested) EncodeMsgpack(enc *msgpack.Encoder) error {
	return write(enc, appendRequested(nil, e))
}

// EncodeMsgpack writes the event as an array.
func (e *FormAnswered) EncodeMsgpack(enc *msgpack.Encoder) error {
	return write(enc, appendAnswered(nil, e))
}

// EncodeMsgpack writes the event as an array.
func (e *MessageDelivered) EncodeMsgpack(enc *msgpack.Encoder) error {
	return write(enc, appendDelivered(nil, e))
}

func write(enc *msgpack.Encoder, b []byte) error {
	_, err := enc.Writer().Write(b)
	return err
}

// appendRequested appends a form.
func appendRequested(b []byte, e *FormRequested) []byte {
	b = pack.AppendUint(pack.AppendArray(b, 25), e.Number)
	b = appendIDs(b, &e.ID, &e.Promise, &e.Resolver, &e.From, &e.To, &e.Via)
	b = appendFacet(b, e.Held())
	b = appendTexts(b, string(e.Kind), e.Title, e.Description)
	b = appendList(appendCall(b, e.Call), e.Fields, appendField)
	b = e.Deadline.AppendMsgpack(b)
	b = appendRoute(pack.AppendBool(b, e.NoForward), e.Route)
	b = appendOrigin(e.ReplyTo.AppendMsgpack(b), e.Origin)
	b = e.Date.AppendMsgpack(b)
	b = appendTexts(b, e.Key, e.Result)
	b = e.Forwarder.AppendMsgpack(b)
	return pack.AppendString(appendSteps(appendList(b, e.Chain, appendID), e.Steps), e.Asker)
}

// plainCall and callOfUse are the numbers of members in the two encodings of a call. That of an agent has the shorter one.
const (
	plainCall = 6
	callOfUse = 7
)

// EncodeMsgpack writes the call as an array.
func (c *Call) EncodeMsgpack(enc *msgpack.Encoder) error { return write(enc, appendCall(nil, c)) }

// DecodeMsgpack reads what EncodeMsgpack writes, and nothing else.
func (c *Call) DecodeMsgpack(dec *msgpack.Decoder) error {
	n, err := dec.DecodeArrayLen()
	if err != nil {
		return err
	}
	if n != plainCall && n != callOfUse {
		return fmt.Errorf("%w: a call of %d members", errMalformed, n)
	}
	var got Call
	if err := dec.DecodeMulti(&got.Folder, &got.Decider, &got.Reason, &got.Part, &got.Session, &got.Offers); err != nil {
		return fmt.Errorf("call: %w", err)
	}
	if n == callOfUse {
		if err := dec.Decode(&got.Use); err != nil || got.Use == nil {
			return fmt.Errorf("%w: the use of a call", errMalformed)
		}
	}
	*c = got
	return nil
}

func appendCall(b []byte, c *Call) []byte {
	if c == nil {
		return pack.AppendNil(b)
	}
	size := plainCall
	if c.Use != nil {
		size = callOfUse
	}
	b = appendIDs(appendTexts(pack.AppendArray(b, size), c.Folder), &c.Decider)
	b = appendList(appendTexts(b, c.Reason, c.Part, c.Session), c.Offers, appendOffer)
	if c.Use == nil {
		return b
	}
	b = c.Use.By.AppendMsgpack(pack.AppendArray(b, 6))
	return appendTexts(b, c.Use.Holder, c.Use.Through, string(c.Use.Kind), c.Use.Name, c.Use.Called)
}

func appendOffer(b []byte, o *Offer) []byte {
	b = appendCoverage(appendTexts(pack.AppendArray(b, 3), o.ID), &o.Rule)
	return appendTexts(b, o.Words)
}

func appendCoverage(b []byte, c *Coverage) []byte {
	b = appendTexts(pack.AppendArray(b, 6), string(c.Kind), c.Folder, c.Input)
	b = appendList(b, c.Commands, appendPattern)
	return appendTexts(b, c.File, c.Glob)
}

func appendPattern(b []byte, p *CommandPattern) []byte {
	b = appendList(pack.AppendArray(b, 3), p.Words, appendText)
	b = appendList(b, p.Options, appendText)
	return appendTexts(b, p.Operands)
}

func appendText(b []byte, text *string) []byte { return appendTexts(b, *text) }

func appendSteps(b []byte, s *CopySteps) []byte {
	if s == nil {
		return pack.AppendNil(b)
	}
	return appendList(b, *s, appendStep)
}

func appendOrigin(b []byte, o *Origin) []byte {
	if o == nil {
		return pack.AppendNil(b)
	}
	b = appendTexts(pack.AppendArray(b, 8), o.Dialect, o.ID, o.Session, o.Submit, o.Run, o.Agent)
	return pack.AppendBool(pack.AppendUint(b, o.Turn), o.Bare)
}

func appendField(b []byte, f *Field) []byte {
	b = appendTexts(pack.AppendArray(b, 10), f.Name, f.Label, string(f.Type))
	b = pack.AppendBool(b, f.Required)
	b = f.Default.AppendMsgpack(b)
	b = appendTexts(b, f.Placeholder, f.Help)
	b = appendList(b, f.Options, appendOption)
	b = f.Example.AppendMsgpack(b)
	if f.Pattern == nil {
		return pack.AppendNil(b)
	}
	return pack.AppendBytes(b, f.Pattern)
}

func appendOption(b []byte, o *Option) []byte {
	return appendTexts(pack.AppendArray(b, 3), o.Value, o.Label, o.Description)
}

func appendAnswered(b []byte, e *FormAnswered) []byte {
	b = appendIDs(pack.AppendArray(b, 7), &e.Form, &e.By)
	b = e.Date.AppendMsgpack(e.Values.AppendMsgpack(b))
	b = appendList(b, e.Grants, appendGrant)
	return e.Answer.AppendMsgpack(pack.AppendBool(b, e.Withheld))
}

func appendCancelled(b []byte, e *FormCancelled) []byte {
	b = appendTexts(e.Form.AppendMsgpack(pack.AppendArray(b, 6)), string(e.Reason))
	b = appendTexts(e.By.AppendMsgpack(b), e.Note)
	return e.Answer.AppendMsgpack(e.Date.AppendMsgpack(b))
}

func appendDelivered(b []byte, e *MessageDelivered) []byte {
	b = appendList(pack.AppendArray(b, 2), e.Items, func(b []byte, n *uint64) []byte { return pack.AppendUint(b, *n) })
	return appendTexts(b, e.Refused)
}

func appendGrant(b []byte, g *capabilities.Grant) []byte {
	b = appendIDs(pack.AppendArray(b, 11), &g.ID, &g.Parent, &g.Target)
	b = appendFacet(appendTexts(b, string(g.Kind)), g.Facet)
	b = appendIDs(appendTexts(b, g.Name), &g.To, &g.By, &g.Message)
	return g.Revoked.AppendMsgpack(g.At.AppendMsgpack(b))
}

func appendFacet(b []byte, f capabilities.Facet) []byte { return f.AppendMsgpack(b) }

// appendList appends a list with a function for its elements. A list that is nil stays nil.
func appendList[T any](b []byte, list []T, one func([]byte, *T) []byte) []byte {
	if list == nil {
		return pack.AppendNil(b)
	}
	b = pack.AppendArray(b, len(list))
	for i := range list {
		b = one(b, &list[i])
	}
	return b
}

func appendID(b []byte, id *capabilities.ID) []byte { return id.AppendMsgpack(b) }

func appendIDs(b []byte, ids ...*capabilities.ID) []byte {
	for _, id := range ids {
		b = id.AppendMsgpack(b)
	}
	return b
}

func appendTexts(b []byte, texts ...string) []byte {
	for _, t := range texts {
		b = pack.AppendString(b, t)
	}
	return b
}
