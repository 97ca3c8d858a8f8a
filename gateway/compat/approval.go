package compat

import (
	"cmp"
	"encoding/json"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
	"parley/mailbox"
)

// approvalDialect is the second part of the dialect of seed 001: an agent asks whether it may call a tool. All approvals
// are sent in it, whoever asked them.
const approvalDialect = "approval"

// ApprovalFrame asks for the approval of a tool's call. It goes from the asker to the answerer.
type ApprovalFrame struct {
	Type    string          `json:"type"` // approval_request
	ID      string          `json:"id"`
	Payload ApprovalPayload `json:"payload"`
	Origin
}

// ApprovalPayload describes the call.
type ApprovalPayload struct {
	Tool   string          `json:"tool"`
	Input  json.RawMessage `json:"input"`
	Folder string          `json:"folder,omitempty"`
	Reason string          `json:"reason,omitempty"` // why, in the agent's own words
	Part   string          `json:"part,omitempty"`   // of the agent, as it calls it

	Session string `json:"session,omitempty"` // of a coding agent, as the node calls it

	Use *parley.AskedUse `json:"use,omitempty"` // of a resource: who uses it, as the node knows it
}

// ApprovedFrame has the decision. It goes from the answerer to the asker. Form is as in AskedFrame.
type ApprovedFrame struct {
	Type    string          `json:"type"` // approval_response
	ID      string          `json:"id,omitempty"`
	Payload ApprovedPayload `json:"payload"`
	Data    ApprovedPayload `json:"data,omitzero"` // in place of the payload, from browsers of that system
	Form    string          `json:"form,omitempty"`
	Rule    capabilities.ID `json:"rule,omitzero"` // the standing rule that decided
}

// ApprovedPayload is the decision. Always extends it, approved or not, to all such calls to come.
type ApprovedPayload struct {
	RequestID string `json:"request_id"`
	Approved  bool   `json:"approved"`
	Always    bool   `json:"always,omitempty"`
}

func approvalFrame(r *Relay, _ *Head, text []byte) error {
	var f ApprovalFrame
	if err := api.Decode(text, &f); err != nil {
		return err
	}
	if err := checkID("the id", f.ID); err != nil {
		return err
	}
	if len(f.Payload.Input) == 0 {
		f.Payload.Input = json.RawMessage("null")
	}
	return r.approve(events.Origin{Dialect: approvalDialect, ID: f.ID}, f.Payload)
}

// approvedFrame settles an approval with a decision.
func approvedFrame(r *Relay, h *Head, text []byte) error {
	var f ApprovedFrame
	if err := api.Decode(text, &f); err != nil {
		return err
	}
	f.Payload = cmp.Or(f.Payload, f.Data)
	id := h.calledFor(f.Payload.RequestID, f.ID)
	form, err := r.askedApproval(id, f.Form)
	if err != nil {
		return err
	}
	values := map[string]capabilities.Value{"decision": capabilities.String(f.Payload.decision())}
	return r.answer(form.MessageID, values)
}

// askedApproval returns the approval with an ID: its own, or the one that its asker gave it.
func (r *Relay) askedApproval(id, form string) (dialectForm, error) {
	if f, own := r.byID(r.ctx, approvalDialect, id); own && (form == "" || form == id) {
		return f, nil // no asker's name for another is taken for it
	}
	return r.asked(r.ctx, calling{
		origin: events.Origin{Dialect: approvalDialect, ID: id}, form: form,
		called: func(f dialectForm) bool { return r.nameOf(f.Message) == id },
		none:   parley.Refuse(parley.NoPendingPermission, "no approval was asked for as %.80q", id),
	})
}

func (p ApprovedPayload) decision() string {
	switch {
	case p.Approved && p.Always:
		return mailbox.Always
	case p.Approved:
		return mailbox.Once
	case p.Always:
		return mailbox.Never
	}
	return mailbox.Deny
}

func approvalPosed(m events.Origin, e view.Message) any {
	f := ApprovalFrame{Type: "approval_request", ID: m.ID, Origin: originOf(e)}
	p := e.Permission
	f.Payload = ApprovalPayload{Tool: p.Tool, Input: json.RawMessage(p.Input), Folder: p.Folder, Reason: p.Reason, Part: p.Part, Session: p.Session, Use: p.Use}
	if !json.Valid(f.Payload.Input) { // an input of another client may be no JSON
		f.Payload.Input, _ = json.Marshal(p.Input) // a string, which can always be
	}
	return f
}

// approvalSettled returns the frame that sends the decision to the answerer.
func approvalSettled(m events.Origin, e view.Message, o view.Outcome) any {
	decision, _ := mailbox.ReadDecision(o.Values)
	return approvalEnded(m, e.MessageID.String(), o, decision == mailbox.Once || decision == mailbox.Always)
}

// approvalOutcome returns the frame that sends the decision to the asker. A declined approval is not approved.
func approvalOutcome(m events.Origin, form string, o view.Outcome) any {
	return approvalEnded(m, form, o, o.Allowed)
}

func approvalEnded(m events.Origin, form string, o view.Outcome, approved bool) any {
	payload := ApprovedPayload{RequestID: m.ID}
	switch o.Status {
	case view.StatusAnswered:
		decision, _ := mailbox.ReadDecision(o.Values)
		payload.Approved = approved
		payload.Always = decision == mailbox.Always || decision == mailbox.Never
	case view.StatusDeclined:
	default:
		return endedByID(m, o)
	}
	return ApprovedFrame{Type: "approval_response", ID: m.ID, Payload: payload, Form: form}
}

// ruled returns the frame with the decision of a standing rule.
func ruled(m events.Origin, p view.Permitted) any {
	return ApprovedFrame{
		Type: "approval_response", ID: m.ID, Payload: ApprovedPayload{RequestID: m.ID, Approved: p.Allowed, Always: true}, Rule: p.Rule,
	}
}

// nameOf returns the asker's name for an approval. It is the form's ID if an agent of another node asked, or an edge
// without dialects.
func (r *Relay) nameOf(e view.Message) string {
	if e.Origin == nil || e.Origin.ID == "" || e.From.Node != r.agent.ID().Node {
		return e.MessageID.String()
	}
	return e.Origin.ID
}
