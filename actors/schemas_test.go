package actors

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/form"
)

// heavyFields returns n fields with a regular expression that compiles to a thousand times its length.
func heavyFields(n int) []events.Field {
	fields := make([]events.Field, n)
	for i := range fields {
		fields[i] = events.Field{Name: fmt.Sprintf("f%d", i), Pattern: json.RawMessage(`{"pattern":"^\\pL{200}$"}`)}
	}
	return fields
}

func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}

func TestSchemaCacheBoundsMemory(t *testing.T) {
	n := openNode(t, t.TempDir())
	fae := guest(t, n, "guest")
	ask := func(fields int) (view.Asked, error) {
		return fae.Ask(t.Context(), Ask{To: "@host", Description: "d", Fields: heavyFields(fields)})
	}
	before := heapInUse()
	for range 37 {
		if _, err := ask(256); parley.CodeOf(err) != parley.InvalidForm {
			t.Fatalf("256 fields: %v", err)
		}
	}
	for i := range 37 {
		asked, err := ask(4)
		if err != nil {
			t.Fatal(err)
		}
		wrong := Answer{Form: capabilities.FormID(asked.Form), Values: map[string]capabilities.Value{"f0": capabilities.String("1")}}
		if _, err := n.Host().Answer(t.Context(), wrong); parley.CodeOf(err) != parley.InvalidAnswer {
			t.Fatalf("form %d: %v", i, err)
		}
	}
	if grown := heapInUse() - before; grown > 2*schemaCacheSize {
		t.Errorf("37 forms take %d MiB", grown>>20)
	}
}

func TestSchemaCacheEvictsLeastRecent(t *testing.T) {
	schema, err := form.Compile(heavyFields(1))
	if err != nil {
		t.Fatal(err)
	}
	c := newSchemaCache(3 * schema.Memory())
	key := func(i byte) formKey { return formKey{form: capabilities.ID{ULID: [16]byte{i}}} }
	for i := range byte(3) {
		c.put(key(i), schema)
	}
	c.get(key(0))
	c.put(key(3), schema)
	for i, want := range []bool{true, false, true, true} {
		if got := c.get(key(byte(i))) != nil; got != want {
			t.Errorf("schema %d is cached: %t", i, got)
		}
	}
	for i := range byte(4) {
		c.drop(key(i))
	}
	if c.free != 3*schema.Memory() || len(c.slots)+c.used.Len() != 0 {
		t.Errorf("%d bytes are free of %d", c.free, 3*schema.Memory())
	}
}
