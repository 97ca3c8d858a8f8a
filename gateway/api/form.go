package api

import (
	"parley"
	"parley/capabilities"
	"parley/events"
)

// FormRequest sends a form. A deadline that has passed by the time of a reminder or an escalation wins over both.
type FormRequest struct {
	Acting
	parley.Form
}

// CapabilityRequest asks for a capability in words.
type CapabilityRequest struct {
	Acting
	parley.Request
}

// UntilAsked has a wait for a form end also when one who may answer it asks back.
const UntilAsked events.MessageState = "asked"

// AwaitRequest waits for a form to end, or with Until for a message or form to come to a state: delivered, offered, shown or
// handled. The status is the state then that it is in. What its recipient refused has the status declined, with the reason as
// its note. With Until asked, the wait for a form ends also when one who may answer it has asked back: with the status asked,
// who it was, the words as the note, and the number of the message, to which a reply goes. When WaitMs has passed and there is nothing to tell, the answer has the status "open": call again.
type AwaitRequest struct {
	Acting
	FormRef
	Until  events.MessageState `json:"until,omitempty"`
	All    bool                `json:"all,omitempty"`    // with a state: with all members of a group that the message reached, and not only until one has replied
	After  uint64              `json:"after,omitempty"`  // with Until asked: the number of the last question that is known
	WaitMs *int64              `json:"waitMs,omitempty"` // default 25,000, at most 50,000
}

// RespondFormRequest answers a form.
type RespondFormRequest struct {
	Acting
	FormRef
	parley.Answer

	SecondVote bool `json:"secondVote,omitempty"` // vote as the agent although the caller has voted as another that it stands for
}

// AmendFormRequest corrects the question of an open form that the agent asked. Those who were asked see the change, and an
// answer to the earlier question is refused with AMENDED. An approval cannot be amended.
type AmendFormRequest struct {
	Acting
	FormRef
	parley.Amendment
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

// ResolveRequest answers a request with the value under Name, or with Narrow with less of it.
type ResolveRequest struct {
	Acting
	FormRef
	Name   string             `json:"name"`
	Narrow capabilities.Facet `json:"narrow,omitzero"`
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
