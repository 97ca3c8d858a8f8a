package openapi

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
)

// Schema is a JSON Schema (2020-12), with the keywords that Parley's types need.
type Schema struct {
	Ref         string             `json:"$ref,omitempty"`
	OneOf       []*Schema          `json:"oneOf,omitempty"`
	Type        string             `json:"type,omitempty"`
	GoName      string             `json:"x-go-name,omitempty"`
	Format      string             `json:"format,omitempty"`
	Description string             `json:"description,omitempty"`
	Pattern     string             `json:"pattern,omitempty"`
	Minimum     *int               `json:"minimum,omitempty"`
	Items       *Schema            `json:"items,omitempty"`
	Properties  map[string]*Schema `json:"properties,omitempty"`
	Additional  *Schema            `json:"additionalProperties,omitempty"`
	Required    []string           `json:"required,omitempty"`
}

// Schemas holds the schemas of structs by published name. The zero map is not usable.
type Schemas map[string]*Schema

// RefPrefix is the beginning of a Schema's Ref. The name of a schema follows it.
const RefPrefix = "#/components/schemas/"

// refName is the name of the schema of api.RefText. Many generators take no list of types, so it is one of two schemas.
const refName = "Ref"

// idPattern matches an ID: {ULID}@{node}.
const idPattern = `^[0-9A-HJKMNP-TV-Z]{26}@N[A-Z2-7]{55}$`

// encoders has the schemas of types that encode themselves.
var encoders = map[reflect.Type]Schema{
	reflect.TypeFor[capabilities.ID]():     {Type: "string", Pattern: idPattern, Description: "An ID: {ULID}@{node}."},
	reflect.TypeFor[capabilities.NodeID](): {Type: "string", Pattern: `^N[A-Z2-7]{55}$`, Description: "A node's public key."},
	reflect.TypeFor[capabilities.Time]():   {Type: "string", Format: "date-time", Description: "A time in UTC, with milliseconds."},
	reflect.TypeFor[capabilities.Value]():  {Description: `Any passable value: plain JSON, {"$cap":ID,"kind":KIND} for a reference, {"$bytes":BASE64}, or {"$sealed":true}.`},
	reflect.TypeFor[view.Amounts]():        {Type: "object", Additional: &Schema{Type: "integer"}, Description: "An amount for each quota by name. -1 is no limit."},
	reflect.TypeFor[json.RawMessage]():     {Description: "Any JSON."},
	reflect.TypeFor[events.Event]():        {Type: "object", Description: "An event's own members."},
}

// Of returns the schema of a type. It adds that of a struct to s, and returns a reference to it.
func (s Schemas) Of(t reflect.Type) *Schema {
	if t.Kind() == reflect.Pointer {
		return s.Of(t.Elem())
	}
	if own, ok := encoders[t]; ok {
		return &own
	}
	if t == reflect.TypeFor[api.RefText]() {
		s[refName] = &Schema{
			OneOf:       []*Schema{{Type: "string"}, {Type: "integer"}},
			Description: "A message's number, or the ID of a message, form or promise.",
		}
		return &Schema{Ref: RefPrefix + refName}
	}
	if t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return &Schema{Type: "string"}
	}
	if t == reflect.TypeFor[parley.Fields]() {
		t = reflect.TypeFor[[]events.Field]()
	}
	zero := 0
	switch t.Kind() {
	case reflect.Bool:
		return &Schema{Type: "boolean"}
	case reflect.String:
		return &Schema{Type: "string"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return &Schema{Type: "integer"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &Schema{Type: "integer", Minimum: &zero}
	case reflect.Float32, reflect.Float64:
		return &Schema{Type: "number"}
	case reflect.Slice, reflect.Array:
		return &Schema{Type: "array", Items: s.Of(t.Elem())}
	case reflect.Map:
		return &Schema{Type: "object", Additional: s.Of(t.Elem())}
	case reflect.Struct:
		return s.structure(t)
	}
	return &Schema{} // any value
}

// structure adds the schema of a struct, and returns a reference to it.
func (s Schemas) structure(t reflect.Type) *Schema {
	name := publishedName(t)
	if _, ok := s[name]; !ok {
		made := &Schema{Type: "object", GoName: goName(name)}
		s[name] = made // before its members: one may be of the same type
		s.addMembers(t, made)
	}
	return &Schema{Ref: RefPrefix + name}
}

// publishedName returns the name of a type in the document. Types of package view were published as those of actors, and the root has the names of fault.
func publishedName(t reflect.Type) string {
	name := strings.TrimPrefix(t.String(), "api.")
	switch name {
	case "view.Message":
		return "actors.Envelope"
	case "view.AgentStatus":
		return "actors.Snapshot"
	case "view.AgentFilter":
		return "actors.Filter"
	case "fault.Error":
		return "parley.Error"
	case "parley.Decision", "parley.Escalation":
		return strings.TrimPrefix(name, "parley.")
	case "events.FieldText":
		return "Text"
	}
	if shown, ok := strings.CutPrefix(name, "view."); ok {
		return "actors." + shown
	}
	return name
}

// goName returns the name that oapi-codegen, a generator of Go, is to give a schema. It is "" for the one that it would
// give. It calls the whole response of an operation, with its status, NAMEResponse.
func goName(schema string) string {
	if name, ok := strings.CutSuffix(schema, "Response"); ok {
		return name + "Result"
	}
	return ""
}

// addMembers adds the members of a struct to its schema. It adds those of embedded structs among them.
func (s Schemas) addMembers(t reflect.Type, to *Schema) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		embedded := f.Type
		if embedded.Kind() == reflect.Pointer {
			embedded = embedded.Elem()
		}
		switch {
		case f.Anonymous && name == "" && embedded.Kind() == reflect.Struct:
			s.addMembers(embedded, to)
			continue
		case !f.IsExported() || name == "-":
			continue
		case name == "":
			name = f.Name
		}
		if to.Properties == nil {
			to.Properties = map[string]*Schema{}
		}
		to.Properties[name] = s.Of(f.Type)
		if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") && f.Type.Kind() != reflect.Pointer {
			to.Required = append(to.Required, name)
		}
	}
}
