package events

import (
	"bytes"
	"testing"

	"github.com/vmihailenco/msgpack/v5"
)

// TestEncodersEqualReflection compares the written encoders with the library's, which encodes types without their methods.
func TestEncodersEqualReflection(t *testing.T) {
	type (
		requested FormRequested
		answered  FormAnswered
		delivered MessageDelivered
	)
	for name, e := range samples() {
		var plain any
		switch e := e.(type) {
		case *FormRequested:
			plain = (*requested)(e)
		case *FormAnswered:
			plain = (*answered)(e)
		case *MessageDelivered:
			plain = (*delivered)(e)
		default:
			continue
		}
		if own, other := encoded(t, e), encoded(t, plain); !bytes.Equal(own, other) {
			t.Errorf("%s:\nown     %x\nlibrary %x", name, own, other)
		}
	}
	if !bytes.Equal(encoded(t, &FormRequested{}), encoded(t, &requested{})) {
		t.Error("empty form")
	}
	if !bytes.Equal(encoded(t, &FormAnswered{}), encoded(t, &answered{})) {
		t.Error("empty answer")
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
