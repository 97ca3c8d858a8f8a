package events

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"parley/capabilities"
)

func appended(t testing.TB, evs ...Recorded) []byte {
	t.Helper()
	b, err := Append(nil, evs...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestEqualEventsHaveEqualEncodings(t *testing.T) {
	labels := map[string]string{}
	for n := range 20 {
		labels[strings.Repeat("x", n)+"k"] = "v"
	}
	for name, e := range samples() {
		first := appended(t, Recorded{At: goldenAt, Event: e})
		for range 20 { // the order of maps changes each time
			if !bytes.Equal(first, appended(t, Recorded{At: goldenAt, Event: samples()[name]})) {
				t.Fatalf("%s has several encodings", name)
			}
		}
	}
	first := appended(t, Recorded{Event: &AgentCreated{Labels: labels}})
	for range 20 {
		if !bytes.Equal(first, appended(t, Recorded{Event: &AgentCreated{Labels: maps.Clone(labels)}})) {
			t.Fatal("labels have several orders")
		}
	}
}

func TestAppendConcatenatesEvents(t *testing.T) {
	var one []byte
	var all []Recorded
	for i, name := range slices.Sorted(maps.Keys(samples())) {
		r := Recorded{At: goldenAt + capabilities.Time(i), Event: samples()[name]}
		all = append(all, r)
		one = append(one, appended(t, r)...)
	}
	if !bytes.Equal(one, appended(t, all...)) {
		t.Fatal("encoded together they differ from one by one")
	}
	got, err := Decode(one, len(all))
	if err != nil || len(got) != len(all) {
		t.Fatalf("got %d, %v", len(got), err)
	}
	for i, r := range got {
		if r.At != all[i].At || Name(r.Event) != Name(all[i].Event) {
			t.Fatalf("event %d: got %s at %d", i, Name(r.Event), r.At)
		}
	}
}

func TestWrongCountIsRefused(t *testing.T) {
	body := appended(t, Recorded{Event: &MessageDismissed{Number: 1}}, Recorded{Event: &MessageDismissed{Number: 2}})
	if evs, err := Decode(body, 1); !errors.Is(err, errMalformed) || len(evs) != 1 {
		t.Errorf("one of two: %v, %v", evs, err)
	}
	if evs, err := Decode(body, 3); !errors.Is(err, io.EOF) || len(evs) != 2 {
		t.Errorf("three of two: %v, %v", evs, err)
	}
	if evs, err := Decode(nil, 0); err != nil || len(evs) != 0 {
		t.Errorf("none of none: %v, %v", evs, err)
	}
}

func TestMalformedEventsAreRefused(t *testing.T) {
	whole := appended(t, Recorded{At: goldenAt, Event: goldenForm()})
	for n := range whole {
		if evs, err := Decode(whole[:n], 1); err == nil {
			t.Fatalf("cut at %d: %v", n, evs)
		}
	}
	for what, payload := range map[string][]byte{
		"no array":                {0xa1, 'x'},
		"nothing":                 {},
		"another type in a field": {0x91, 0xa1, 'x'},
		"an unused code":          {0xc1},
	} {
		if evs, err := Decode(rawEvent(t, kindMessageDismissed, 1, payload), 1); !errors.Is(err, errMalformed) {
			t.Errorf("%s: %+v, %v", what, evs, err)
		}
	}
}

// TestOverlongListIsRefused decodes lists that claim more elements than there are bytes.
func TestOverlongListIsRefused(t *testing.T) {
	claim := []byte{0xdd, 0xff, 0xff, 0xff, 0xff}
	for what, c := range map[string]struct {
		kind    Kind
		payload []byte
	}{
		"text":   {kindMessagePosted, append([]byte{0x99, 0, 0xc0, 0xc0, 0xc0, 0xc0, 0xc0}, claim...)},
		"grants": {kindFormAnswered, append([]byte{0x96, 0xc0, 0xc0, 0xc0, 0xd7, 3, 0, 0, 0, 0, 0, 0, 0, 0}, claim...)},
		"itself": {kindFormAnswered, claim},
		"labels": {kindAgentUpdated, []byte{0x94, 0xc0, 0xdf, 0xff, 0xff, 0xff, 0xff}},
	} {
		if evs, err := Decode(rawEvent(t, c.kind, 1, c.payload), 1); !errors.Is(err, errMalformed) {
			t.Errorf("%s: %v, %v", what, evs, err)
		}
	}
}

// TestWrongNumberOfFieldsIsRefused decodes events with another number of fields than their version has. A change to an
// event needs a new version.
func TestWrongNumberOfFieldsIsRefused(t *testing.T) {
	id := testID(1)
	for what, payload := range map[string][]byte{
		"a field less": mustMarshal(t, struct{ By, To *capabilities.ID }{&id, &id}),
		"a field more": mustMarshal(t, struct {
			Grant, By *capabilities.ID
			Date      capabilities.Time
			Note      string
		}{&id, &id, goldenAt, "why"}),
		"a nested field less": mustMarshal(t, struct{ Grant struct{ ID *capabilities.ID } }{struct{ ID *capabilities.ID }{&id}}),
	} {
		kind := kindCapabilityRevoked
		if what == "a nested field less" {
			kind = kindCapabilityGranted
		}
		if evs, err := Decode(rawEvent(t, kind, 1, payload), 1); !errors.Is(err, errMalformed) {
			t.Errorf("%s: %v, %v", what, evs, err)
		}
	}
}

// TestMalformedValueInEventIsRefused decodes events with malformed values.
func TestMalformedValueInEventIsRefused(t *testing.T) {
	for what, value := range map[string]msgpack.RawMessage{
		"NaN":             {0xcb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 1},
		"not UTF-8":       {0xa1, 0xff},
		"a malformed key": {0x81, 0xa1, 0xff, 0xc0},
		"beyond int64":    {0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, // becomes -1
	} {
		payload := append([]byte{0x92, 0xa1, 'n'}, value...)
		if evs, err := Decode(rawEvent(t, kindNameBound, 1, payload), 1); err == nil {
			t.Errorf("%s: got %s", what, evs[0].Event.(*NameBound).Value.Text())
		}
	}
}

// TestOverlongPayloadAllocatesLittle decodes an event whose payload claims 256 MiB.
func TestOverlongPayloadAllocatesLittle(t *testing.T) {
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

// rawEvent encodes an event with any kind, version and payload.
func rawEvent(t testing.TB, k Kind, version uint8, payload []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	enc := msgpack.NewEncoder(&buf)
	enc.UseCompactInts(true)
	if err := enc.EncodeMulti(uint8(k), version, goldenAt, payload); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// FuzzDecode checks that decoded events can be encoded, and then have one encoding.
func FuzzDecode(f *testing.F) {
	for _, e := range samples() {
		f.Add(appended(f, Recorded{At: goldenAt, Event: e}), 1)
	}
	f.Add(appended(f, Recorded{Event: &NameUnbound{Name: "a"}}, Recorded{Event: &AgentArchived{}}), 2)
	f.Fuzz(func(t *testing.T, body []byte, count int) {
		count &= 0xff
		evs, err := Decode(body, count)
		if len(evs) > count || err == nil && len(evs) != count {
			t.Fatalf("%d events of %d: %v", len(evs), count, err)
		}
		first := appended(t, evs...)
		again, err := Decode(first, len(evs))
		if err != nil {
			t.Fatalf("the encoding does not decode: %v", err)
		}
		if second := appended(t, again...); !bytes.Equal(first, second) {
			t.Fatalf("encoded as %x, then as %x", first, second)
		}
	})
}

// fourFields returns a typical form.
func fourFields() Recorded {
	f := &FormRequested{
		Number: 12, ID: testID(1), Promise: testID(2), Resolver: testID(3), From: testID(4), To: testID(5), Description: "Set up your server",
		Date: goldenAt, Key: "setup",
	}
	f.Fields = []Field{
		{Name: "host", Label: "Host", Required: true}, {Name: "port", Label: "Port", Type: Number, Default: capabilities.Int(80)},
		{Name: "proto", Label: "Protocol", Type: Select, Options: []Option{{Value: "http"}, {Value: "https"}}}, {Name: "tls", Label: "TLS?", Type: Confirm},
	}
	return Recorded{At: goldenAt, Event: f}
}

func BenchmarkAppend(b *testing.B) {
	r := fourFields()
	dst := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Append(dst, r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	body := appended(b, fourFields())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(body, 1); err != nil {
			b.Fatal(err)
		}
	}
}
