package exchange

import (
	"encoding/json"
	"testing"

	"parley/events"
	"parley/mailbox/form"
	"parley/mailbox/form/formtest"
)

// The schema of an answer tells the JSON type of a field of each type, but for a capability, which no schema can tell.
func TestEachFieldTypeHasASchema(t *testing.T) {
	t.Parallel()
	for _, f := range formtest.EachType() {
		var schema struct {
			Properties map[string]struct {
				Type, Format string
				OneOf        []any
				Items        struct{ OneOf []any }
			}
		}
		if err := json.Unmarshal(Schema([]events.Field{f}), &schema); err != nil {
			t.Fatal(err)
		}
		asks := form.ControlOf(&f)
		want := asks.JSON()
		switch asks {
		case form.Any:
			want = "string"
		case form.File: // by its digest, name and size
			want = "object"
		}
		p := schema.Properties[f.Name]
		if p.Type != want || p.Format != form.TypeOf(f.Type).Format || len(p.OneOf)+len(p.Items.OneOf) != len(f.Options) {
			t.Errorf("%s: %+v", f.Name, p)
		}
	}
}
