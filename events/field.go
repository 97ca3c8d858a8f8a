package events

import (
	"encoding/json"

	"parley/capabilities"
)

// FieldType says what a field asks for and how it is drawn. "" is text, or, with a pattern, anything the
// pattern allows.
type FieldType string

// The types of fields.
const (
	Text        FieldType = "text"
	Textarea    FieldType = "textarea"
	Number      FieldType = "number"
	Checkbox    FieldType = "checkbox"
	Select      FieldType = "select"
	Multiselect FieldType = "multiselect"
	Radio       FieldType = "radio"
	Buttons     FieldType = "buttons"
	Confirm     FieldType = "confirm"
	Date        FieldType = "date"
	Secret      FieldType = "secret"
	Capability  FieldType = "capability"
)

// Field is one question of a form. Its whole contract is data: Pattern is a JSON Schema (2020-12) for the
// answer's JSON form. A null Default or Example is none.
type Field struct {
	Name        string             `json:"name"`
	Label       string             `json:"label,omitempty"`
	Type        FieldType          `json:"type,omitempty"`
	Required    bool               `json:"required,omitempty"`
	Default     capabilities.Value `json:"default,omitzero"`
	Placeholder string             `json:"placeholder,omitempty"`
	Help        string             `json:"help,omitempty"`
	Options     []Option           `json:"options,omitempty"`
	Example     capabilities.Value `json:"example,omitzero"`
	Pattern     json.RawMessage    `json:"pattern,omitempty"`
}

// Option is one choice of a field. An empty Label shows the value.
type Option struct {
	Value       string `json:"value"`
	Label       string `json:"label,omitempty"`
	Description string `json:"description,omitempty"`
}
