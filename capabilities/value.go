package capabilities

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	"parley/internal/fault"
)

// Bounds of a Value.
const (
	MaxValueSize  = 256 << 10 // bytes of its encoding
	MaxValueDepth = 32        // lists and records within each other
)

// Value is data that one agent can pass to another: null, bool, int64, float64, string, bytes, a list, a record, or a
// Ref. A sealed value can be opened by its node alone. The zero Value is null. A Value is immutable. It keeps the
// slices and maps that it is made of.
type Value struct{ v any }

type (
	sealed []byte
	list   []Value
	record map[string]Value
)

// Null returns the null value.
func Null() Value { return Value{} }

// Bool returns a boolean value.
func Bool(b bool) Value { return Value{b} }

// Int returns an integer.
func Int(i int64) Value { return Value{i} }

// Float returns a floating-point number. NaN and infinities are refused by Check.
func Float(f float64) Value { return Value{f} }

// String returns a string. Invalid UTF-8 is refused by Check.
func String(s string) Value { return Value{s} }

// Bytes returns a value of bytes, which it keeps.
func Bytes(b []byte) Value { return Value{b} }

// List returns a list, which it keeps.
func List(vs ...Value) Value { return Value{list(vs)} }

// Record returns a record, whose map it keeps.
func Record(m map[string]Value) Value { return Value{record(m)} }

// Reference returns a reference.
func Reference(r Ref) Value { return Value{r} }

// Sealed returns a secret that only its node can open.
func Sealed(ciphertext []byte) Value { return Value{sealed(ciphertext)} }

// Strings returns a list of strings.
func Strings(ss ...string) Value {
	vs := make([]Value, len(ss))
	for i, s := range ss {
		vs[i] = String(s)
	}
	return List(vs...)
}

func tooDeep() error {
	return fault.Refuse(fault.TooLarge, "values may be nested %d deep at most", MaxValueDepth)
}

// Check refuses with INVALID_ARGUMENT or TOO_LARGE a value that is not well formed, too deep or too large.
func (v Value) Check() error {
	if err := v.check(0); err != nil {
		return err
	}
	if n := v.size(); n > MaxValueSize {
		return fault.Refuse(fault.TooLarge, "a value of %d bytes is over the limit of %d", n, MaxValueSize)
	}
	return nil
}

func (v Value) check(depth int) error {
	if depth > MaxValueDepth {
		return tooDeep()
	}
	switch x := v.v.(type) {
	case string:
		return checkText(x)
	case float64:
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fault.Refuse(fault.InvalidArgument, "%v is no passable number", x)
		}
	case list:
		for _, e := range x {
			if err := e.check(depth + 1); err != nil {
				return err
			}
		}
	case record:
		for k, e := range x {
			if err := checkText(k); err != nil {
				return err
			}
			if err := e.check(depth + 1); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkText(s string) error {
	if !utf8.ValidString(s) {
		return fault.Refuse(fault.InvalidArgument, "text is not valid UTF-8")
	}
	return nil
}

// size returns the approximate length of the value's encoding, at least the length of its payload.
func (v Value) size() int {
	switch x := v.v.(type) {
	case string:
		return len(x) + 5
	case []byte:
		return len(x) + 5
	case sealed:
		return len(x) + 6
	case list:
		n := 5
		for _, e := range x {
			n += e.size()
		}
		return n
	case record:
		n := 5
		for k, e := range x {
			n += len(k) + 5 + e.size()
		}
		return n
	case Ref:
		return 160
	}
	return 9
}

// IsNull reports whether v is Null.
func (v Value) IsNull() bool { return v.v == nil }

// IsSealed reports whether v is a sealed secret.
func (v Value) IsSealed() bool { _, ok := v.v.(sealed); return ok }

// AsBool returns the truth value, and whether v is one.
func (v Value) AsBool() (bool, bool) { b, ok := v.v.(bool); return b, ok }

// AsInt returns the integer, and whether v is one.
func (v Value) AsInt() (int64, bool) { i, ok := v.v.(int64); return i, ok }

// AsFloat returns the number, and whether v is a Float.
func (v Value) AsFloat() (float64, bool) { f, ok := v.v.(float64); return f, ok }

// AsString returns the string, and whether v is one.
func (v Value) AsString() (string, bool) { s, ok := v.v.(string); return s, ok }

// AsBytes returns the bytes, and whether v is bytes.
func (v Value) AsBytes() ([]byte, bool) { b, ok := v.v.([]byte); return b, ok }

// AsRef returns the reference, and whether v is one.
func (v Value) AsRef() (Ref, bool) { r, ok := v.v.(Ref); return r, ok }

// AsSealed returns the ciphertext of a sealed secret, and whether v is one.
func (v Value) AsSealed() ([]byte, bool) { b, ok := v.v.(sealed); return b, ok }

// AsList returns the elements, and whether v is a list.
func (v Value) AsList() ([]Value, bool) { l, ok := v.v.(list); return l, ok }

// AsRecord returns the record's map, which the caller must not change, and whether v is a record.
func (v Value) AsRecord() (map[string]Value, bool) { r, ok := v.v.(record); return r, ok }

// TypeName returns the name of the value's type for people.
func (v Value) TypeName() string {
	switch v.v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case int64:
		return "integer"
	case float64:
		return "number"
	case string:
		return "text"
	case []byte:
		return "bytes"
	case list:
		return "list"
	case record:
		return "record"
	case Ref:
		return "reference"
	case sealed:
		return "sealed value"
	}
	return fmt.Sprintf("%T", v.v)
}

// Equal reports whether two values are equal and of the same type.
func (v Value) Equal(o Value) bool {
	switch x := v.v.(type) {
	case float64: // bit by bit: 0 and -0 differ
		y, ok := o.v.(float64)
		return ok && math.Float64bits(x) == math.Float64bits(y)
	case []byte:
		y, ok := o.v.([]byte)
		return ok && bytes.Equal(x, y)
	case sealed:
		y, ok := o.v.(sealed)
		return ok && bytes.Equal(x, y)
	case list:
		y, ok := o.v.(list)
		return ok && slices.EqualFunc(x, y, Value.Equal)
	case record:
		y, ok := o.v.(record)
		return ok && maps.EqualFunc(x, y, Value.Equal)
	}
	switch o.v.(type) {
	case []byte, sealed, list, record:
		return false
	}
	return v.v == o.v
}

// Map returns the value with each leaf replaced by the result of fn. A leaf is anything but a list or a record. It
// stops at fn's first error.
func (v Value) Map(fn func(Value) (Value, error)) (Value, error) {
	switch x := v.v.(type) {
	case list:
		out := make(list, len(x))
		for i, e := range x {
			m, err := e.Map(fn)
			if err != nil {
				return Value{}, err
			}
			out[i] = m
		}
		return Value{out}, nil
	case record:
		out := make(record, len(x))
		for _, k := range slices.Sorted(maps.Keys(x)) {
			m, err := x[k].Map(fn)
			if err != nil {
				return Value{}, err
			}
			out[k] = m
		}
		return Value{out}, nil
	}
	return fn(v)
}

// Has reports whether fn returns true for a leaf of the value.
func (v Value) Has(fn func(Value) bool) bool {
	switch x := v.v.(type) {
	case list:
		for _, e := range x {
			if e.Has(fn) {
				return true
			}
		}
		return false
	case record:
		for _, e := range x {
			if e.Has(fn) {
				return true
			}
		}
		return false
	}
	return fn(v)
}

// IsRef reports whether the value is a reference.
func (v Value) IsRef() bool { _, ok := v.v.(Ref); return ok }

// Refs returns the references within the value, in canonical order.
func (v Value) Refs() []Ref {
	var refs []Ref
	_, _ = v.Map(func(leaf Value) (Value, error) { // fn returns no error, so Map does not
		if r, ok := leaf.AsRef(); ok {
			refs = append(refs, r)
		}
		return leaf, nil
	})
	return refs
}

// Extent is the size of a value: the number of its parts, with itself, and the approximate bytes of its encoding.
type Extent struct{ Parts, Bytes int }

// Extent returns the size of the value. It counts nothing deeper than MaxValueDepth.
func (v Value) Extent() Extent { return v.extentAt(0) }

func (v Value) extentAt(depth int) Extent {
	e := Extent{Parts: 1, Bytes: 9}
	if depth > MaxValueDepth {
		return e
	}
	add := func(x Extent) { e.Parts, e.Bytes = e.Parts+x.Parts, e.Bytes+x.Bytes }
	switch x := v.v.(type) {
	case string:
		e.Bytes = 5 + len(x)
	case list:
		for _, item := range x {
			add(item.extentAt(depth + 1))
		}
	case record:
		for k, item := range x {
			add(Extent{Parts: 1, Bytes: 5 + len(k)})
			add(item.extentAt(depth + 1))
		}
	case []byte:
		e.Bytes = 6 + len(x)*4/3 // as JSON
	case sealed:
		e.Bytes = 6 + len(x)
	case Ref:
		e = Extent{Parts: 9, Bytes: 160}
	}
	return e
}
