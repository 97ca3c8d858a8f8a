package mux

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf8"

	"parley/actors/view"
	"parley/capabilities"
	"parley/internal/pack"
)

// appendResponse appends a response as a map with the members of its JSON.
func appendResponse(b []byte, resp any) ([]byte, error) {
	switch resp := resp.(type) {
	case view.Asked:
		return appendAsked(b, resp)
	case view.Outcome:
		return appendOutcome(b, resp)
	}
	text, err := marshal(resp)
	if err != nil {
		return b, err
	}
	body, err := FromJSON(text)
	return append(b, body...), err
}

// marshal writes JSON without escapes that the texts in it need not have.
func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}

func appendAsked(b []byte, a view.Asked) (_ []byte, err error) {
	b, m := beginMap(b)
	b = m.id(b, "form", a.Form)
	b = m.id(b, "promise", a.Promise)
	b = pack.AppendUint(m.add(b, "number"), a.Number)
	if a.Outcome != nil {
		if b, err = appendOutcome(m.add(b, "outcome"), *a.Outcome); err != nil {
			return b, err
		}
	}
	b = m.flag(b, "unreachable", a.Unreachable)
	return m.end(b), nil
}

func appendOutcome(b []byte, o view.Outcome) (_ []byte, err error) {
	b, m := beginMap(b)
	b = pack.AppendString(m.add(b, "status"), string(o.Status))
	b = m.id(b, "form", o.Form)
	b = m.id(b, "promise", o.Promise)
	b = m.id(b, "by", o.By)
	b = m.string(b, "byName", o.ByName)
	b = m.string(b, "at", o.At.String())
	b = m.string(b, "note", o.Note)
	if !o.Values.IsNull() {
		if b, err = AppendValue(m.add(b, "values"), o.Values); err != nil {
			return b, err
		}
	}
	if len(o.Order) > 0 {
		b = pack.AppendArray(m.add(b, "order"), len(o.Order))
		for _, name := range o.Order {
			b = appendText(b, name)
		}
	}
	b = m.string(b, "digest", o.Digest)
	b = m.flag(b, "allowed", o.Allowed)
	b = m.string(b, "editedInput", o.EditedInput)
	b = m.string(b, "editedDigest", o.EditedDigest)
	if o.Votes != nil { // few have those
		if b, err = appendResponse(m.add(b, "votes"), o.Votes); err != nil {
			return b, err
		}
	}
	return m.end(b), nil
}

// mapWriter counts the pairs of a map of at most 15.
type mapWriter struct{ at, pairs int }

func beginMap(b []byte) ([]byte, mapWriter) { return append(b, 0), mapWriter{at: len(b)} }

func (m *mapWriter) end(b []byte) []byte {
	pack.AppendMap(b[:m.at], m.pairs)
	return b
}

// add appends a name, whose value follows.
func (m *mapWriter) add(b []byte, name string) []byte {
	m.pairs++
	return pack.AppendString(b, name)
}

func (m *mapWriter) string(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	return appendText(m.add(b, name), value)
}

func (m *mapWriter) id(b []byte, name string, id capabilities.ID) []byte {
	if id.IsZero() {
		return b
	}
	return id.Append(pack.AppendText(m.add(b, name), capabilities.IDTextSize))
}

func (m *mapWriter) flag(b []byte, name string, value bool) []byte {
	if !value {
		return b
	}
	return pack.AppendBool(m.add(b, name), true)
}

// appendText appends a text with replacement characters for what is not UTF-8, as JSON has it.
func appendText(b []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = string([]rune(s))
	}
	return pack.AppendString(b, s)
}

// AppendValue appends a value as its JSON has it.
func AppendValue(b []byte, v capabilities.Value) (_ []byte, err error) {
	if s, ok := v.AsString(); ok {
		return appendText(b, s), nil
	}
	if n, ok := v.AsInt(); ok {
		return pack.AppendInt(b, n), nil
	}
	if f, ok := v.AsFloat(); ok {
		return pack.AppendFloat(b, f), nil
	}
	if t, ok := v.AsBool(); ok {
		return pack.AppendBool(b, t), nil
	}
	if l, ok := v.AsList(); ok {
		b = pack.AppendArray(b, len(l))
		for _, e := range l {
			if b, err = AppendValue(b, e); err != nil {
				return b, err
			}
		}
		return b, nil
	}
	if r, ok := v.AsRecord(); ok {
		return AppendRecord(b, r)
	}
	if v.IsNull() {
		return pack.AppendNil(b), nil
	}
	text, err := v.MarshalJSON()
	if err != nil {
		return b, err
	}
	body, err := FromJSON(text)
	return append(b, body...), err
}

// AppendRecord appends a map of values, in the order of their names.
func AppendRecord(b []byte, r map[string]capabilities.Value) (_ []byte, err error) {
	names := make([]string, 0, 16) // on the stack, for most records
	for name := range r {
		names = append(names, name)
	}
	slices.Sort(names)
	b = pack.AppendMap(b, len(r))
	for _, name := range names {
		if b, err = AppendValue(appendText(b, name), r[name]); err != nil {
			return b, err
		}
	}
	return b, nil
}
