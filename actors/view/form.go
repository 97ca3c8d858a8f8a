package view

import (
	"encoding/json"

	"parley/capabilities"
	"parley/events"
)

// Asked is an accepted form or request: it is on disk. Outcome is set if the form was settled already. With no Form, it is
// the value of the name that the answer was to be bound to.
type Asked struct {
	Form    capabilities.ID `json:"form,omitzero"`
	Promise capabilities.ID `json:"promise,omitzero"`
	Number  uint64          `json:"number"`
	Outcome *Outcome        `json:"outcome,omitempty"`

	// Unreachable reports that the recipient's node cannot be reached now. The form goes there when it can.
	Unreachable bool `json:"unreachable,omitempty"`

	Promised *Promised `json:"promised,omitempty"` // the form waits for the answer of that one
}

// Permitted is the result of asking for a permission: either a standing rule has decided it at once, or there is a form,
// whose outcome has the decision.
type Permitted struct {
	Asked
	Decided bool            `json:"decided"`          // by a standing rule, a mandate or the agent's policy
	Allowed bool            `json:"allowed"`          // if it was decided: by rule, by mandate, by policy or by the agent's host
	Rule    capabilities.ID `json:"rule,omitzero"`    // the rule, or the first of those, if one has decided it
	Mandate capabilities.ID `json:"mandate,omitzero"` // the mandate, or the first of those, that the call was charged to

	Leased *Lease `json:"leased,omitempty"` // another agent's, on a file that the call writes: it was decided by that

	// Unattended reports, for an approval that was to be attended, that nobody follows the mail of whoever would decide.
	// A new approval is not asked then. It is never set for a recipient on another node, of which that is not known.
	Unattended bool `json:"unattended,omitempty"`
}

// FormStatus is the state of a form.
type FormStatus string

// The statuses of a form. A wait for a state of a message has that state as its status. All but StatusOpen, StatusAnswering and StatusVoted are ends.
const (
	StatusOpen       FormStatus = "open"
	StatusAnswered   FormStatus = "answered"
	StatusCancelled  FormStatus = "cancelled"
	StatusDeclined   FormStatus = "declined"
	StatusExpired    FormStatus = "expired"
	StatusSuperseded FormStatus = "superseded"

	// StatusAnswering is the status of an answer that is stored. It is on its way to a home that cannot be reached. The
	// form is open until it arrives.
	StatusAnswering FormStatus = "answering"

	// StatusAsked is the status of a wait for a form on which one who may answer it has asked back. The form is open.
	StatusAsked FormStatus = "asked"

	// StatusVoted is the status of an answer that counts as a vote. The form is open until it has as many as it needs.
	StatusVoted FormStatus = "voted"
)

// StatusOf returns the status of a wait for a state of a message, when the message has come to a state.
func StatusOf(s events.MessageState) FormStatus { return FormStatus(s) }

// Draft is an agent's unfinished answer to a form: texts as RespondFormRequest takes them. A field for several choices
// has one for each. Of an unfinished message or reply, it has the Text. SavedAt is 0 if there is no draft.
type Draft struct {
	Texts   []events.FieldText `json:"texts"`
	Text    string             `json:"text,omitempty"`
	SavedAt capabilities.Time  `json:"savedAt,omitzero"`
}

// Outcome is the end of a form. Values is a record, in the clear for the asker, and masked for others where a field is
// secret. Order has the names in it as the form orders them.
type Outcome struct {
	Status  FormStatus         `json:"status"`
	Form    capabilities.ID    `json:"form,omitzero"`
	Promise capabilities.ID    `json:"promise,omitzero"`
	By      capabilities.ID    `json:"by,omitzero"`
	ByName  string             `json:"byName,omitempty"` // the viewer's name for By; of a third node, with who says so
	At      capabilities.Time  `json:"at,omitzero"`
	Note    string             `json:"note,omitempty"`    // in words, by whoever declined or cancelled, or asked back
	Message *uint64            `json:"message,omitempty"` // of the status "asked": the number of the message with the question
	Values  capabilities.Value `json:"values,omitzero"`
	Order   []string           `json:"order,omitempty"`
	Votes   *Votes             `json:"votes,omitempty"` // of the status "voted"

	// Of an approval. Allowed reports that the asker's host has allowed the call, of which only the asker has the Digest.
	// Others who were asked allow nothing. To another than the asker it is what the asker's node says.
	Digest  string `json:"digest,omitempty"`
	Allowed bool   `json:"allowed,omitempty"`

	Signed bool `json:"signed,omitempty"` // who answered signed that with a passkey; the asker and who answered are told

	// Of an approval that allows the call with another input than the one that Digest is of: that input, a JSON document,
	// and the digest of the call with it. Only this call is allowed.
	EditedInput  string `json:"editedInput,omitempty"`
	EditedDigest string `json:"editedDigest,omitempty"`

	// Settlement is the ID of the settlement, if that came from another node. It is not part of the JSON.
	Settlement capabilities.ID `json:"-"`
}

// Text returns the text that was answered for a field; "" if there is none.
func (o Outcome) Text(field string) string {
	values, _ := o.Values.AsRecord()
	text, _ := values[field].AsString()
	return text
}

// UnmarshalJSON reads an outcome as it is shown, with secrets that are masked.
func (o *Outcome) UnmarshalJSON(b []byte) error {
	type plain Outcome
	shown := struct {
		*plain
		Values json.RawMessage `json:"values"`
	}{plain: (*plain)(o)}
	*o = Outcome{}
	if err := json.Unmarshal(b, &shown); err != nil || len(shown.Values) == 0 {
		return err
	}
	var err error
	o.Values, err = capabilities.ParseShown(shown.Values)
	return err
}
