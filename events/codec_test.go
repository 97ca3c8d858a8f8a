package events

import (
	"bytes"
	"errors"
	"io"
	"maps"
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
		for range 20 { // maps run in another order each time
			if !bytes.Equal(first, appended(t, Recorded{At: goldenAt, Event: samples()[name]})) {
				t.Fatalf("%s is written in several ways", name)
			}
		}
	}
	first := appended(t, Recorded{Event: &AgentCreated{Labels: labels}})
	for range 20 {
		if !bytes.Equal(first, appended(t, Recorded{Event: &AgentCreated{Labels: maps.Clone(labels)}})) {
			t.Fatal("labels are written in several orders")
		}
	}
}

func TestEventsAreAppendedOneAfterAnother(t *testing.T) {
	var one []byte
	var all []Recorded
	for i, name := range slices.Sorted(maps.Keys(samples())) {
		r := Recorded{At: goldenAt + capabilities.Time(i), Event: samples()[name]}
		all = append(all, r)
		one = append(one, appended(t, r)...)
	}
	if !bytes.Equal(one, appended(t, all...)) {
		t.Fatal("together they are written otherwise than one by one")
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

func TestACountThatLiesIsRefused(t *testing.T) {
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

// A length is a claim, not a reason to allocate: believing these would take more memory than there is.
func TestAListThatClaimsTooMuchIsRefused(t *testing.T) {
	claim := []byte{0xdd, 0xff, 0xff, 0xff, 0xff}
	for what, c := range map[string]struct {
		kind    Kind
		payload []byte
	}{
		"text":   {kindMessagePosted, append([]byte{0x98, 0, 0xc0, 0xc0, 0xc0, 0xc0}, claim...)},
		"grants": {kindFormAnswered, append([]byte{0x96, 0xc0, 0xc0, 0xc0, 0xd7, 3, 0, 0, 0, 0, 0, 0, 0, 0}, claim...)},
		"itself": {kindFormAnswered, claim},
		"labels": {kindAgentUpdated, []byte{0x94, 0xc0, 0xdf, 0xff, 0xff, 0xff, 0xff}},
	} {
		if evs, err := Decode(rawEvent(t, c.kind, 1, c.payload), 1); !errors.Is(err, errMalformed) {
			t.Errorf("%s: %v, %v", what, evs, err)
		}
	}
}

// rawEvent writes an event with any kind, version and payload.
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

// FuzzDecode checks that whatever decodes can be written again, and then has one encoding.
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
			t.Fatalf("what was written does not decode: %v", err)
		}
		if second := appended(t, again...); !bytes.Equal(first, second) {
			t.Fatalf("written as %x, then as %x", first, second)
		}
	})
}

// fourFields is a form as agents ask them every day.
func fourFields() Recorded {
	f := &FormRequested{
		Number: 12, Form: testID(1), Promise: testID(2), Resolver: testID(3), From: testID(4), To: testID(5), Description: "Set up your server",
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
