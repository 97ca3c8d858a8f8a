package mailboxtest

import (
	"fmt"
	"reflect"
	"slices"

	"parley/events"
	"parley/mailbox"
)

// Checksum returns a hash of a whole state, with unexported fields and caches. Deeply equal states have equal sums.
func Checksum(s *mailbox.State) uint64 { return sumOf(reflect.ValueOf(s)) }

// sum is a hash of what was put into it.
type sum uint64

func (h *sum) put(x uint64) {
	const prime = 0x9e3779b97f4a7c15
	*h = (*h ^ sum(x)) * prime
	*h ^= *h >> 29
}

func (h *sum) putString(s string) {
	h.put(uint64(len(s)))
	for ; len(s) >= 8; s = s[8:] {
		h.put(uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56)
	}
	for i := range len(s) {
		h.put(uint64(s[i]))
	}
}

func sumOf(v reflect.Value) uint64 {
	if !v.IsValid() {
		return 0
	}
	h := sum(1)
	put := h.put
	h.putString(v.Type().String())
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			put(1)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		put(uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		put(v.Uint())
	case reflect.Float32, reflect.Float64:
		h.putString(fmt.Sprint(v))
	case reflect.String:
		h.putString(v.String())
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			put(sumOf(v.Elem()))
		}
	case reflect.Slice, reflect.Array:
		put(uint64(v.Len()))
		if v.Type().Elem().Kind() == reflect.Uint8 {
			for i := range v.Len() {
				put(v.Index(i).Uint())
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
	return uint64(h)
}

// checkedState is a state that CheckReplay has checked. It is checked again when something has changed.
type checkedState struct {
	events   int
	snapshot string
	summary  events.Summary
}
