package parley

import (
	"encoding/json"

	"parley/capabilities"
	"parley/events"
)

// Field is one question of a form. docs/forms.md lists the types, and what a pattern may be.
type Field = events.Field

// Option is one choice of a field. An empty Label shows the value.
type Option = events.Option

// FieldText is the answer to one field as text.
type FieldText = events.FieldText

// Delay is a time after a form was asked, in milliseconds. As text it is as in "1h0m0s".
type Delay = events.Delay

// Form is a form as its asker gives it. The zero values of all but To, Description and Fields are good defaults.
type Form struct {
	To          string            `json:"recipient"` // a path of the asker's names, as HOST, or the ID or locator of an agent
	Description string            `json:"description"`
	Title       string            `json:"title,omitempty"`
	Fields      Fields            `json:"fields"`
	Name        string            `json:"name,omitempty"`    // the answer is bound to this name; if it is bound, nothing is sent
	Key         string            `json:"key,omitempty"`     // idempotency key, of 255 bytes at most: the same one is the same form
	Deadline    capabilities.Time `json:"deadline,omitzero"` // it expires then
	NoForward   bool              `json:"noForward,omitempty"`
	Remind      []Delay           `json:"remind,omitempty"`   // when who may answer is reminded
	Escalate    []Escalation      `json:"escalate,omitempty"` // who may answer too, from when on
	Need        uint32            `json:"need,omitempty"`     // so many hosts have to answer; another node counts as one (default 1)
	Veto        *bool             `json:"veto,omitempty"`     // of a form that needs several: one decline ends it (default true)
	NoSelf      bool              `json:"noSelf,omitempty"`   // answers by agents of the asker's own host are refused
	Passkey     bool              `json:"passkey,omitempty"`  // an answer has to be signed with a passkey; a decline needs none

	Origin *events.Origin `json:"-"` // of a form asked in a dialect
}

// Escalation lets another agent answer a form that is still open after a time.
type Escalation struct {
	After Delay  `json:"after"` // as in "4h"
	To    string `json:"to"`    // as in Form
}

// Request asks for a capability in words. Its answer is under the name "value".
type Request struct {
	To        string            `json:"recipient"` // as in Form
	Text      string            `json:"text"`
	Name      string            `json:"name,omitempty"` // what is given is bound to this name
	Key       string            `json:"key,omitempty"`
	Deadline  capabilities.Time `json:"deadline,omitzero"`
	NoForward bool              `json:"noForward,omitempty"`
	Passkey   bool              `json:"passkey,omitempty"` // giving it has to be signed with a passkey; rejecting it needs none
}

// Approval asks whether a tool may be called with an input, any JSON value, which is shown unchanged.
type Approval struct {
	To       string            `json:"recipient,omitempty"` // default: the agent's host
	Tool     string            `json:"tool"`
	Input    json.RawMessage   `json:"input"`
	Folder   string            `json:"folder,omitempty"` // the working folder of the call, an absolute path; wider rules need it
	Reason   string            `json:"reason,omitempty"` // why the call is made, in the agent's own words
	Part     string            `json:"part,omitempty"`   // the part of the agent that makes it, such as a subagent, as the agent names it
	Key      string            `json:"key,omitempty"`
	Deadline capabilities.Time `json:"deadline,omitzero"`
	Attended bool              `json:"attended,omitempty"` // ask only if a client follows the mail of the recipient
	Editable bool              `json:"editable,omitempty"` // the agent makes the call with the editedInput of the outcome, if that has one
	Remind   []Delay           `json:"remind,omitempty"`   // as in Form
	Escalate []Escalation      `json:"escalate,omitempty"` // as in Form; only with Need
	Need     uint32            `json:"need,omitempty"`     // so many hosts have to allow the call once, the agent's own among them (default 1)
	Veto     *bool             `json:"veto,omitempty"`     // with Need: one denial ends it (default true); that of the agent's own host always does
	Passkey  bool              `json:"passkey,omitempty"`  // who allows it signs that with a passkey: no rule, mandate or reviewer does; a denial needs none

	Origin *events.Origin `json:"-"` // as in Form
}

// Amendment corrects the question of a form. Nil parts stay as they are.
type Amendment struct {
	Title       *string `json:"title,omitempty"`
	Description *string `json:"description,omitempty"`
	Fields      Fields  `json:"fields,omitzero"`
	Note        string  `json:"note,omitempty"` // why, for those who were asked
}

// Answer is an answer to a form. Values are typed; a text for a capability is a path of the answerer's names. Texts are read
// by the types of their fields, as on a command line. A field is in one of the two. Digest is of the call that was shown, as a
// message has it: an approval of another call is refused. Revision is of the question that was shown: an answer to another one
// is refused with AMENDED. Without it, the answer is to the present question.
type Answer struct {
	Digest   string                        `json:"digest,omitempty"`
	Revision uint64                        `json:"revision,omitempty"`
	Values   map[string]capabilities.Value `json:"values,omitempty"`
	Texts    []FieldText                   `json:"texts,omitempty"`

	// Narrow has the facets to which the references in fields are narrowed, by the names of these fields. The asker gets no more
	// than that.
	Narrow map[string]capabilities.Facet `json:"narrow,omitempty"`

	Mandate *MandateTerms `json:"mandate,omitempty"` // with the decision once on an approval: leave for later calls

	Passkey *PasskeySignature `json:"passkey,omitempty"` // of this answer, where one is wanted: see ask_passkey
}

// Decision is a decision on one approval, as an answer to its form. Digest is of the call that was shown: an approval of
// another call is refused.
type Decision struct {
	Form     capabilities.ID `json:"form"`
	Digest   string          `json:"digest"`
	Decision string          `json:"decision"` // once, always, deny or never
	Reason   string          `json:"reason,omitempty"`
	Rule     string          `json:"rule,omitempty"`  // of always and never: one that the approval offers; default: for that very call
	Until    string          `json:"until,omitempty"` // when that ends: a time from now (8h), or a moment

	Mandate *MandateTerms `json:"mandate,omitempty"` // of once: leave for later calls
}
