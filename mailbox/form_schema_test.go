package mailbox

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"parley/capabilities"
	"parley/events"
	"parley/mailbox/form"
)

func TestFormOverLaterBoundsIsAnswerable(t *testing.T) {
	fields := make([]events.Field, 20)
	for i := range fields {
		fields[i] = events.Field{Name: fmt.Sprintf("f%d", i), Type: events.Text, Pattern: []byte(`{"pattern":"^\\pL{200}$"}`)}
	}
	q := &Question{FormRequested: &events.FormRequested{Fields: fields}}
	c, err := q.Schema()
	if err != nil {
		t.Fatalf("a form of the log: %v", err)
	}
	if _, err := c.Check(map[string]capabilities.Value{"f0": capabilities.String(strings.Repeat("é", 200))}); err != nil {
		t.Error(err)
	}
}

// TestStateKeepsNoSchemas checks that no type in State holds a compiled schema, which takes many times the memory of its
// text.
func TestStateKeepsNoSchemas(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var look func(path string, typ reflect.Type)
	look = func(path string, typ reflect.Type) {
		if typ == reflect.TypeFor[form.Schema]() {
			t.Errorf("%s has a %s", path, typ)
		}
		if seen[typ] {
			return
		}
		seen[typ] = true
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array:
			look(path, typ.Elem())
		case reflect.Map:
			look(path, typ.Key())
			look(path, typ.Elem())
		case reflect.Struct:
			for i := range typ.NumField() {
				look(path+"."+typ.Field(i).Name, typ.Field(i).Type)
			}
		}
	}
	look("State", reflect.TypeFor[State]())
}
