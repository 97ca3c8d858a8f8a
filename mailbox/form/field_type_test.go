package form

import (
	"slices"
	"testing"

	"parley/capabilities"
	"parley/events"
)

// Each row of the table says all that a field of its type needs, and nothing that contradicts another column.
func TestTypesAreWhole(t *testing.T) {
	seen := map[events.FieldType]bool{}
	for _, row := range Types {
		if seen[row.Name] {
			t.Errorf("%q stands twice", row.Name)
		}
		seen[row.Name] = true
		if TypeOf(row.Name).Name != row.Name || row.Says == "" {
			t.Errorf("%q is not found, or says nothing", row.Name)
		}
		if !slices.Contains([]Control{Line, Lines, Number, YesNo, Choice, Choices, Date, Secret, Reference, File, Any}, row.Asks) {
			t.Errorf("%q is asked for by %q", row.Name, row.Asks)
		}
		if !slices.Contains([]Taking{NoOptions, MayHave, NeedsOptions}, row.Takes) || (row.Given != nil || row.Ticks != "") && row.Takes != MayHave {
			t.Errorf("%q takes options: %q", row.Name, row.Takes)
		}
		if choice := row.Asks == Choice; choice != slices.Contains([]string{Menu, Radios, Buttons}, row.Shape) {
			t.Errorf("%q has the shape %q", row.Name, row.Shape)
		}
		typed := !slices.Contains([]Control{Lines, YesNo, Choice, Choices}, row.Asks)
		if typed != (row.Input != "") {
			t.Errorf("%q has the input %q", row.Name, row.Input)
		}
		if row.Format != "" && row.Asks.JSON() != "string" {
			t.Errorf("%q has a format, and is no text", row.Name)
		}
		if row.wrong != nil && row.wrong("") == "" {
			t.Errorf("%q takes a value that is no text", row.Name)
		}
	}
}

// A field of each type can be compiled, by what its row says of options, and is asked for by the control that its row has.
func TestEachTypeIsCompiled(t *testing.T) {
	options := []events.Option{{Value: "a"}, {Value: "b"}}
	for _, row := range Types {
		for _, with := range [][]events.Option{nil, options} {
			c, err := Compile([]events.Field{{Name: "a", Type: row.Name, Options: with}})
			if taken := row.Takes == MayHave || (row.Takes == NeedsOptions) == (with != nil); taken != (err == nil) {
				t.Errorf("%q with %d options: %v", row.Name, len(with), err)
			}
			if err != nil {
				continue
			}
			f := &c.Fields()[0]
			want := row.Asks
			if row.Ticks != "" && with != nil {
				want = row.Ticks
			}
			if got := ControlOf(f); got != want {
				t.Errorf("%q with %d options is asked for by %q, want %q", row.Name, len(with), got, want)
			}
			if len(with) == 0 && !slices.Equal(f.Options, row.Given) {
				t.Errorf("%q has the options %v", row.Name, f.Options)
			}
			_, err = c.Check(map[string]capabilities.Value{"a": capabilities.List(capabilities.Bool(true))})
			if err == nil {
				t.Errorf("%q takes a list with true in it", row.Name)
			}
		}
	}
	if TypeOf("nonsense") != nil || ControlOf(&events.Field{Type: "nonsense"}) != "" {
		t.Error("there is a type nonsense")
	}
}

func TestTypeForSchema(t *testing.T) {
	for _, c := range []struct {
		json, format string
		options      bool
		want         events.FieldType
	}{
		{"string", "", false, events.Text}, {"string", "email", false, events.Text}, {"string", "uri", false, events.Text}, {"string", "date", false, events.Date},
		{"string", "", true, events.Select}, {"string", "date", true, events.Select}, {"number", "", false, events.Number}, {"boolean", "", false, events.Checkbox},
		{"array", "", false, events.Multiselect}, {"array", "", true, events.Multiselect},
	} {
		if got, ok := TypeFor(c.json, c.format, c.options); !ok || got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
	for _, none := range []string{"", "object", "null"} {
		if got, ok := TypeFor(none, "", false); ok {
			t.Errorf("%q: %q", none, got)
		}
	}
}
