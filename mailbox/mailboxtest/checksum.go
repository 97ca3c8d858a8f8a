package mailboxtest

import (
	"fmt"
	"hash/fnv"
	"io"
	"reflect"
	"slices"

	"parley/mailbox"
)

// Checksum returns a hash of a whole state, with unexported fields and caches. Deeply equal states have equal sums.
func Checksum(s *mailbox.State) uint64 { return sumOf(reflect.ValueOf(s)) }

func sumOf(v reflect.Value) uint64 {
	h := fnv.New64a()
	put := func(x uint64) { fmt.Fprintf(h, "%x,", x) }
	if !v.IsValid() {
		return 0
	}
	io.WriteString(h, v.Type().String())
	switch v.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64, reflect.String:
		fmt.Fprint(h, v)
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			put(sumOf(v.Elem()))
		}
	case reflect.Slice, reflect.Array:
		put(uint64(v.Len()))
		if v.Type().Elem().Kind() == reflect.Uint8 {
			for i := range v.Len() {
				h.Write([]byte{byte(v.Index(i).Uint())})
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
