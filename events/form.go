package events

import (
	"crypto/sha256"
	"encoding/json"

	"github.com/vmihailenco/msgpack/v5"

	"parley/capabilities"
	"parley/internal/pack"
)

// FieldType is the type of a field: the values that it takes and the widget that shows it. "" is text, or with a
// pattern any value that the pattern accepts.
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
	URL         FieldType = "url"
	Secret      FieldType = "secret"
	Capability  FieldType = "capability"
	Document    FieldType = "file"
)

// Field is one question of a form. Pattern is a JSON Schema (2020-12) for the answer in JSON. A null Default or Example
// means none.
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

// FormKind is the kind of a form.
type FormKind string

// The kinds of forms.
const (
	PlainForm FormKind = ""         // any fields
	Approval  FormKind = "approval" // permission for a call: the title is the tool, the description its input
	Request   FormKind = "request"  // a request for a capability: one capability field named "value"
)

// FormRequested adds a form to a mailbox. The asker's mailbox is the home of its promise; agents that may answer it
// have copies. Number is the mailbox's own. Only the asker's mailbox has Via, Facet, Key and Result, and the
// times of Route. Only copies have Forwarder, Chain and Steps. The copy of an agent to which the form was escalated has that agent
// as To. All other fields are the same in all mailboxes.
type FormRequested struct {
	Number      uint64              `json:"number"`
	ID          capabilities.ID     `json:"form"` // also the message's ID
	Promise     capabilities.ID     `json:"promise"`
	Resolver    capabilities.ID     `json:"resolver"`
	From        capabilities.ID     `json:"from"`
	To          capabilities.ID     `json:"to"`
	Via         capabilities.ID     `json:"via,omitzero"`    // the grant by which From reached To
	Facet       *capabilities.Facet `json:"facet,omitempty"` // and how much of To it held; nil for all
	Kind        FormKind            `json:"kind,omitempty"`
	Title       string              `json:"title,omitempty"`
	Description string              `json:"description"`
	Call        *Call               `json:"call,omitempty"` // of an approval
	Fields      []Field             `json:"fields"`
	Deadline    capabilities.Time   `json:"deadline,omitzero"`
	NoForward   bool                `json:"noForward,omitempty"`
	Route       *Route              `json:"route,omitempty"`      // nil for a form that the first answer of its recipient settles
	ReplyTo     capabilities.ID     `json:"replyTo,omitzero"`     // the first message of the thread that it joins; zero for none
	Origin      *Origin             `json:"origin,omitempty"`     // of a form that was asked in a dialect
	Date        capabilities.Time   `json:"date"`                 // when it was asked
	Key         string              `json:"key,omitempty"`        // idempotency key
	Result      string              `json:"resultName,omitempty"` // the name to which the answer is bound
	Forwarder   capabilities.ID     `json:"forwarder,omitzero"`   // the agent that forwarded this copy
	Chain       []capabilities.ID   `json:"chain,omitempty"`      // all agents that forwarded it, the first recipient first
	Steps       *CopySteps          `json:"steps,omitempty"`      // how this copy came, if not by hand alone: an escalation, and each of Chain
	Asker       string              `json:"asker,omitempty"`      // what the asker calls itself: its title when it asked, or else the name that its maker gave it
}

// DecodeMsgpack reads the event as an array.
func (e *FormRequested) DecodeMsgpack(dec *msgpack.Decoder) error {
	b, err := dec.DecodeRaw()
	if err != nil {
		return err
	}
	return e.read(b)
}

// read reads the array. A facet that permits every use is in the log, and nil in memory.
func (e *FormRequested) read(b []byte) error {
	if err := msgpack.Unmarshal(b, (*plainForm)(e)); err != nil {
		return err
	}
	e.Facet = Narrowed(e.Held())
	return nil
}

// plainForm is a FormRequested that is decoded by reflection.
type plainForm FormRequested

// Call is what an approval has beside the tool and its input.
type Call struct {
	Folder  string          `json:"folder,omitempty"`  // where the call is made, absolute; "" if that is not known
	Decider capabilities.ID `json:"decider"`           // the asker's host, the only one who can allow the call
	Reason  string          `json:"reason,omitempty"`  // why the call is made, in the asker's own words
	Part    string          `json:"part,omitempty"`    // the part of the asker that makes it, as it names that
	Session string          `json:"session,omitempty"` // of a coding agent: the session that makes it, as the node calls that
	Offers  []Offer         `json:"offers,omitempty"`  // that for the very call first; none unless the asker's host was asked
	Use     *AskedUse       `json:"use,omitempty"`     // of an asker that is a resource; nil for an agent
}

// AskedUse is what a resource says of a use of it in the approval for that. The node has found out all of it but Called, which the holder
// has chosen. The tool and the input of the approval say what the use does.
type AskedUse struct {
	By      capabilities.ID   `json:"by"`                // the holder
	Holder  string            `json:"holder,omitempty"`  // what the giver calls it; "" if the giver has no name for it
	Through string            `json:"through,omitempty"` // what the giver calls the agent that it gave the reference to, if the holder has it from that one
	Kind    capabilities.Kind `json:"kind"`              // of the resource
	Name    string            `json:"name"`              // what the giver calls that
	Called  string            `json:"called,omitempty"`  // what the holder calls it
}

// Narrowed returns the Facet of a form: nil if it permits every use.
func Narrowed(f capabilities.Facet) *capabilities.Facet {
	if f.IsFull() {
		return nil
	}
	return &f
}

// Held returns how much of To the grant held by which From reached it.
func (e *FormRequested) Held() capabilities.Facet {
	if e.Facet == nil {
		return capabilities.Facet{}
	}
	return *e.Facet
}

// Held is the dialect of forms that were asked and are held on one connection. It is in the log, so that a node which starts knows which
// forms a process waited for: the process may have gone with the node before. Who asks in it can do nothing else until the form ends.
const Held = "held"

// Origin is the dialect in which a form was asked. It has the data that the dialect needs beyond the form itself. It
// gives no authority: an asker may write any.
type Origin struct {
	Dialect string `json:"dialect"`
	ID      string `json:"id,omitempty"`      // the asker's ID for the form
	Session string `json:"session,omitempty"` // of a question
	Submit  string `json:"submit,omitempty"`  // label of its button
	Run     string `json:"run,omitempty"`     // of an input
	Agent   string `json:"agent,omitempty"`   // the run's name for the asker
	Turn    uint64 `json:"turn,omitempty"`    // the number of the input, among those of one agent of a run
	Bare    bool   `json:"bare,omitempty"`    // the asker gave no description
}

// FormAnswered settles a form with values. By is the answerer, and Date the time when the home settled it. For a holder
// that did not answer, the event is Withheld: it has no values, or of a call that several decide the decision alone.
type FormAnswered struct {
	Form     capabilities.ID      `json:"form"`
	By       capabilities.ID      `json:"by"`
	Values   capabilities.Value   `json:"values"` // a record
	Date     capabilities.Time    `json:"date"`
	Grants   []capabilities.Grant `json:"grants,omitempty"` // for the capabilities in the answer
	Withheld bool                 `json:"withheld,omitempty"`
	Answer   capabilities.ID      `json:"answer,omitzero"` // the settlement's own ID, if it came from another node
}

// Reason is the reason why a form ended without an answer.
type Reason string

// The reasons.
const (
	Cancelled  Reason = "cancelled"  // by its asker
	Declined   Reason = "declined"   // by a recipient
	Expired    Reason = "expired"    // its deadline passed
	Superseded Reason = "superseded" // the asker replaced it
)

// Withdrawn is the Reason of an AnswerQueued that takes back the agent's vote. It ends no form.
const Withdrawn Reason = "withdrawn"

// FormCancelled settles a form without an answer. By is zero for an expired one.
type FormCancelled struct {
	Form   capabilities.ID   `json:"form"`
	Reason Reason            `json:"reason"`
	By     capabilities.ID   `json:"by,omitzero"`
	Note   string            `json:"note,omitempty"` // a comment by the agent that ended it
	Date   capabilities.Time `json:"date"`
	Answer capabilities.ID   `json:"answer,omitzero"` // as in FormAnswered
}

// FormForwarded lets another agent answer a form. It is recorded at the home and at the forwarder. Via, if set, is the
// grant by which the home can reach To.
type FormForwarded struct {
	Form    capabilities.ID   `json:"form"`
	By      capabilities.ID   `json:"by"`
	To      capabilities.ID   `json:"to"`
	Date    capabilities.Time `json:"date"`
	Via     capabilities.ID   `json:"via,omitzero"`
	Because ForwardCause      `json:"because,omitzero"`
}

// AnswerQueued is a holder's answer or decline of a form whose home is on another node. It is kept until the home has
// decided on it. Reason is "" for an answer. Secret values are sealed. Answer is the settlement's own ID. Revision is
// that of the question that was answered; 0 for the question as it was asked. With the Reason Withdrawn, it is the
// withdrawal of the vote with that Answer.
type AnswerQueued struct {
	Form     capabilities.ID      `json:"form"`
	Reason   Reason               `json:"reason,omitempty"`
	Note     string               `json:"note,omitempty"`
	Values   capabilities.Value   `json:"values,omitzero"`
	Grants   []capabilities.Grant `json:"grants,omitempty"`
	Date     capabilities.Time    `json:"date"`
	Answer   capabilities.ID      `json:"answer,omitzero"`
	Revision uint64               `json:"revision,omitempty"`
}

// ForwardQueued is a holder's forward of a form whose home is on another node. It is kept until the home has decided on
// it. Via is the grant, made for that, by which the home can reach To.
type ForwardQueued struct {
	Form    capabilities.ID   `json:"form"`
	To      capabilities.ID   `json:"to"`
	Via     capabilities.ID   `json:"via,omitzero"`
	Date    capabilities.Time `json:"date"`
	Because ForwardCause      `json:"because,omitzero"`
}

// FormAmended replaces the question of an open form. It is recorded at the form's home and in each copy. The question as
// it was asked is revision 1, so the first amendment is revision 2. Note is a comment by the asker. Digest is that of
// QuestionDigest.
type FormAmended struct {
	Form        capabilities.ID   `json:"form"`
	Revision    uint64            `json:"revision"`
	Title       string            `json:"title,omitempty"`
	Description string            `json:"description"`
	Fields      []Field           `json:"fields"`
	Note        string            `json:"note,omitempty"`
	Digest      Hash              `json:"digest"`
	Date        capabilities.Time `json:"date"`
}

// QuestionDigest returns the digest of the question: its title, description and fields as they are encoded.
func (e *FormAmended) QuestionDigest() Hash {
	b := appendTexts(pack.AppendArray(nil, 3), e.Title, e.Description)
	return sha256.Sum256(appendList(b, e.Fields, appendField))
}

// DraftSaved is the unfinished answer of a recipient of a form, as it was last typed. Values is a record of the texts of
// each field, with sealed ones for secret fields; null removes the draft. Revision is that of the form.
type DraftSaved struct {
	Form     capabilities.ID    `json:"form"`
	Revision uint64             `json:"revision,omitempty"`
	Values   capabilities.Value `json:"values,omitzero"`
	Date     capabilities.Time  `json:"date"`
}
