package mux

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
	"parley/internal/pack"
)

// The codec reads and writes Go values as msgpack with the names, the omissions and the meaning of their JSON. The encoder
// of the msgpack library is not that. It writes IDs, times and values as the log has them, and knows no omitzero. Its decoder
// takes numbers that JSON refuses.
//
// Writing is whole: every value that has JSON has a body. Reading takes the plain spelling alone, in which each member is
// known, stands once, and has its own type. Read reads all else as the JSON that it stands for. So there is one meaning, and
// one set of refusals.
type codec struct {
	of    reflect.Type
	once  sync.Once
	write func(b []byte, v reflect.Value) ([]byte, error)
	read  func(r *Reader, v reflect.Value) // into the zero value
}

var codecs sync.Map // of all types in use

// codecOf returns the codec of a type. It is made when it is first used, as a type may be within itself.
func codecOf(t reflect.Type) *codec {
	c, ok := codecs.Load(t)
	if !ok {
		c, _ = codecs.LoadOrStore(t, &codec{of: t})
	}
	return c.(*codec)
}

// made returns the codec, once it is made.
func (c *codec) made() *codec {
	c.once.Do(func() { c.write, c.read = c.writer(), c.reader() })
	return c
}

// Append appends a value as the body that has the meaning of its JSON.
func Append(b []byte, v any) ([]byte, error) {
	if v == nil {
		return pack.AppendNil(b), nil
	}
	return codecOf(reflect.TypeOf(v)).made().write(b, reflect.ValueOf(v))
}

// Read reads a body into what a pointer points to, as json.Unmarshal reads its JSON. What it reads may share memory with
// other texts of the body.
func Read(body []byte, into any) error {
	if u, ok := into.(Unpacker); ok {
		return u.UnmarshalBody(body)
	}
	if readPlain(NewTextReader(body), into) {
		return nil
	}
	text, err := ToJSON(body)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// readPlain reads a body in the plain spelling into a zero value. It returns false, and has changed nothing, for another.
func readPlain(r *Reader, into any) bool {
	v := reflect.ValueOf(into).Elem()
	if !v.IsZero() {
		return false // JSON leaves what it does not mention
	}
	codecOf(v.Type()).made().read(r, v)
	if r.err != nil || len(r.rest) > 0 {
		v.SetZero()
		return false
	}
	return true
}

// Unpacker is a value that reads itself from a body, where JSON has UnmarshalJSON.
type Unpacker interface{ UnmarshalBody(body []byte) error }

var (
	jsonWriter = reflect.TypeFor[json.Marshaler]()
	jsonReader = reflect.TypeFor[json.Unmarshaler]()
	textWriter = reflect.TypeFor[encoding.TextMarshaler]()
	textReader = reflect.TypeFor[encoding.TextUnmarshaler]()
	unpacker   = reflect.TypeFor[Unpacker]()
	zeroer     = reflect.TypeFor[interface{ IsZero() bool }]()
)

func (c *codec) writer() func([]byte, reflect.Value) ([]byte, error) {
	switch c.of {
	case reflect.TypeFor[capabilities.Value]():
		return func(b []byte, v reflect.Value) ([]byte, error) {
			return AppendValue(b, v.Interface().(capabilities.Value))
		}
	case reflect.TypeFor[capabilities.ID]():
		return func(b []byte, v reflect.Value) ([]byte, error) {
			if id := v.Interface().(capabilities.ID); !id.IsZero() {
				return id.Append(pack.AppendText(b, capabilities.IDTextSize)), nil
			}
			return pack.AppendString(b, ""), nil
		}
	case reflect.TypeFor[json.RawMessage]():
		return writeRaw
	}
	switch {
	case c.of.Implements(jsonWriter):
		return writeJSON
	case c.of.Implements(textWriter):
		return writeText
	}
	switch c.of.Kind() {
	case reflect.String:
		return func(b []byte, v reflect.Value) ([]byte, error) { return appendText(b, v.String()), nil }
	case reflect.Bool:
		return func(b []byte, v reflect.Value) ([]byte, error) { return pack.AppendBool(b, v.Bool()), nil }
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return func(b []byte, v reflect.Value) ([]byte, error) { return pack.AppendInt(b, v.Int()), nil }
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return func(b []byte, v reflect.Value) ([]byte, error) { return pack.AppendUint(b, v.Uint()), nil }
	case reflect.Pointer, reflect.Interface:
		return func(b []byte, v reflect.Value) ([]byte, error) {
			if v.IsNil() {
				return pack.AppendNil(b), nil
			}
			return codecOf(v.Elem().Type()).made().write(b, v.Elem())
		}
	case reflect.Slice:
		if c.of.Elem().Kind() != reflect.Uint8 {
			return c.writeList
		}
	case reflect.Map:
		if c.of.Key().Kind() == reflect.String && !c.of.Key().Implements(textWriter) {
			return c.writeMap
		}
	case reflect.Struct:
		if members := membersOf(c.of); members != nil {
			return members.write
		}
	}
	return writeJSON
}

// writeJSON writes what its JSON stands for.
func writeJSON(b []byte, v reflect.Value) ([]byte, error) {
	text, err := Marshal(v.Interface())
	if err != nil {
		return b, err
	}
	return appendFromJSON(b, text)
}

// writeRaw keeps JSON as it was written: its spelling may be of a call that somebody is asked about.
func writeRaw(b []byte, v reflect.Value) ([]byte, error) {
	text, err := Marshal(v.Interface())
	if err != nil {
		return b, err
	}
	return AppendJSON(b, text), nil
}

func writeText(b []byte, v reflect.Value) ([]byte, error) {
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return pack.AppendNil(b), nil
	}
	text, err := v.Interface().(encoding.TextMarshaler).MarshalText()
	if !utf8.Valid(text) {
		text = bytes.ToValidUTF8(text, []byte("\ufffd"))
	}
	return pack.AppendString(b, text), err
}

func (c *codec) writeList(b []byte, v reflect.Value) (_ []byte, err error) {
	if v.IsNil() {
		return pack.AppendNil(b), nil
	}
	element := codecOf(c.of.Elem()).made()
	b = pack.AppendArray(b, v.Len())
	for i := range v.Len() {
		if b, err = element.write(b, v.Index(i)); err != nil {
			return b, err
		}
	}
	return b, nil
}

func (c *codec) writeMap(b []byte, v reflect.Value) (_ []byte, err error) {
	if record, ok := v.Interface().(map[string]capabilities.Value); ok && record != nil {
		return AppendRecord(b, record)
	}
	if v.IsNil() {
		return pack.AppendNil(b), nil
	}
	element := codecOf(c.of.Elem()).made()
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	b = pack.AppendMap(b, len(keys))
	for _, k := range keys {
		if b, err = element.write(appendText(b, k.String()), v.MapIndex(k)); err != nil {
			return b, err
		}
	}
	return b, nil
}

func (c *codec) reader() func(*Reader, reflect.Value) {
	switch c.of {
	case reflect.TypeFor[capabilities.Value]():
		return func(r *Reader, v reflect.Value) { *v.Addr().Interface().(*capabilities.Value) = r.Value() }
	case reflect.TypeFor[map[string]capabilities.Value]():
		return func(r *Reader, v reflect.Value) { *v.Addr().Interface().(*map[string]capabilities.Value) = r.record() }
	case reflect.TypeFor[api.RefText]():
		return func(r *Reader, v reflect.Value) { v.SetString(r.refText()) }
	case reflect.TypeFor[json.RawMessage]():
		return func(r *Reader, v reflect.Value) {
			if r.IsJSON() {
				r.fail() // its spaces would stay
			} else if text, err := ToJSON(r.Raw()); err == nil {
				v.SetBytes(text)
			} else {
				r.fail()
			}
		}
	case reflect.TypeFor[capabilities.ID]():
		return func(r *Reader, v reflect.Value) { *v.Addr().Interface().(*capabilities.ID) = r.id() }
	case reflect.TypeFor[time.Time](): // its JSON is that text
		return readText
	case reflect.TypeFor[parley.Fields](): // its own JSON is for other spellings
		list := codecOf(reflect.TypeFor[[]events.Field]())
		return func(r *Reader, v reflect.Value) {
			var fields []events.Field
			if list.made().read(r, reflect.ValueOf(&fields).Elem()); fields == nil {
				r.fail()
			}
			*v.Addr().Interface().(*parley.Fields) = fields
		}
	}
	switch p := reflect.PointerTo(c.of); {
	case p.Implements(unpacker):
		return func(r *Reader, v reflect.Value) {
			if body := r.Raw(); r.err == nil && v.Addr().Interface().(Unpacker).UnmarshalBody(body) != nil {
				r.fail()
			}
		}
	case p.Implements(jsonReader):
		return readJSON
	case p.Implements(textReader):
		return readText
	}
	return c.kindReader()
}

// kindReader returns what reads a type without an encoding of its own.
func (c *codec) kindReader() func(*Reader, reflect.Value) {
	switch c.of.Kind() {
	case reflect.String:
		return func(r *Reader, v reflect.Value) { v.SetString(r.String()) }
	case reflect.Bool:
		return func(r *Reader, v reflect.Value) { v.SetBool(r.Bool()) }
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return func(r *Reader, v reflect.Value) {
			if n := r.int(); v.OverflowInt(n) {
				r.fail()
			} else {
				v.SetInt(n)
			}
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return func(r *Reader, v reflect.Value) {
			if n := r.Uint(); v.OverflowUint(n) {
				r.fail()
			} else {
				v.SetUint(n)
			}
		}
	case reflect.Pointer:
		return func(r *Reader, v reflect.Value) {
			if !r.null() {
				v.Set(reflect.New(c.of.Elem()))
				codecOf(c.of.Elem()).made().read(r, v.Elem())
			}
		}
	case reflect.Slice:
		if c.of.Elem().Kind() != reflect.Uint8 {
			return c.readList
		}
	case reflect.Map:
		if c.of.Key() == reflect.TypeFor[string]() {
			return c.readMap
		}
	case reflect.Struct:
		if members := membersOf(c.of); members != nil {
			return members.read
		}
	}
	return readJSON
}

// readJSON reads what a value stands for in JSON.
func readJSON(r *Reader, v reflect.Value) {
	body := r.Raw()
	if r.err != nil {
		return
	}
	text, err := ToJSON(body)
	if err == nil {
		err = json.Unmarshal(text, v.Addr().Interface())
	}
	if err != nil {
		r.fail()
	}
}

// id reads an ID. The key of its node is not parsed and checked again if the one before is of the same.
func (r *Reader) id() (id capabilities.ID) {
	text := r.String()
	if r.err != nil || text == "" {
		return id
	}
	head, node, _ := strings.Cut(text, "@")
	var err error
	if node != "" && node == r.lastNode {
		id, err = capabilities.ParseLocalID(head, r.last)
	} else if id, err = capabilities.ParseID(text); err == nil {
		r.last, r.lastNode = id.Node, node
	}
	if err != nil {
		r.fail()
	}
	return id
}

func readText(r *Reader, v reflect.Value) {
	if text := r.Text(); r.err == nil && v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText(text) != nil {
		r.fail()
	}
}

func (c *codec) readList(r *Reader, v reflect.Value) {
	if r.null() {
		return
	}
	n, element := r.Array(), codecOf(c.of.Elem()).made()
	if r.err == nil {
		v.Set(reflect.MakeSlice(c.of, 0, min(n, 16))) // elements may be much larger than their encoding
	}
	for i := range n {
		if i == v.Cap() {
			v.Grow(1)
		}
		v.SetLen(i + 1)
		if element.read(r, v.Index(i)); r.err != nil {
			return
		}
	}
}

func (c *codec) readMap(r *Reader, v reflect.Value) {
	if r.null() {
		return
	}
	n, element := r.Map(), codecOf(c.of.Elem()).made()
	v.Set(reflect.MakeMapWithSize(c.of, min(n, 64)))
	for range n {
		name := reflect.ValueOf(r.String())
		if v.MapIndex(name).IsValid() {
			r.fail()
		}
		one := reflect.New(c.of.Elem()).Elem()
		if element.read(r, one); r.err != nil {
			return
		}
		v.SetMapIndex(name, one)
	}
}

// members are those of a struct, in the order of its JSON.
type members []member

// member is one of them.
type member struct {
	name  string
	head  []byte // the name as it is written
	index []int  // of the field, through embedded structs
	codec *codec

	omitEmpty, omitZero bool
	asks                bool // its type says itself what its zero is
}

// maxMembers bounds the members of a type with a plain spelling.
const maxMembers = 64

// membersOf returns the members of a struct, or nil for one whose JSON is another than that of its members. Of several fields
// with one name JSON has the least embedded, if that is one.
func membersOf(t reflect.Type) members {
	all := members{}
	if !all.add(t, nil) || len(all) > maxMembers {
		return nil
	}
	kept := members{}
	for _, m := range all {
		hidden := slices.ContainsFunc(all, func(o member) bool { return o.name == m.name && len(o.index) < len(m.index) })
		twice := slices.ContainsFunc(all, func(o member) bool {
			return o.name == m.name && len(o.index) == len(m.index) && !slices.Equal(o.index, m.index)
		})
		if twice && !hidden {
			return nil
		}
		if !hidden {
			kept = append(kept, m)
		}
	}
	return kept
}

// add adds the members of a struct at an index. It returns false for a struct with tags that only encoding/json knows.
func (all *members) add(t reflect.Type, at []int) bool {
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		index := append(slices.Clone(at), i)
		embedded := f.Type
		if f.Anonymous && embedded.Kind() == reflect.Pointer {
			embedded = embedded.Elem()
		}
		switch {
		case tag == "-" || !f.IsExported() && (!f.Anonymous || embedded.Kind() != reflect.Struct):
			continue
		case f.Anonymous && name == "" && embedded.Kind() == reflect.Struct:
			if f.Type.Kind() == reflect.Pointer || !all.add(embedded, index) {
				return false
			}
			continue
		case name == "":
			name = f.Name
		}
		m := member{name: name, head: pack.AppendString(nil, name), index: index, codec: codecOf(f.Type), asks: f.Type.Implements(zeroer)}
		for option := range strings.SplitSeq(options, ",") {
			switch option {
			case "":
			case "omitempty":
				m.omitEmpty = true
			case "omitzero":
				m.omitZero = true
			default:
				return false
			}
		}
		*all = append(*all, m)
	}
	return true
}

// omits reports whether JSON has no member for a value.
func (m *member) omits(v reflect.Value) bool {
	if m.omitEmpty {
		switch v.Kind() {
		case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
			if v.Len() == 0 {
				return true
			}
		case reflect.Struct:
		default:
			if v.IsZero() {
				return true
			}
		}
	}
	if !m.omitZero {
		return false
	}
	if m.asks && (v.Kind() != reflect.Pointer || !v.IsNil()) {
		return v.Interface().(interface{ IsZero() bool }).IsZero()
	}
	return v.IsZero()
}

// of returns the member's field in a struct.
func (m *member) of(v reflect.Value) reflect.Value {
	for _, i := range m.index {
		v = v.Field(i)
	}
	return v
}

func (all members) write(b []byte, v reflect.Value) (_ []byte, err error) {
	at, n := len(b), 0
	b = pack.AppendMap(b, len(all))
	for i := range all {
		m := &all[i]
		f := m.of(v)
		if (m.omitEmpty || m.omitZero) && m.omits(f) {
			continue
		}
		n++
		if b, err = m.codec.made().write(append(b, m.head...), f); err != nil {
			return b, fmt.Errorf("%s: %w", m.name, err)
		}
	}
	if len(all) > 15 { // with a head of its size, whatever is omitted
		b[at+1], b[at+2] = byte(n>>8), byte(n)
	} else {
		pack.AppendMap(b[:at], n)
	}
	return b, nil
}

func (all members) read(r *Reader, v reflect.Value) {
	var seen uint64
	next := 0 // most come in the order of their JSON
	for range r.Map() {
		name := r.Text()
		i := next
		if i >= len(all) || string(name) != all[i].name {
			i = slices.IndexFunc(all, func(m member) bool { return m.name == string(name) })
		}
		if r.err != nil || i < 0 || seen&(1<<i) != 0 {
			r.fail()
			return
		}
		seen |= 1 << i
		next = i + 1
		if all[i].codec.made().read(r, all[i].of(v)); r.err != nil {
			return
		}
	}
}

// null reads a nil, if that is next.
func (r *Reader) null() bool {
	if len(r.rest) == 0 || kindOf(r.rest[0]) != aScalar {
		return false
	}
	before := r.rest
	if r.scalar() == nil && r.err == nil {
		return true
	}
	if r.err == nil {
		r.rest = before
	}
	return false
}

// int reads a number that fits in 64 bits.
func (r *Reader) int() int64 {
	if kindOf(r.next()) != aScalar {
		r.fail()
		return 0
	}
	switch n := r.scalar().(type) {
	case int64:
		return n
	case uint64:
		if n <= math.MaxInt64 {
			return int64(n)
		}
	}
	r.fail()
	return 0
}

// Marshal writes JSON without escapes that the texts in it need not have.
func Marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}

// appendText appends a text with replacement characters for what is not UTF-8, as JSON has it.
func appendText(b []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = string([]rune(s))
	}
	return pack.AppendString(b, s)
}
