package mailbox

import (
	"fmt"
	"hash/maphash"
	"reflect"
	"slices"
	"testing"

	"parley/capabilities"
	"parley/events"
)

var deepSeed = maphash.MakeSeed()

// checksum returns a hash of all that a state holds, unexported fields and caches included. Deeply equal states have
// equal sums.
func checksum(s *State) uint64 { return sumOf(reflect.ValueOf(s)) }

func sumOf(v reflect.Value) uint64 {
	var h maphash.Hash
	h.SetSeed(deepSeed)
	put := func(x uint64) { fmt.Fprintf(&h, "%x,", x) }
	if !v.IsValid() {
		return 0
	}
	h.WriteString(v.Type().String())
	switch v.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64, reflect.String:
		fmt.Fprint(&h, v)
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			put(sumOf(v.Elem()))
		}
	case reflect.Slice, reflect.Array:
		put(uint64(v.Len()))
		if v.Type().Elem().Kind() == reflect.Uint8 {
			for i := range v.Len() {
				h.WriteByte(byte(v.Index(i).Uint()))
			}
			break
		}
		for i := range v.Len() {
			put(sumOf(v.Index(i)))
		}
	case reflect.Map:
		var sums []uint64
		for it := v.MapRange(); it.Next(); {
			sums = append(sums, sumOf(it.Key())*31+sumOf(it.Value()))
		}
		slices.Sort(sums)
		put(uint64(len(sums)))
		for _, x := range sums {
			put(x)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			put(sumOf(v.Field(i)))
		}
	default:
		panic("a state holds a " + v.Kind().String())
	}
	return h.Sum64()
}

// The harness compares deep sums around every Decide. This shows that the sum sees an unexported field.
func TestDeepSumSeesCaches(t *testing.T) {
	id := capabilities.ID{ULID: [16]byte{1}, Node: capabilities.NodeID{2}}
	a, b := New(id), New(id)
	if checksum(a) != checksum(b) {
		t.Fatal("equal states have different sums")
	}
	b.Grants.roots = map[capabilities.ID]capabilities.ID{id: id}
	if checksum(a) == checksum(b) {
		t.Fatal("different states have equal sums")
	}
}

func TestDecideByIDChangesNothing(t *testing.T) {
	v := newHarness(t)
	v.add("host")
	v.add("fae")
	v.must("fae", RequestForm{To: "HOST", Description: "d", Fields: []events.Field{{Name: "f"}}})
	id := v.states["fae"].Mail.All()[0].ID()
	restored, err := Restore(v.states["fae"].ID, []byte(v.snapshot("fae"))) // no lookup has warmed anything
	if err != nil {
		t.Fatal(err)
	}
	v.states["fae"] = restored
	for _, c := range []Command{CancelForm{Form: capabilities.FormID(id)}, DismissMessage{Message: capabilities.FormID(id)}, AdoptName{Message: capabilities.FormID(id), Edge: "@from", Name: "me"}} {
		v.must("fae", c)
	}
}
