package mailbox_test

import (
	"bytes"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"parley/mailbox"
	"parley/mailbox/mailboxtest"
)

// TestSnapshotTypesDecodeShorterArrays decodes each type in snapshots in all numbers of fields that it was written with.
// A type without a decoder of its own takes one number only. So a field that is added to it makes the snapshots before
// unreadable.
func TestSnapshotTypesDecodeShorterArrays(t *testing.T) {
	t.Parallel()
	first := firstFields(t)
	seen := map[reflect.Type]bool{}
	for _, layout := range mailbox.SnapshotLayouts() {
		addStructs(seen, reflect.TypeOf(layout))
	}
	for typ := range seen {
		fields := encodedFields(t, typ)
		if fields == nil {
			continue // its encoding is no array
		}
		n, ok := first[typ.String()]
		delete(first, typ.String())
		if !ok || n > len(fields) {
			t.Errorf("%s has %d fields, and %d in testdata/snapshot-fields", typ, len(fields), n)
			continue
		}
		for ; n <= len(fields); n++ {
			if err := msgpack.Unmarshal(arrayOf(t, fields[:n]), reflect.New(typ).Interface()); err != nil {
				t.Errorf("%s with %d of its %d fields: %v", typ, n, len(fields), err)
			}
		}
	}
	for name := range first {
		t.Errorf("%s is in testdata/snapshot-fields, and not in snapshots", name)
	}
}

// firstFields reads the number of fields that each type had in the first snapshots with it.
func firstFields(t *testing.T) map[string]int {
	t.Helper()
	b, err := os.ReadFile("testdata/snapshot-fields")
	if err != nil {
		t.Fatal(err)
	}
	first := map[string]int{}
	for line := range strings.Lines(string(b)) {
		var name string
		var n int
		if _, err := fmt.Sscan(line, &name, &n); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		first[name] = n
	}
	return first
}

// addStructs adds a type, and the types within it, if they are structs.
func addStructs(seen map[reflect.Type]bool, typ reflect.Type) {
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		addStructs(seen, typ.Elem())
	case reflect.Map:
		addStructs(seen, typ.Key())
		addStructs(seen, typ.Elem())
	case reflect.Struct:
		if seen[typ] {
			return
		}
		seen[typ] = true
		for i := range typ.NumField() {
			if f := typ.Field(i); f.IsExported() || f.Anonymous {
				addStructs(seen, f.Type)
			}
		}
	}
}

// encodedFields returns the encodings of all fields of a struct with zero values, or with a reference where one has to
// be. It returns nil if the struct is no array.
func encodedFields(t *testing.T, typ reflect.Type) (fields [][]byte) {
	t.Helper()
	zero, ref := reflect.New(typ), mailbox.AgentRef(mailboxtest.NthID(1))
	for _, f := range reflect.VisibleFields(typ) {
		if f.Type == reflect.TypeOf(ref) {
			zero.Elem().FieldByIndex(f.Index).Set(reflect.ValueOf(ref))
		}
	}
	dec := msgpack.NewDecoder(bytes.NewReader(encodeArray(t, zero.Interface())))
	n, err := dec.DecodeArrayLen()
	if err != nil || n < 0 {
		return nil
	}
	if _, own := zero.Interface().(msgpack.CustomEncoder); own { // it leaves out fields
		for i := range typ.NumField() {
			fields = append(fields, encodeArray(t, zero.Elem().Field(i).Addr().Interface()))
		}
		return fields
	}
	for range n {
		f, err := dec.DecodeRaw()
		if err != nil {
			t.Fatal(err)
		}
		fields = append(fields, bytes.Clone(f))
	}
	return fields
}

func encodeArray(t *testing.T, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	enc := msgpack.NewEncoder(&b)
	enc.UseArrayEncodedStructs(true)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func arrayOf(t *testing.T, fields [][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := msgpack.NewEncoder(&b).EncodeArrayLen(len(fields)); err != nil {
		t.Fatal(err)
	}
	return append(b.Bytes(), bytes.Join(fields, nil)...)
}
