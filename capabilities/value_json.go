package capabilities

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"parley/internal/fault"
)

// Nesting returns the depth of the objects and lists in a JSON text: 1 for {} and 0 for a scalar. It does not parse the
// text, so a caller can bound hostile input with it first. The result for text that is not JSON is arbitrary.
func Nesting(text []byte) int {
	deepest, now, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			now++
			deepest = max(deepest, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return deepest
}

// The keys of objects that stand for values which JSON does not have.
const (
	jsonRef    = "$cap"    // {"$cap":"<id>","kind":"agent"}, with "facet" and "grant" where there are any
	jsonBytes  = "$bytes"  // {"$bytes":"<base64>"}
	jsonSealed = "$sealed" // {"$sealed":true}, without the ciphertext
)

type refJSON struct {
	Cap   ID    `json:"$cap"`
	Kind  Kind  `json:"kind"`
	Facet Facet `json:"facet,omitzero"`
	Grant ID    `json:"grant,omitzero"`
}

// MarshalJSON encodes the value as JSON. Record keys are sorted. Floats keep a point or an exponent, so that they are
// decoded as floats. A sealed value shows only that it is sealed.
func (v Value) MarshalJSON() ([]byte, error) {
	switch x := v.v.(type) {
	case float64:
		return []byte(floatText(x)), nil
	case []byte:
		return json.Marshal(map[string]string{jsonBytes: base64.StdEncoding.EncodeToString(x)})
	case sealed:
		return []byte(`{"` + jsonSealed + `":true}`), nil
	case string, list, record:
		return v.appendJSON(nil)
	case Ref:
		return json.Marshal(refJSON{Cap: x.Target, Kind: x.Kind, Facet: x.Facet, Grant: x.Grant})
	}
	return json.Marshal(v.v)
}

// appendJSON appends the encoding of a value. It uses one buffer for all levels: json.Marshal would check and copy each
// value once for every level above it.
func (v Value) appendJSON(b []byte) ([]byte, error) {
	switch x := v.v.(type) {
	case string:
		return appendString(b, x)
	case int64:
		return strconv.AppendInt(b, x, 10), nil
	case list:
		return x.appendJSON(b)
	case record:
		return x.appendJSON(b)
	}
	text, err := json.Marshal(v)
	return append(b, text...), err
}

func (l list) appendJSON(b []byte) (_ []byte, err error) {
	b = append(b, '[')
	for i, e := range l {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = e.appendJSON(b); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

func (r record) appendJSON(b []byte) (_ []byte, err error) {
	b = append(b, '{')
	for i, k := range slices.Sorted(maps.Keys(r)) {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = appendString(b, k); err != nil {
			return nil, err
		}
		if b, err = r[k].appendJSON(append(b, ':')); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

func appendString(b []byte, s string) ([]byte, error) {
	if isPlain(s) {
		return append(append(append(b, '"'), s...), '"'), nil
	}
	text, err := json.Marshal(s)
	return append(b, text...), err
}

// isPlain reports whether s needs no escaping in JSON, not even that of HTML.
func isPlain[T string | []byte](s T) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ', c >= utf8.RuneSelf, c == '"', c == '\\', c == '<', c == '>', c == '&':
			return false
		}
	}
	return true
}

func floatText(f float64) string {
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if strings.ContainsAny(s, ".eIN") {
		return s
	}
	return s + ".0"
}

// UnmarshalJSON decodes one JSON document, within the bounds of values. A "$cap" object becomes a Ref. The Ref is an
// unproved claim: its receiver has to check that it is held. UnmarshalJSON refuses a sealed value. It refuses with
// INVALID_ARGUMENT or TOO_LARGE.
func (v *Value) UnmarshalJSON(b []byte) error {
	got, err := ParseJSON(b)
	if err != nil {
		return err
	}
	*v = got
	return nil
}

// ParseJSON is UnmarshalJSON as a function.
func ParseJSON(b []byte) (Value, error) { return parseValue(b, false) }

// ParseShown decodes the output of MarshalJSON. Unlike ParseJSON it accepts a sealed value, without its ciphertext. So
// the output of a node can be decoded, but is still refused as input.
func ParseShown(b []byte) (Value, error) { return parseValue(b, true) }

func parseValue(b []byte, shown bool) (Value, error) {
	if len(b) > 2*MaxValueSize {
		return Value{}, fault.Refuse(fault.TooLarge, "%d bytes of JSON are over the limit of %d", len(b), 2*MaxValueSize)
	}
	if n := len(b); n >= 2 && b[0] == '"' && b[n-1] == '"' && isPlain(b[1:n-1]) { // the common case
		v := String(string(b[1 : n-1]))
		return v, v.Check()
	}
	if !utf8.Valid(b) {
		return Value{}, fault.Refuse(fault.InvalidArgument, "text is not valid UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	v, err := jsonReader{dec, shown}.value(0)
	if err != nil {
		return Value{}, notJSON(err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return Value{}, fault.Refuse(fault.InvalidArgument, "more than one JSON document")
	}
	return v, v.Check()
}

func notJSON(err error) error {
	if fault.CodeOf(err) != fault.Internal {
		return err
	}
	return fault.Refuse(fault.InvalidArgument, "not JSON: %v", err)
}

// jsonReader decodes values from JSON. With shown it accepts sealed values.
type jsonReader struct {
	*json.Decoder
	shown bool
}

func (r jsonReader) value(depth int) (Value, error) {
	if depth > MaxValueDepth {
		return Value{}, tooDeep()
	}
	tok, err := r.Token()
	if err != nil {
		return Value{}, err
	}
	switch tok := tok.(type) {
	case json.Delim:
		if tok == '[' {
			return r.list(depth)
		}
		return r.record(depth)
	case json.Number:
		return number(tok)
	}
	v := Value{tok} // nil, a bool or a string
	return v, v.check(depth)
}

func (r jsonReader) list(depth int) (Value, error) {
	l := list{}
	for r.More() {
		e, err := r.value(depth + 1)
		if err != nil {
			return Value{}, err
		}
		l = append(l, e)
	}
	_, err := r.Token()
	return Value{l}, err
}

func (r jsonReader) record(depth int) (Value, error) {
	all := record{}
	for r.More() {
		tok, err := r.Token()
		if err != nil {
			return Value{}, err
		}
		k, _ := tok.(string) // the decoder returns nothing else here
		if _, twice := all[k]; twice {
			return Value{}, fault.Refuse(fault.InvalidArgument, "key %.80q stands twice", k)
		}
		if all[k], err = r.value(depth + 1); err != nil {
			return Value{}, err
		}
	}
	if _, err := r.Token(); err != nil {
		return Value{}, err
	}
	if masked, ok := all[jsonSealed].AsBool(); r.shown && ok && masked && len(all) == 1 {
		return Sealed(nil), nil
	}
	return all.special()
}

// special returns the value that an object with one of the special keys stands for.
func (r record) special() (Value, error) {
	switch {
	case r[jsonRef].v != nil:
		return r.reference()
	case r[jsonBytes].v != nil && len(r) == 1:
		s, ok := r[jsonBytes].AsString()
		b, err := base64.StdEncoding.DecodeString(s)
		if !ok || err != nil {
			return Value{}, fault.Refuse(fault.InvalidArgument, "%s is not base64", jsonBytes)
		}
		return Bytes(b), nil
	case r[jsonSealed].v != nil:
		return Value{}, fault.Refuse(fault.InvalidArgument, "a sealed value cannot be given")
	}
	return Value{r}, nil
}

func (r record) reference() (Value, error) {
	plain, err := json.Marshal(map[string]Value(r))
	if err != nil {
		return Value{}, err
	}
	var ref refJSON
	dec := json.NewDecoder(bytes.NewReader(plain))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&ref); err != nil || ref.Cap.IsZero() {
		return Value{}, fault.Refuse(fault.InvalidArgument, "not a reference: want {%q:ID,\"kind\":KIND}", jsonRef)
	}
	if !KnownKind(ref.Kind) {
		return Value{}, fault.Refuse(fault.InvalidArgument, "unknown kind of reference %.40q", ref.Kind)
	}
	if err := ref.Facet.Check(); err != nil {
		return Value{}, err
	}
	return Reference(Ref{Target: ref.Cap, Kind: ref.Kind, Facet: ref.Facet, Grant: ref.Grant}), nil
}

// number parses a number. It is an integer if it fits 64 bits and has neither point nor exponent.
func number(n json.Number) (Value, error) {
	if i, err := strconv.ParseInt(string(n), 10, 64); err == nil {
		return Int(i), nil
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil {
		return Value{}, fault.Refuse(fault.InvalidArgument, "%.40q is no passable number", string(n))
	}
	return Float(f), nil
}

// Text returns the value on one line for people: text as it is, references as locators, sealed values masked, and
// everything else as JSON. It does not escape control characters.
func (v Value) Text() string {
	switch x := v.v.(type) {
	case string:
		return x
	case Ref:
		return Locator{ID: x.Target, Kind: x.Kind}.String()
	case sealed:
		return "••••••••"
	}
	b, err := v.MarshalJSON()
	if err != nil {
		return fmt.Sprintf("(%v)", err)
	}
	return string(b)
}
