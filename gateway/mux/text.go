package mux

import (
	"bytes"
	"encoding/json"
	"strconv"

	"parley"
)

// ToJSON returns a body as JSON. A body that is JSON as text is returned as it is. It refuses a malformed one.
func ToJSON(body []byte) ([]byte, error) {
	r := NewReader(body)
	if r.IsJSON() {
		return r.JSON(), r.err
	}
	text, err := r.appendJSON(make([]byte, 0, len(body)+len(body)/4), MaxDepth)
	if err == nil {
		err = r.err
	}
	return text, err
}

func (r *Reader) appendJSON(b []byte, depth int) (_ []byte, err error) {
	if depth == 0 {
		r.fail()
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
