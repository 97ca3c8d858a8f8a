package mailbox

import (
	"crypto/sha256"
	"encoding/hex"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/rule"
)

// The decisions of an approval. Always and Never make a standing rule, too: the one that was chosen, or else one for
// that very call.
const (
	Deny   = "deny"
	Once   = "once"
	Always = "always"
	Never  = "never"
)

const (
	decisionField = "decision"
	reasonField   = "reason"
	ruleField     = "rule"
)

// maxInput bounds the input of a call that is to be approved, in bytes: all of it is shown.
const maxInput = maxDescription

// approvalFields are those of every approval. The form itself shows the tool, as its title, and the input, as its
// description: what is decided on is what was shown, as a form never changes.
func approvalFields() []events.Field {
	return []events.Field{
		{Name: decisionField, Label: "Decision", Type: events.Buttons, Required: true, Options: []events.Option{
			{Value: Deny, Label: "Deny"}, {Value: Once, Label: "Once"}, {Value: Always, Label: "Always"}, {Value: Never, Label: "Never"},
		}},
		{Name: reasonField, Label: "Reason", Type: events.Textarea},
	}
}

// RequestApproval asks whether a tool may be called with an input, a JSON document. Standing rules that cover the call answer
// at once; their use is what follows then.
type RequestApproval struct {
	To       string // default: the agent's host
	Tool     string
	Input    string
	Folder   string // where the call is made: absolute, or "" where nobody says
	Deadline capabilities.Time
	Origin   *events.Origin // of one asked in a dialect; nil for none
	Key      string
}

// Form is the form that asks it.
func (c RequestApproval) Form() RequestForm {
	to := c.To
	if to == "" {
		to = capabilities.NameHost
	}
	return RequestForm{
		To: to, Kind: events.Approval, Title: c.Tool, Description: c.Input, Fields: approvalFields(),
		Deadline: c.Deadline, Origin: c.Origin, Key: c.Key, NoForward: true, folder: c.Folder,
	}
}

func (c RequestApproval) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	if err := s.checkActive(); err != nil {
		return nil, err
	}
	if err := checkInput(c.Tool, c.Input); err != nil {
		return nil, err
	}
	if err := rule.CheckFolder(c.Folder); err != nil {
		return nil, err
	}
	read := rule.Read(rule.Call{Tool: c.Tool, Input: c.Input, Folder: c.Folder})
	d := s.standsOn(c.Tool, read, now)
	if len(d.by) > 0 {
		return d.used(c), nil
	}
	evs, err := c.Form().decide(s, now, ids)
	if err != nil || len(evs) == 0 {
		return evs, err
	}
	return s.offer(evs, c, read, d.stale)
}

// checkInput refuses what cannot be the input of a call.
func checkInput(tool, input string) error {
	if tool == "" {
		return parley.Refuse(parley.InvalidForm, "an approval needs the name of a tool")
	}
	if err := checkText("a tool's name", tool, maxTitle); err != nil {
		return err
	}
	if err := checkText("an input", input, maxInput); err != nil {
		return err
	}
	return rule.CheckInput(input)
}

// Allows says what a decision without a question was: of a rule, or with none of the agent's policy.
func (s *State) Allows(rule capabilities.ID) bool {
	if rule.IsZero() {
		return s.Policy() == AskNever
	}
	r, ok := s.rules[rule]
	return ok && r.Allow
}

// Lasts reports whether a decision without a question was for good: of a rule that has no end. A policy may be another
// for the next call.
func (s *State) Lasts(rule capabilities.ID) bool {
	r, ok := s.rules[rule]
	return ok && r.Until == 0
}

// ApprovalResult is what was decided about a call that permission was asked for.
type ApprovalResult struct {
	Decision string // "" if there is none
	Reason   string
	Allowed  bool
}

// ApprovalResult returns what was decided about a call that the agent asked about in a form, and all that reads a decision
// reads it here. Only the agent's host allows, and only that very call: another whom the agent asked has an opinion.
func (s *State) ApprovalResult(f *Form, call string) ApprovalResult {
	if f.Kind != events.Approval || f.From != s.ID || f.Answered == nil || f.Digest() != call {
		return ApprovalResult{}
	}
	var v ApprovalResult
	v.Decision, v.Reason = ReadDecision(f.Answered.Values)
	v.Allowed = f.Answered.By == s.Profile.Host && (v.Decision == Once || v.Decision == Always)
	return v
}

// Digest returns the digest of the call that an approval shows; "" if the form is none.
func (f *Form) Digest() string {
	if f.Kind != events.Approval {
		return ""
	}
	return DigestCall(f.Title, f.Description)
}

// DigestCall returns what a call goes by: no other has the same. An input is JSON, and so has no NUL in it.
func DigestCall(tool, input string) string {
	sum := sha256.Sum256([]byte(tool + "\x00" + input))
	return hex.EncodeToString(sum[:])
}

// ReadDecision reads the answer to an approval. It does not say whether the call is allowed: Verdict does.
func ReadDecision(answer capabilities.Value) (decision, reason string) {
	values, _ := answer.AsRecord()
	decision, _ = values[decisionField].AsString()
	reason, _ = values[reasonField].AsString()
	return decision, reason
}
