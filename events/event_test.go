package events

import (
	"bytes"
	"errors"
	"testing"

	"github.com/vmihailenco/msgpack/v5"
)

// upcastFrom1 converts an invented version 1 of MessageDismissed, with its number as text in a record.
func upcastFrom1(payload []byte) ([]byte, error) {
	var old struct{ Which map[string]string }
	if err := unmarshalArray(payload, &old); err != nil {
		return nil, err
	}
	return marshalArray(struct{ Which string }{old.Which["number"]})
}

// upcastFrom2 converts an invented version 2 of MessageDismissed, with its number as text.
func upcastFrom2(payload []byte) ([]byte, error) {
	var old struct{ Which string }
	if err := unmarshalArray(payload, &old); err != nil {
		return nil, err
	}
	return marshalArray(struct{ Number int }{len(old.Which)}) // "xxx" is 3
}

func unmarshalArray(b []byte, x any) error { return msgpack.NewDecoder(bytes.NewReader(b)).Decode(x) }

func marshalArray(x any) ([]byte, error) {
	var buf bytes.Buffer
	enc := msgpack.NewEncoder(&buf)
	enc.UseArrayEncodedStructs(true)
	err := enc.Encode(x)
	return buf.Bytes(), err
}

func mustMarshal(t testing.TB, x any) []byte {
	t.Helper()
	b, err := marshalArray(x)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func upcastNothing(payload []byte) ([]byte, error) { return payload, nil }

// history returns schemas with one event at version 3.
func history(upcasts map[uint8]upcast) map[Kind]schema {
	return map[Kind]schema{kindMessageDismissed: {
		name: "MessageDismissed", version: 3, make: func() Event { return new(MessageDismissed) }, upcast: upcasts,
	}}
}

func TestOlderVersionsAreUpcastStepByStep(t *testing.T) {
	known := history(map[uint8]upcast{1: upcastFrom1, 2: upcastFrom2})
	for version, payload := range map[uint8][]byte{
		1: mustMarshal(t, struct{ Which map[string]string }{map[string]string{"number": "xxxxx"}}),
		2: mustMarshal(t, struct{ Which string }{"xxxxx"}),
		3: mustMarshal(t, struct{ Number int }{5}),
	} {
		evs, err := decodeAs(known, rawEvent(t, kindMessageDismissed, version, payload), 1)
		if err != nil {
			t.Fatalf("version %d: %v", version, err)
		}
		if e := evs[0].Event.(*MessageDismissed); e.Number != 5 || evs[0].At != goldenAt {
			t.Errorf("version %d: got %+v at %d", version, e, evs[0].At)
		}
	}
}

func TestNewerEventsAreUnknown(t *testing.T) {
	payload := mustMarshal(t, struct{ Number int }{5})
	for what, c := range map[string]struct {
		known   map[Kind]schema
		kind    Kind
		version uint8
	}{
		"a later version":     {schemas, kindMessageDismissed, uint8(Version(&MessageDismissed{})) + 1},
		"the largest version": {schemas, kindFormRequested, 255},
		"version 0":           {schemas, kindMessageDismissed, 0},
		"kind 0":              {schemas, 0, 1},
		"an unknown kind":     {schemas, 200, 1},
		"a missing upcast":    {history(map[uint8]upcast{1: upcastNothing}), kindMessageDismissed, 1},
		"no upcasts":          {history(nil), kindMessageDismissed, 2},
	} {
		before := rawEvent(t, kindMessageDismissed, known(c.known), payload)
		evs, err := decodeAs(c.known, append(before, rawEvent(t, c.kind, c.version, payload)...), 2)
		u, ok := errors.AsType[*UnknownError](err)
		if !ok || u.Kind != c.kind || u.Version != uint64(c.version) || u.Error() == "" {
			t.Errorf("%s: got %v, %v", what, evs, err)
		}
		if len(evs) != 1 {
			t.Errorf("%s: the earlier event is lost", what)
		}
	}
}

func known(all map[Kind]schema) uint8 { return all[kindMessageDismissed].version }

func TestUpcastErrorNamesVersion(t *testing.T) {
	broken := errors.New("broken")
	evs, err := decodeAs(history(map[uint8]upcast{2: func([]byte) ([]byte, error) { return nil, broken }}),
		rawEvent(t, kindMessageDismissed, 2, []byte{0x90}), 1)
	if !errors.Is(err, broken) || err.Error() != "upcast MessageDismissed from version 2: broken" {
		t.Fatalf("got %v, %v", evs, err)
	}
}

func TestSchemasMatchTheirEvents(t *testing.T) {
	names := map[string]bool{}
	for kind, s := range schemas {
		e := s.make()
		switch e := e.(type) { // without these fields they are written as an earlier version
		case *FormForwarded:
			e.Because.Cause = Absent
		case *ForwardQueued:
			e.Because.Cause = Absent
		case *RunEnded:
			e.By = testID(1)
		case *AnswerQueued:
			e.Revision = 2
		}
		if e.kind() != kind || Name(e) != s.name || Version(e) != int(s.version) || names[s.name] {
			t.Errorf("kind %d: %T of kind %d named %s", kind, e, e.kind(), Name(e))
		}
		names[s.name] = true
		for v := uint8(1); v < s.version; v++ {
			if s.upcast[v] == nil {
				t.Errorf("%s has no upcast from version %d", s.name, v)
			}
		}
	}
}
