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

// The dialect of seed 001, second part: an agent asks whether it may call a tool. All approvals are spoken of in it,
// whoever asked them.
const approvalDialect = "approval"

// ApprovalFrame is a tool's call to be approved, from the asker and to who is asked.
type ApprovalFrame struct {
	Type    string          `json:"type"` // approval_request
	ID      string          `json:"id"`
	Payload ApprovalPayload `json:"payload"`
	Origin
}

// ApprovalPayload is the call.
type ApprovalPayload struct {
	Tool  string          `json:"tool"`
	Input json.RawMessage `json:"input"`
}

// ApprovedFrame is what was decided, from who was asked and to the asker. Form is as in AskedFrame.
type ApprovedFrame struct {
	Type    string          `json:"type"` // approval_response
	ID      string          `json:"id,omitempty"`
	Payload ApprovedPayload `json:"payload"`
	Form    string          `json:"form,omitempty"`
	Rule    capabilities.ID `json:"rule,omitzero"` // the standing rule that decided
}

// ApprovedPayload has the decision. Always is for all such calls to come, also where they are not approved.
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
	input := cmp.Or(string(f.Payload.Input), "null")
	return r.approve(events.Origin{Dialect: approvalDialect, ID: f.ID}, f.Payload.Tool, input)
}

// approvedFrame decides.
func approvedFrame(r *Relay, h *Head, text []byte) error {
	var f ApprovedFrame
	if err := api.Decode(text, &f); err != nil {
		return err
	}
	id := h.calledFor(f.Payload.RequestID, f.ID)
	form, err := r.askedApproval(id, f.Form)
	if err != nil {
		return err
	}
	values := map[string]capabilities.Value{"decision": capabilities.String(f.Payload.decision())}
	_, err = r.agent.Answer(r.ctx, capabilities.FormID(form.MessageID), values)
	return err
}

// askedApproval returns the approval that a client calls by its own ID, or by its asker's.
func (r *Relay) askedApproval(id, form string) (dialectForm, error) {
	if f, own := r.byID(r.ctx, approvalDialect, id); own && (form == "" || form == id) {
		return f, nil // no asker's name for another is taken for it
	}
	by := calling{
		origin: events.Origin{Dialect: approvalDialect, ID: id}, form: form,
		called: func(f dialectForm) bool { return r.nameOf(f.Message) == id },
		none:   parley.Refuse(parley.NoPendingPermission, "no approval was asked for as %.80q", id),
	}
	f, err := r.asked(r.ctx, by)
	if err == by.none { // approvals from before they had an origin
		by.origin.ID = ""
		f, err = r.asked(r.ctx, by)
	}
	return f, err
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
	f := ApprovalFrame{Type: "approval_request", ID: m.ID, Payload: ApprovalPayload{Tool: e.Title, Input: json.RawMessage(e.Description)}, Origin: originOf(e)}
	if !json.Valid(f.Payload.Input) { // a stranger's
		f.Payload.Input, _ = json.Marshal(e.Description) // a string, which can always be
	}
	return f
}

// approvalSettled gives what was decided to who was asked.
func approvalSettled(m events.Origin, e view.Message, o view.Outcome) any {
	decision, _ := mailbox.ReadDecision(o.Values)
	return approvalEnded(m, e.MessageID.String(), o, decision == mailbox.Once || decision == mailbox.Always)
}

// approvalOutcome gives what was decided to the asker. Who declines to decide has not approved.
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

// ruled gives what a standing rule has decided.
func ruled(m events.Origin, p view.Permission) any {
	return ApprovedFrame{
		Type: "approval_response", ID: m.ID, Payload: ApprovedPayload{RequestID: m.ID, Approved: p.Allowed, Always: true}, Rule: p.Rule,
	}
}

// nameOf returns the name by which its asker calls an approval. One of another node's agent, or that was asked
// otherwise, goes by its own ID, by which all can be called. Approvals from before they had an origin have their name in
// the key under which they were asked.
func (r *Relay) nameOf(e view.Message) string {
	if e.Origin != nil && e.Origin.ID != "" {
		if e.From.Node != r.agent.ID().Node {
			return e.MessageID.String()
		}
		return e.Origin.ID
	}
	key, err := r.agent.KeyOf(r.ctx, e.From, e.MessageID)
	if err != nil {
		r.monitor.Failed(r.ctx, "approval", err)
	}
	return cmp.Or(idOfKey(approvalDialect, key), e.MessageID.String())
}
