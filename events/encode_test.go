package events

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"parley/capabilities"
)

// The same types without their methods, which the library encodes by reflection.
type (
	plainRequested FormRequested
	plainAnswered  FormAnswered
	plainCancelled FormCancelled
	plainPosted    MessagePosted
	plainDelivered MessageDelivered
)

// plain returns an event with an encoder of its own as a type without that, and nil for other events.
func plain(e Event) any {
	switch e := e.(type) {
	case *FormRequested:
		whole, held := *e, e.Held()
		whole.Facet = &held // which is in the log even if it is full
		return (*plainRequested)(&whole)
	case *FormAnswered:
		return (*plainAnswered)(e)
	case *FormCancelled:
		return (*plainCancelled)(e)
	case *MessagePosted:
		return (*plainPosted)(e)
	case *MessageDelivered:
		return (*plainDelivered)(e)
	}
	return nil
}

func TestEncodersEqualReflection(t *testing.T) {
	for name, e := range samples() {
		if p := plain(e); p != nil {
			compareEncodings(t, name, e, p)
		}
	}
	r := random{rand.New(rand.NewPCG(1, 2))}
	for _, e := range []Event{&FormRequested{}, &FormAnswered{}, &FormCancelled{}, &MessagePosted{}, &MessageDelivered{}} {
		compareEncodings(t, Name(e), e, plain(e)) // empty
		for range 300 {
			r.fill(reflect.ValueOf(e).Elem())
			compareEncodings(t, Name(e), e, plain(e))
		}
	}
}

// compareEncodings compares the payload in the log, and the encoding of an encoder, with those of reflection.
func compareEncodings(t *testing.T, name string, e Event, plain any) {
	t.Helper()
	want := encoded(t, plain)
	if m, ok := e.(*MessagePosted); ok && m.AuthorSaid == "" { // which is left out, at the end
		const size = 23
		want = append([]byte{msgpcode.Array16, 0, size - 1}, want[3:len(want)-1]...)
	}
	if own := encoded(t, e); !bytes.Equal(own, want) {
		t.Errorf("%s:\nown     %x\nlibrary %x", name, own, want)
	}
	at := 1 + 1 + 10 + 1 + 4 // kind, version, time, head of the payload
	body := appended(t, Recorded{At: goldenAt, Event: e})
	if n := binary.BigEndian.Uint32(body[at-4:]); int(n) != len(body)-at || !bytes.Equal(body[at:], want) {
		t.Errorf("%s of %d bytes:\nlog     %x\nlibrary %x", name, n, body[at:], want)
	}
}

// TestSnapshotsHaveEvents decodes events by reflection, as snapshots do.
func TestSnapshotsHaveEvents(t *testing.T) {
	for _, f := range []*FormRequested{goldenForm(), goldenFormOfDialect(), goldenRoutedForm(), goldenSignedForm(), goldenCopy(), goldenCall()} {
		var got *FormRequested
		if err := msgpack.Unmarshal(encoded(t, f), &got); err != nil || !reflect.DeepEqual(got, f) {
			t.Errorf("got %+v, %v", got, err)
		}
	}
	for _, name := range []string{"MessagePosted.v1", "MessagePosted.author"} {
		var got *MessagePosted
		if err := msgpack.Unmarshal(encoded(t, samples()[name]), &got); err != nil || !reflect.DeepEqual(got, samples()[name]) {
			t.Errorf("got %+v, %v", got, err)
		}
	}
}

// TestMessagesOfOtherMembersAreMalformed has a message with a member too few, with an empty one that is left out, and with one too many.
func TestMessagesOfOtherMembersAreMalformed(t *testing.T) {
	plain := encoded(t, &MessagePosted{Date: goldenAt})
	for name, b := range map[string][]byte{
		"none":     {msgpcode.FixedArrayLow},
		"too few":  append([]byte{msgpcode.Array16, 0, 21}, plain[3:len(plain)-1]...),
		"empty":    append([]byte{msgpcode.Array16, 0, 23}, append(plain[3:], msgpcode.FixedStrLow)...),
		"too many": append([]byte{msgpcode.Array16, 0, 24}, append(plain[3:], msgpcode.FixedStrLow|1, 'x', msgpcode.Nil)...),
	} {
		var got MessagePosted
		if err := msgpack.Unmarshal(b, &got); !errors.Is(err, errMalformed) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

func encoded(t *testing.T, e any) []byte {
	t.Helper()
	var buf bytes.Buffer
	enc := msgpack.NewEncoder(&buf)
	enc.UseCompactInts(true)
	enc.SetSortMapKeys(true)
	enc.UseArrayEncodedStructs(true)
	if err := enc.Encode(e); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// random fills events with random values of all lengths that encodings distinguish.
type random struct{ *rand.Rand }

func (r random) fill(v reflect.Value) {
	switch at := v.Addr().Interface().(type) {
	case *capabilities.ID:
		*at = capabilities.ID{}
		if r.IntN(3) > 0 {
			*at = testID(byte(r.Uint()))
		}
		return
	case *capabilities.Time:
		*at = capabilities.Time(r.number())
		return
	case *Delay:
		*at = Delay(r.number())
		return
	case *capabilities.Value:
		*at = r.value(3)
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(r.text())
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Uint64, reflect.Uint32:
		v.SetUint(r.number() >> (64 - v.Type().Bits()))
	case reflect.Int64:
		v.SetInt(int64(r.number()))
	case reflect.Uint8:
		v.SetUint(uint64(r.Uint32() >> 24))
	case reflect.Slice:
		v.SetZero()
		if n := r.IntN(20); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n-1, n-1))
		}
		for i := range v.Len() {
			r.fill(v.Index(i))
		}
	case reflect.Pointer:
		v.SetZero()
		if r.IntN(2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			r.fill(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			r.fill(v.Field(i))
		}
	default:
		panic("no random " + v.Type().String())
	}
}

// number returns a number of a random length in bits.
func (r random) number() uint64 { return r.Uint64() >> r.IntN(64) }

func (r random) text() string {
	n := []int{0, 1, 5, 31, 32, 255, 256}[r.IntN(7)]
	return string(bytes.Repeat([]byte{'a' + byte(r.IntN(26))}, n))
}

func (r random) value(depth int) capabilities.Value {
	kinds := 8
	if depth > 0 {
		kinds = 10
	}
	switch r.IntN(kinds) {
	case 0:
		return capabilities.Bool(r.IntN(2) == 0)
	case 1:
		return capabilities.Int(int64(r.number()))
	case 2:
		return capabilities.Int(-int64(r.number()))
	case 3:
		return capabilities.Float(r.NormFloat64())
	case 4:
		return capabilities.String(r.text())
	case 5:
		return capabilities.Bytes([]byte(r.text()))
	case 6:
		return capabilities.Sealed([]byte(r.text()))
	case 7:
		return goldenRef(byte(r.IntN(90)))
	case 8:
		list := make([]capabilities.Value, r.IntN(20))
		for i := range list {
			list[i] = r.value(depth - 1)
		}
		return capabilities.List(list...)
	}
	record := map[string]capabilities.Value{}
	for range r.IntN(20) {
		record[r.text()] = r.value(depth - 1)
	}
	return capabilities.Record(record)
}
