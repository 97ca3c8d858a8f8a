package actors

import (
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
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
	ask := func(form, fields int) (view.Asked, error) {
		heavy := heavyFields(fields)
		heavy[0].Label = fmt.Sprint("form ", form) // so that no two forms share their fields
		return fae.Ask(t.Context(), parley.Form{To: "@host", Description: "d", Fields: heavy})
	}
	before := heapInUse()
	for i := range 37 {
		if _, err := ask(i, 256); parley.CodeOf(err) != parley.InvalidForm {
			t.Fatalf("256 fields: %v", err)
		}
	}
	for i := range 37 {
		asked, err := ask(i, 4)
		if err != nil {
			t.Fatal(err)
		}
		ref, wrong := capabilities.FormID(asked.Form), parley.Answer{Values: map[string]capabilities.Value{"f0": capabilities.String("1")}}
		if _, err := n.Host().Answer(t.Context(), ref, wrong); parley.CodeOf(err) != parley.InvalidAnswer {
			t.Fatalf("form %d: %v", i, err)
		}
	}
	if grown := heapInUse() - before; grown > 2*schemaCacheSize {
		t.Errorf("37 forms take %d MiB", grown>>20)
	}
}

// someFields are fields of the same size for each n.
func someFields(n int) []events.Field {
	return []events.Field{{Name: fmt.Sprintf("f%07d", n), Type: events.Text, Required: true}}
}

func schemaOf(t *testing.T, fields []events.Field) *form.Schema {
	t.Helper()
	schema, err := form.Compile(fields)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func TestSchemaCacheEvictsLeastRecent(t *testing.T) {
	room := 3 * schemaOf(t, someFields(0)).Memory()
	c, by := newSchemaCache(room), capabilities.ID{ULID: [16]byte{1}}
	for i := range 3 {
		c.add(by, schemaOf(t, someFields(i)), true)
	}
	c.find(someFields(0), true)
	c.add(by, schemaOf(t, someFields(3)), true)
	for i, want := range []bool{true, false, true, true} {
		if got := c.find(someFields(i), true) != nil; got != want {
			t.Errorf("schema %d is cached: %t", i, got)
		}
	}
	c.add(by, schemaOf(t, someFields(3)), true)
	c.expire(time.Now().Add(time.Second))
	if c.free != room || len(c.slots)+c.used.Len()+len(c.sharers)+len(c.largest) != 0 {
		t.Errorf("%d bytes are free of %d", c.free, room)
	}
}

func TestSchemaCacheIsFairBetweenAccounts(t *testing.T) {
	c := newSchemaCache(10 * schemaOf(t, someFields(0)).Memory())
	host, hostile := capabilities.ID{ULID: [16]byte{1}}, capabilities.ID{ULID: [16]byte{2}}
	for i := range 5 {
		c.add(host, schemaOf(t, someFields(i)), true)
	}
	for i := range 1000 {
		c.add(hostile, schemaOf(t, someFields(10+i)), true)
	}
	for i := range 5 {
		if c.find(someFields(i), true) == nil {
			t.Errorf("schema %d of the host is gone", i)
		}
	}
	c.add(host, schemaOf(t, heavyFields(4)), true)
	if c.find(heavyFields(4), true) != nil {
		t.Error("a schema larger than the room was kept")
	}
}

func TestSchemaCacheKeepsBoundsOfNewForms(t *testing.T) {
	c, by := newSchemaCache(1<<20), capabilities.ID{ULID: [16]byte{1}}
	c.add(by, schemaOf(t, someFields(0)), false)
	if c.find(someFields(0), false) == nil || c.find(someFields(0), true) != nil {
		t.Error("the schema is for forms in the log alone")
	}
	c.add(by, schemaOf(t, someFields(0)), true)
	if c.find(someFields(0), true) == nil || len(c.slots) != 1 {
		t.Error("a schema for new forms is for all")
	}
}

func TestMailboxesReadAtOnceShareFields(t *testing.T) {
	for range 200 {
		c := newSchemaCache(1 << 20)
		var shared [4][]events.Field
		var read sync.WaitGroup
		for i := range shared {
			read.Go(func() { shared[i] = c.share(capabilities.ID{ULID: [16]byte{byte(i)}}, someFields(0)) })
		}
		read.Wait()
		for _, fields := range shared {
			if &fields[0] != &shared[0][0] {
				t.Fatal("two mailboxes have copies of their own")
			}
		}
	}
}

func TestFormsShareEqualFields(t *testing.T) {
	folder := t.TempDir()
	n := openNode(t, folder)
	a, b := guest(t, n, "a"), guest(t, n, "b")
	fields := func() []events.Field {
		return []events.Field{{Name: "ok", Type: events.Confirm, Default: capabilities.String("Yes")}, {Name: "port", Type: events.Number}}
	}
	var agents []*Agent
	for _, g := range []*Agent{a, b, a} {
		ask(t, g, parley.Form{Fields: fields()})
		agents = append(agents, g, n.Host())
	}
	shared := func(n *Node) {
		t.Helper()
		first := map[*events.Field]bool{}
		for _, g := range agents {
			_, err := query(t.Context(), &Agent{node: n, id: g.id}, func(s *mailbox.State, _ capabilities.Time) (none, error) {
				for m := range s.Mail.Held() {
					first[&m.Form.Fields[0]] = true
				}
				return none{}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if len(first) != 1 {
			t.Errorf("the forms have %d copies of their fields", len(first))
		}
	}
	shared(n)
	closeNode(t, n)
	shared(openNode(t, folder)) // read from the log
}
