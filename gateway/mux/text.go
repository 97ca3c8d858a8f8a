package mux

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"parley"
	"parley/gateway/api"
	"parley/internal/pack"
)

// ToJSON returns a body as JSON. A body that is JSON as text is returned as it is. It refuses a malformed one with
// INVALID_ARGUMENT, and one that is nested too deeply with TOO_LARGE.
func ToJSON(body []byte) ([]byte, error) {
	r := NewReader(body)
	if r.IsJSON() {
		return r.JSON(), r.err
	}
	text, err := r.appendJSON(make([]byte, 0, len(body)+len(body)/4), MaxDepth+1)
	if err == nil {
		err = r.err
	}
	return text, err
}

func (r *Reader) appendJSON(b []byte, depth int) (_ []byte, err error) {
	if depth == 0 && r.err == nil {
		r.fail()
		r.err = api.TooDeep()
	}
	if r.err != nil {
		return b, r.err
	}
	switch c := r.next(); kindOf(c) {
	case aString:
		return appendQuoted(b, r.Text())
	case anArray:
		b = append(b, '[')
		for i := range r.Array() {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = r.appendJSON(b, depth-1); err != nil {
				return b, err
			}
		}
		return append(b, ']'), r.err
	case aMap:
		b = append(b, '{')
		for i := range r.Map() {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendQuoted(b, r.Text()); err == nil {
				b, err = r.appendJSON(append(b, ':'), depth-1)
			}
			if err != nil {
				return b, err
			}
		}
		return append(b, '}'), r.err
	case anExt:
		text := r.JSON()
		if r.err == nil && !json.Valid(text) {
			return b, parley.Refuse(parley.InvalidArgument, "a text of a frame is not JSON")
		}
		return append(b, text...), r.err
	}
	return appendScalar(b, r.scalar()), r.err
}

func appendScalar(b []byte, v any) []byte {
	switch v := v.(type) {
	case bool:
		return strconv.AppendBool(b, v)
	case uint64:
		return strconv.AppendUint(b, v, 10)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case float64:
		start := len(b)
		b = strconv.AppendFloat(b, v, 'g', -1, 64)
		if !bytes.ContainsAny(b[start:], ".e") {
			b = append(b, ".0"...) // it stays a number with a fraction
		}
		return b
	}
	return append(b, "null"...)
}

func appendQuoted(b, text []byte) ([]byte, error) {
	for _, c := range text {
		if c < ' ' || c == '"' || c == '\\' || c >= 0x80 {
			quoted, err := json.Marshal(string(text))
			return append(b, quoted...), err
		}
	}
	return append(append(append(b, '"'), text...), '"'), nil
}

// FromJSON returns JSON as a body of maps and lists. It refuses what is not JSON, and numbers that msgpack does not have.
func FromJSON(text []byte) ([]byte, error) {
	var v any
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return nil, parley.Refuse(parley.InvalidArgument, "the text is not JSON: %v", err)
	}
	return appendValue(make([]byte, 0, len(text)), v)
}

func appendValue(b []byte, v any) (_ []byte, err error) {
	switch v := v.(type) {
	case nil:
		return pack.AppendNil(b), nil
	case bool:
		return pack.AppendBool(b, v), nil
	case string:
		return pack.AppendString(b, v), nil
	case json.Number:
		return appendNumber(b, v)
	case []any:
		b = pack.AppendArray(b, len(v))
		for _, e := range v {
			if b, err = appendValue(b, e); err != nil {
				return nil, err
			}
		}
		return b, nil
	case map[string]any:
		b = pack.AppendMap(b, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if b, err = appendValue(pack.AppendString(b, k), v[k]); err != nil {
				return nil, err
			}
		}
		return b, nil
	}
	return nil, fmt.Errorf("JSON has no %T", v)
}

// appendNumber appends a number of JSON: one with a point or an exponent as a float.
func appendNumber(b []byte, n json.Number) ([]byte, error) {
	if i, err := strconv.ParseInt(string(n), 10, 64); err == nil {
		return pack.AppendInt(b, i), nil
	}
	if u, err := strconv.ParseUint(string(n), 10, 64); err == nil {
		return pack.AppendUint(b, u), nil
	}
	f, err := n.Float64()
	if err != nil {
		return AppendJSON(b, string(n)), nil // it stays as it was written
	}
	return pack.AppendFloat(b, f), nil
}
