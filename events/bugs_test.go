//go:build bugs

// These promises are broken today: go test -tags bugs ./events. When one is kept, move it out of here.
package events

import (
	"runtime"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"parley/capabilities"
)

// "Fields are only ever added at the end" is no change that old logs survive: the library refuses an array of
// another length. Refused is the last field of MessageDelivered; this is an event from before it was added.
func TestAnEventFromBeforeAFieldWasAddedDecodes(t *testing.T) {
	subject, to := testID(1), testID(2)
	payload := mustMarshal(t, struct {
		Parcel      ParcelKind
		Subject, To *capabilities.ID
	}{ParcelCopy, &subject, &to})
	evs, err := Decode(rawEvent(t, kindMessageDelivered, 1, payload), 1)
	if err != nil {
		t.Fatal(err)
	}
	if e := evs[0].Event.(*MessageDelivered); e.Parcel != ParcelCopy || e.To != to {
		t.Fatalf("got %+v", e)
	}
}

// What is decoded is well formed, or refused. DecodeValue does so; a value within an event is not looked at.
func TestAValueWithinAnEventIsWellFormedOrRefused(t *testing.T) {
	for what, value := range map[string]msgpack.RawMessage{
		"NaN":             {0xcb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 1},
		"not UTF-8":       {0xa1, 0xff},
		"a key of no UTF": {0x81, 0xa1, 0xff, 0xc0},
		"beyond int64":    {0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, // becomes -1
	} {
		payload := append([]byte{0x92, 0xa1, 'n'}, value...)
		if evs, err := Decode(rawEvent(t, kindNameBound, 1, payload), 1); err == nil {
			t.Errorf("%s: got %s", what, evs[0].Event.(*NameBound).Value.Text())
		}
	}
}

// An event of nine bytes takes 4 GiB: the library's DecodeBytes allocates what the length claims.
func TestAPayloadThatClaimsTooMuchIsRefusedAtOnce(t *testing.T) {
	body := rawEvent(t, kindNameUnbound, 1, nil)
	body = append(body[:len(body)-1], 0xc6, 0x10, 0, 0, 0) // 256 MiB, in place of nil
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if evs, err := Decode(body, 1); err == nil {
		t.Errorf("got %v", evs)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("%d bytes of input took %d MiB", len(body), n>>20)
	}
}
