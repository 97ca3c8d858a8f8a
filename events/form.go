package events

import (
	"encoding/json"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"parley/capabilities"
)

// FieldType is the type of a field: what it asks for and how it is drawn. "" is text, or, with a pattern, anything the
// pattern accepts.
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

// Field is one question of a form. Pattern is a JSON Schema (2020-12) for the JSON form of the answer. A null Default
// or Example is none.
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

// Option is one choice of a field. Without a Label its value is shown.
type Option struct {
	Value       string `json:"value"`
	Label       string `json:"label,omitempty"`
	Description string `json:"description,omitempty"`
}

// FieldText is the answer to one field as text, which is read by the type of the field. A field for several choices has
// one for each. It is part of no event.
type FieldText struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// FormKind is the kind of a form: how it came about and what it is called.
type FormKind string

// The kinds of forms.
const (
	PlainForm FormKind = ""         // fields that the asker made up
	Approval  FormKind = "approval" // whether a tool may be called: its title names that, its description is the input
	Request   FormKind = "request"  // a capability asked for in words: one capability field named "value"
)

// FormRequested adds a form to a mailbox: the asker's, which is the home of its promise, or as a copy that of an agent
// that may answer it. Number is the mailbox's own. Via, Facet, Key and Result are set in the asker's alone, and
// Forwarder and Chain in copies. Everything else is the same in all.
type FormRequested struct {
	Number      uint64             `json:"number"`
	ID          capabilities.ID    `json:"form"` // also the message's ID
	Promise     capabilities.ID    `json:"promise"`
	Resolver    capabilities.ID    `json:"resolver"`
	From        capabilities.ID    `json:"from"`
	To          capabilities.ID    `json:"to"`
	Via         capabilities.ID    `json:"via,omitzero"`   // the grant by which From reached To
	Facet       capabilities.Facet `json:"facet,omitzero"` // and how much of To it held
	Kind        FormKind           `json:"kind,omitempty"`
	Title       string             `json:"title,omitempty"`
	Description string             `json:"description"`
	Fields      []Field            `json:"fields"`
	Deadline    capabilities.Time  `json:"deadline,omitzero"`
	NoForward   bool               `json:"noForward,omitempty"`
	ReplyTo     capabilities.ID    `json:"replyTo,omitzero"`
	Date        capabilities.Time  `json:"date"`                 // when it was asked
	Key         string             `json:"key,omitempty"`        // idempotency key
	Result      string             `json:"resultName,omitempty"` // the answer is bound to this name
	Forwarder   capabilities.ID    `json:"forwarder,omitzero"`   // who handed this copy on
	Chain       []capabilities.ID  `json:"chain,omitempty"`      // who held it before, first the one asked
	Origin      *Origin            `json:"origin,omitempty"`     // of a form that was asked in a dialect
}

// Origin says in which dialect a form was asked, and holds what the dialect needs of the asker's words beyond the form
// itself. It gives no authority: an asker may write any.
type Origin struct {
	Dialect string `json:"dialect"`
	ID      string `json:"id,omitempty"`      // the asker's own for the form
	Session string `json:"session,omitempty"` // of a question
	Submit  string `json:"submit,omitempty"`  // label of its button
	Run     string `json:"run,omitempty"`     // of an input
	Agent   string `json:"agent,omitempty"`   // the run's name for the asker
	Turn    uint64 `json:"turn,omitempty"`    // tells the inputs of one agent of a run apart
	Bare    bool   `json:"bare,omitempty"`    // the asker gave no description
}

// formWithoutOrigin lifts version 1, which had no Origin. Forms without one are still written so. It uses the payload up.
func formWithoutOrigin(payload []byte) ([]byte, error) {
	if len(payload) < 3 || payload[0] != msgpcode.Array16 || payload[1] != 0 || payload[2] != formFields-1 {
		return nil, errMalformed
	}
	payload[2]++
	return append(payload, msgpcode.Nil), nil
}

// FormAnswered settles a form with values. By is the answerer, and Date the time when the home settled it. The copy of
// a holder that did not answer is Withheld: it has no values.
type FormAnswered struct {
	Form     capabilities.ID      `json:"form"`
	By       capabilities.ID      `json:"by"`
	Values   capabilities.Value   `json:"values"` // a record
	Date     capabilities.Time    `json:"date"`
	Grants   []capabilities.Grant `json:"grants,omitempty"` // what the answer gives away
	Withheld bool                 `json:"withheld,omitempty"`
	Answer   capabilities.ID      `json:"answer,omitzero"` // the settlement's own ID, if it came from another node
}

// Reason is why a form ended without an answer.
type Reason string

// The reasons.
const (
	Cancelled  Reason = "cancelled"  // the asker took it back
	Declined   Reason = "declined"   // one who was asked said no
	Expired    Reason = "expired"    // its deadline passed
	Superseded Reason = "superseded" // the asker put another in its place
)

// FormCancelled settles a form without an answer. By is zero for an expired one.
type FormCancelled struct {
	Form   capabilities.ID   `json:"form"`
	Reason Reason            `json:"reason"`
	By     capabilities.ID   `json:"by,omitzero"`
	Note   string            `json:"note,omitempty"` // in words, by who ended it
	Date   capabilities.Time `json:"date"`
	Answer capabilities.ID   `json:"answer,omitzero"` // as in FormAnswered
}

// FormForwarded lets another agent answer a form. It is in the home's log and in the forwarder's. Via, if set, is the
// grant by which the home can reach To.
type FormForwarded struct {
	Form capabilities.ID   `json:"form"`
	By   capabilities.ID   `json:"by"`
	To   capabilities.ID   `json:"to"`
	Date capabilities.Time `json:"date"`
	Via  capabilities.ID   `json:"via,omitzero"`
}

// forwardedVia lifts version 1, which had no Via.
func forwardedVia(payload []byte) ([]byte, error) {
	var old struct {
		_msgpack     struct{} `msgpack:",as_array"`
		Form, By, To capabilities.ID
		Date         capabilities.Time
	}
	if err := msgpack.Unmarshal(payload, &old); err != nil {
		return nil, err
	}
	return encodeLifted(&FormForwarded{Form: old.Form, By: old.By, To: old.To, Date: old.Date})
}

// AnswerQueued is a holder's answer or decline of a form whose home is on another node, kept until the home has
// decided on it. Reason is "" for an answer. Secret values are sealed. Answer is the settlement's own ID.
type AnswerQueued struct {
	Form   capabilities.ID      `json:"form"`
	Reason Reason               `json:"reason,omitempty"`
	Note   string               `json:"note,omitempty"`
	Values capabilities.Value   `json:"values,omitzero"`
	Grants []capabilities.Grant `json:"grants,omitempty"`
	Date   capabilities.Time    `json:"date"`
	Answer capabilities.ID      `json:"answer,omitzero"`
}

// ForwardQueued is a holder's forward of a form whose home is on another node, kept until the home has decided on it.
// Via is the grant, made for that, by which the home can reach To.
type ForwardQueued struct {
	Form capabilities.ID   `json:"form"`
	To   capabilities.ID   `json:"to"`
	Via  capabilities.ID   `json:"via,omitzero"`
	Date capabilities.Time `json:"date"`
}
