package mux

import (
	"math"
	"slices"
	"strings"

	"parley/capabilities"
	"parley/internal/pack"
)

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
	return appendFromJSON(b, text)
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

// record reads a map of values.
func (r *Reader) record() map[string]capabilities.Value {
	n := r.Map()
	values := make(map[string]capabilities.Value, min(n, 64))
	for range n {
		name := r.String()
		if _, twice := values[name]; twice {
			r.fail()
		}
		if values[name] = r.Value(); r.err != nil {
			break
		}
	}
	return values
}

// Value reads a value that passes capabilities.Value.Check. It fails for a map that may stand for another value than a
// record.
func (r *Reader) Value() capabilities.Value {
	v := r.value(capabilities.MaxValueDepth + 1)
	if r.err == nil && v.Check() != nil {
		r.fail()
	}
	return v
}

func (r *Reader) value(depth int) capabilities.Value {
	if depth == 0 {
		r.fail()
	}
	switch kindOf(r.next()) {
	case aString:
		return capabilities.String(r.String())
	case anArray:
		n := r.Array()
		list := make([]capabilities.Value, 0, min(n, 64))
		for range n {
			if list = append(list, r.value(depth-1)); r.err != nil {
				break
			}
		}
		return capabilities.List(list...)
	case aMap:
		return r.recordValue(depth)
	case anExt:
		v, err := capabilities.ParseJSON(r.JSON())
		if err != nil {
			r.fail()
		}
		return v
	}
	switch v := r.scalar().(type) {
	case bool:
		return capabilities.Bool(v)
	case int64:
		return capabilities.Int(v)
	case float64:
		return capabilities.Float(v)
	case uint64:
		if v > math.MaxInt64 {
			r.fail() // JSON has it as a float
		}
		return capabilities.Int(int64(v))
	}
	return capabilities.Null()
}

func (r *Reader) recordValue(depth int) capabilities.Value {
	n := r.Map()
	record := make(map[string]capabilities.Value, min(n, 64))
	for range n {
		name := r.String()
		if _, twice := record[name]; twice || strings.HasPrefix(name, "$") {
			r.fail()
		}
		if record[name] = r.value(depth - 1); r.err != nil {
			break
		}
	}
	return capabilities.Record(record)
}
