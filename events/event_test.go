package events

import (
	"bytes"
	"errors"
	"testing"

	"github.com/vmihailenco/msgpack/v5"
)

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

func TestEventsOfOtherVersionsAreUnknown(t *testing.T) {
	payload := mustMarshal(t, struct{ Number int }{5})
	for what, c := range map[string]struct {
		kind    Kind
		version uint8
	}{
		"a later version":     {kindMessageDismissed, uint8(Version(&MessageDismissed{})) + 1},
		"the largest version": {kindFormRequested, 255},
		"version 0":           {kindMessageDismissed, 0},
		"kind 0":              {0, 1},
		"an unknown kind":     {200, 1},
	} {
		before := rawEvent(t, kindMessageDismissed, 1, payload)
		evs, err := Decode(append(before, rawEvent(t, c.kind, c.version, payload)...), 2)
		u, ok := errors.AsType[*UnknownError](err)
		if !ok || u.Kind != c.kind || u.Version != uint64(c.version) || u.Error() == "" {
			t.Errorf("%s: got %v, %v", what, evs, err)
		}
		if len(evs) != 1 {
			t.Errorf("%s: the earlier event is lost", what)
		}
	}
}

func TestSchemasMatchTheirEvents(t *testing.T) {
	names := map[string]bool{}
	for kind, s := range schemas {
		e := s.make()
		if e.kind() != kind || Name(e) != s.name || Version(e) != int(s.version) || names[s.name] {
			t.Errorf("kind %d: %T of kind %d named %s", kind, e, e.kind(), Name(e))
		}
		names[s.name] = true
	}
}
