package api

import (
	"bytes"
	"encoding/json"

	"parley/capabilities"
	"parley/events"
)

// FormRequest sends a form. Remind has the times after which who may answer is reminded, as in "1h". Escalate lets others
// answer too. A deadline that has passed by then wins over both.
type FormRequest struct {
	Acting
	Recipient   string            `json:"recipient"`
	Description string            `json:"description"`
	Title       string            `json:"title,omitempty"`
	Fields      Fields            `json:"fields"`
	Name        string            `json:"name,omitempty"`
	Key         string            `json:"key,omitempty"`
	Deadline    capabilities.Time `json:"deadline,omitzero"`
	NoForward   bool              `json:"noForward,omitempty"`
	Remind      []events.Delay    `json:"remind,omitempty"`
	Escalate    []Escalation      `json:"escalate,omitempty"`
	Need        uint32            `json:"need,omitempty"`   // so many hosts have to answer; another node counts as one (default 1)
	Veto        *bool             `json:"veto,omitempty"`   // of a form that needs several: one decline ends it (default true)
	NoSelf      bool              `json:"noSelf,omitempty"` // answers by agents of the asker's own host are refused
}

// Escalation lets another agent answer a form that is still open after a time.
type Escalation struct {
	After events.Delay `json:"after"` // as in "4h"
	To    string       `json:"to"`    // a path of the asker's names, or an agent's ID or locator
}

// Fields are the definitions of a form's fields.
type Fields struct {
	list  []events.Field
	other json.RawMessage // the text, if it is not in the plain spelling
}

// FieldsOf returns the definitions of some fields.
func FieldsOf(list ...events.Field) Fields { return Fields{list: list} }

// List returns the definitions. It calls parse for a text that is not in the plain spelling, or that no form has.
func (f Fields) List(parse func(text []byte) ([]events.Field, error)) ([]events.Field, error) {
	if f.other != nil {
		return parse(f.other)
	}
	return f.list, nil
}

// IsZero reports whether nothing was given, not even an empty list.
func (f Fields) IsZero() bool { return f.list == nil && f.other == nil }

// MarshalJSON writes the list of definitions.
func (f Fields) MarshalJSON() ([]byte, error) {
	if f.other != nil {
		return f.other, nil
	}
	return json.Marshal(f.list)
}

// UnmarshalJSON reads a list of definitions. It keeps a text with unknown members for List.
func (f *Fields) UnmarshalJSON(b []byte) error {
	*f = Fields{}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if dec.Decode(&f.list) != nil || f.list == nil {
		f.list, f.other = nil, bytes.Clone(b)
	}
	return nil
}

// CapabilityRequest asks for a capability in words.
type CapabilityRequest struct {
	Acting
	Recipient string            `json:"recipient"`
	Text      string            `json:"text"`
	Name      string            `json:"name,omitempty"`
	Key       string            `json:"key,omitempty"`
	Deadline  capabilities.Time `json:"deadline,omitzero"`
	NoForward bool              `json:"noForward,omitempty"`
}

// AwaitRequest waits for a form to end. When WaitMs has passed and it is still open, the answer has the
// status "open" and nothing else: call again.
type AwaitRequest struct {
	Acting
	FormRef
	WaitMs *int64 `json:"waitMs,omitempty"` // default 25,000, at most 50,000
}

// RespondFormRequest answers a form. Values are typed; Texts are read by their fields' types. Digest is of the call that was
// shown, as list_messages has it: an approval of another call is refused. Revision is that of the question that was shown:
// an answer to an earlier one is refused with AMENDED. Without it, the answer is to the present question.
type RespondFormRequest struct {
	Acting
	FormRef
	Digest   string                        `json:"digest,omitempty"`
	Revision uint64                        `json:"revision,omitempty"`
	Values   map[string]capabilities.Value `json:"values,omitempty"`
	Texts    []events.FieldText            `json:"texts,omitempty"`

	SecondVote bool `json:"secondVote,omitempty"` // vote as the agent although the caller has voted as another that it stands for
}

// AmendFormRequest corrects the question of an open form that the agent asked. What is not given stays as it is. Those
// who were asked see the change, and an answer to the earlier question is refused with AMENDED. An approval cannot be
// amended.
type AmendFormRequest struct {
	Acting
	FormRef
	Title       *string `json:"title,omitempty"`
	Description *string `json:"description,omitempty"`
	Fields      Fields  `json:"fields,omitzero"`
	Note        string  `json:"note,omitempty"` // why, for those who were asked
}

// SaveDraftRequest keeps an unfinished answer to a form until the form ends. Texts are as in RespondFormRequest, but may be
// wrong; none remove the draft. The node may hold a draft for half a second, and then writes only the last one. It responds
// when that is on disk. With Text, it keeps an unfinished reply to a message, or with To a message, until it is sent; an
// empty Text removes it.
type SaveDraftRequest struct {
	Acting
	FormRef
	Texts []events.FieldText `json:"texts,omitempty"`
	To    string             `json:"to,omitempty"` // a path of the agent's names, or an agent's ID or locator
	Text  *string            `json:"text,omitempty"`
}

// FetchDraftRequest names the form. With To it names the agent that a message is for, and with Reply the message
// replied to.
type FetchDraftRequest struct {
	Acting
	FormRef
	To    string `json:"to,omitempty"`
	Reply bool   `json:"reply,omitempty"` // the draft of a reply, not of an answer
}

// DeclineRequest declines a form or a request. Revision is as in RespondFormRequest.
type DeclineRequest struct {
	Acting
	FormRef
	Revision uint64 `json:"revision,omitempty"`
	Reason   string `json:"reason,omitempty"`

	SecondVote bool `json:"secondVote,omitempty"` // as in respond_form
}

// EndRequest takes a form back.
type EndRequest struct {
	Acting
	FormRef
	Reason string `json:"reason,omitempty"`
}

// SetAwayRequest has the forms that come while the agent is away forwarded to another agent, if one is given. The agent
// may still answer them. No Until ends the absence.
type SetAwayRequest struct {
	Acting
	From  capabilities.Time `json:"from,omitzero"` // default now
	Until capabilities.Time `json:"until,omitzero"`
	To    string            `json:"to,omitempty"`
}

// SetMemberRequest adds a member to the agent, which makes it a group, or removes one. The forms of a group are
// forwarded to its members as they come. A new member gets the open ones too.
type SetMemberRequest struct {
	Acting
	Agent  string `json:"agent"`
	Remove bool   `json:"remove,omitempty"`
}

// StandInsRequest lists to whom the agent's forms are forwarded as they come.
type StandInsRequest struct{ Acting }

// ForwardFormRequest hands a form on.
type ForwardFormRequest struct {
	Acting
	FormRef
	Recipient string `json:"recipient"`
}

// ResolveRequest answers a request with the value under Name.
type ResolveRequest struct {
	Acting
	FormRef
	Name string `json:"name"`
}

// GrantAnswerRequest makes a right to answer an open form in the agent's place. Without Outcomes it has those of From; without
// that too, deny and once for an approval, answer and decline for a form. It ends with the form at the latest. list_grants
// lists it, and revoke ends it. With Secret, the bearer of a right hands on a narrower one, and names no form.
type GrantAnswerRequest struct {
	Acting
	FormRef
	Outcomes []string          `json:"outcomes,omitempty"`
	Until    capabilities.Time `json:"until,omitzero"`
	Uses     uint32            `json:"uses,omitempty"`   // default any number
	From     capabilities.ID   `json:"from,omitzero"`    // the right that it derives from: it has no more than that
	Secret   string            `json:"secret,omitempty"` // of the right that it derives from
	Name     string            `json:"name,omitempty"`   // of the receiver, for people
}

// AnswerWithRequest answers a form by a right, in the place of the agent that made it. Reason is for a decision or a decline,
// Values and Texts for an answer.
type AnswerWithRequest struct {
	Acting
	Secret  string                        `json:"secret"`
	Outcome string                        `json:"outcome"`
	Reason  string                        `json:"reason,omitempty"`
	Values  map[string]capabilities.Value `json:"values,omitempty"`
	Texts   []events.FieldText            `json:"texts,omitempty"`
}
