package gateway

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"

	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
)

// schema is a JSON Schema (2020-12), as far as Parley's types need it.
type schema struct {
	Ref         string             `json:"$ref,omitempty"`
	Type        any                `json:"type,omitempty"` // a name, or several
	Format      string             `json:"format,omitempty"`
	Description string             `json:"description,omitempty"`
	Pattern     string             `json:"pattern,omitempty"`
	Minimum     *int               `json:"minimum,omitempty"`
	Items       *schema            `json:"items,omitempty"`
	Properties  map[string]*schema `json:"properties,omitempty"`
	Additional  *schema            `json:"additionalProperties,omitempty"`
	Required    []string           `json:"required,omitempty"`
}

// schemas makes schemas of Go's types, those of structs once each, by name.
type schemas map[string]*schema

const schemaPlace = "#/components/schemas/"

// idPattern is an ID: {ULID}@{node}.
const idPattern = `^[0-9A-HJKMNP-TV-Z]{26}@N[A-Z2-7]{55}$`

// plain are the types that write themselves in a way of their own.
var plain = map[reflect.Type]schema{
	reflect.TypeFor[capabilities.ID]():     {Type: "string", Pattern: idPattern, Description: "An ID: {ULID}@{node}."},
	reflect.TypeFor[capabilities.NodeID](): {Type: "string", Pattern: `^N[A-Z2-7]{55}$`, Description: "A node's public key."},
	reflect.TypeFor[capabilities.Time]():   {Type: "string", Format: "date-time", Description: "A time in UTC, with milliseconds."},
	reflect.TypeFor[capabilities.Value]():  {Description: `Any passable value: plain JSON, {"$cap":ID,"kind":KIND} for a reference, {"$bytes":BASE64}, or {"$sealed":true}.`},
	reflect.TypeFor[view.Amounts]():        {Type: "object", Additional: &schema{Type: "integer"}, Description: "An amount for each quota by name. -1 is no limit."},
	reflect.TypeFor[json.RawMessage]():     {Description: "Any JSON."},
	reflect.TypeFor[api.RefText]():         {Type: []string{"string", "integer"}, Description: "A message's number, or the ID of a message, form or promise."},
	reflect.TypeFor[Cursor]():              {Type: []string{"string", "integer"}, Description: "Where to go on."},
	reflect.TypeFor[events.Event]():        {Type: "object", Description: "An event's own members."},
}

// of gives the schema of a type, or where it stands.
func (s schemas) of(t reflect.Type) *schema {
	if t.Kind() == reflect.Pointer {
		return s.of(t.Elem())
	}
	if p, ok := plain[t]; ok {
		return &p
	}
	if t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return &schema{Type: "string"}
	}
	if t == reflect.TypeFor[api.Fields]() {
		t = reflect.TypeFor[[]events.Field]()
	}
	zero := 0
	switch t.Kind() {
	case reflect.Bool:
		return &schema{Type: "boolean"}
	case reflect.String:
		return &schema{Type: "string"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return &schema{Type: "integer"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &schema{Type: "integer", Minimum: &zero}
	case reflect.Float32, reflect.Float64:
		return &schema{Type: "number"}
	case reflect.Slice, reflect.Array:
		return &schema{Type: "array", Items: s.of(t.Elem())}
	case reflect.Map:
		return &schema{Type: "object", Additional: s.of(t.Elem())}
	case reflect.Struct:
		return s.named(t)
	}
	return &schema{} // anything
}

// named puts the schema of a struct under its name.
func (s schemas) named(t reflect.Type) *schema {
	name := publishedName(t)
	if _, ok := s[name]; !ok {
		made := &schema{Type: "object"}
		s[name] = made // before its members, which may be of the same type
		s.members(t, made)
	}
	return &schema{Ref: schemaPlace + name}
}

// publishedName returns the name of a type in the document. Those of package view had their names before they were there.
func publishedName(t reflect.Type) string {
	name := strings.TrimPrefix(strings.TrimPrefix(t.String(), "gateway."), "api.")
	switch name {
	case "view.Message":
		return "actors.Envelope"
	case "view.AgentStatus":
		return "actors.Snapshot"
	case "view.AgentFilter":
		return "actors.Filter"
	}
	if shown, ok := strings.CutPrefix(name, "view."); ok {
		return "actors." + shown
	}
	return name
}

// members adds the members of a struct, those of embedded ones among its own.
func (s schemas) members(t reflect.Type, to *schema) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		embedded := f.Type
		if embedded.Kind() == reflect.Pointer {
			embedded = embedded.Elem()
		}
		switch {
		case f.Anonymous && name == "" && embedded.Kind() == reflect.Struct:
			s.members(embedded, to)
			continue
		case !f.IsExported() || name == "-":
			continue
		case name == "":
			name = f.Name
		}
		if to.Properties == nil {
			to.Properties = map[string]*schema{}
		}
		to.Properties[name] = s.of(f.Type)
		if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") && f.Type.Kind() != reflect.Pointer {
			to.Required = append(to.Required, name)
		}
	}
}
