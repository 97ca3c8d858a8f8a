package mux

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"

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
		b = strconv.AppendFloat(b, v, 'g', -1, 64) // as capabilities.Value
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

// FromJSON returns JSON as a body of maps and lists, with the members in their order. It refuses what is not JSON. A number
// that msgpack does not have, or not as it was written, stays a text of JSON.
func FromJSON(text []byte) ([]byte, error) { return appendFromJSON(make([]byte, 0, len(text)), text) }

func appendFromJSON(b, text []byte) ([]byte, error) {
	if !json.Valid(text) {
		return nil, parley.Refuse(parley.InvalidArgument, "the text is not JSON")
	}
	s := scanner{text}
	return s.value(b)
}

// scanner reads JSON that is valid.
type scanner struct{ rest []byte }

// next returns the next character, without reading it.
func (s *scanner) next() byte {
	s.rest = bytes.TrimLeft(s.rest, " \t\r\n,:") // where a comma or colon stands is known
	return s.rest[0]
}

// value appends the next value.
func (s *scanner) value(b []byte) ([]byte, error) {
	switch c := s.next(); c {
	case '{', '[':
		return s.container(b, c == '{')
	case '"':
		return s.text(b)
	}
	n := bytes.IndexAny(s.rest, " \t\r\n,:]}")
	if n < 0 {
		n = len(s.rest)
	}
	word := s.rest[:n]
	s.rest = s.rest[n:]
	switch word[0] {
	case 'n':
		return pack.AppendNil(b), nil
	case 't', 'f':
		return pack.AppendBool(b, word[0] == 't'), nil
	}
	return appendNumber(b, string(word)), nil
}

// container appends a list, or a map. How many elements it has is known at its end.
func (s *scanner) container(b []byte, isMap bool) (_ []byte, err error) {
	s.rest = s.rest[1:]
	var room [5]byte // the longest head
	at, n := len(b), 0
	b = append(b, room[:]...)
	for c := s.next(); c != ']' && c != '}'; c = s.next() {
		if isMap {
			if b, err = s.text(b); err != nil {
				return b, err
			}
		}
		if b, err = s.value(b); err != nil {
			return b, err
		}
		n++
	}
	s.rest = s.rest[1:]
	head := pack.AppendArray(room[:0], n)
	if isMap {
		head = pack.AppendMap(room[:0], n)
	}
	copy(b[at:], head)
	return append(b[:at+len(head)], b[at+len(room):]...), nil
}

// text appends the next text.
func (s *scanner) text(b []byte) ([]byte, error) {
	s.next()
	n, plain := 1, true
	for s.rest[n] != '"' {
		if s.rest[n] == '\\' {
			plain = false
			n++
		}
		n++
	}
	quoted := s.rest[:n+1]
	s.rest = s.rest[n+1:]
	if plain && utf8.Valid(quoted) {
		return pack.AppendString(b, quoted[1:n]), nil
	}
	var text string
	err := json.Unmarshal(quoted, &text)
	return pack.AppendString(b, text), err
}

// appendNumber appends a number of JSON: one with a point or an exponent as a float, if that is written so.
func appendNumber(b []byte, n string) []byte {
	if i, err := strconv.ParseInt(n, 10, 64); err == nil && n != "-0" {
		return pack.AppendInt(b, i)
	}
	if u, err := strconv.ParseUint(n, 10, 64); err == nil {
		return pack.AppendUint(b, u)
	}
	f, err := strconv.ParseFloat(n, 64)
	if err != nil || string(appendScalar(nil, f)) != n {
		return AppendJSON(b, n)
	}
	return pack.AppendFloat(b, f)
}
