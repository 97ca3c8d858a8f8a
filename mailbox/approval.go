package mailbox

import (
	"crypto/sha256"
	"encoding/hex"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/rule"
)

// The decisions of an approval. Always and Never also make a standing rule: the chosen one, or else one for that very
// call.
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

// maxInput bounds the input of a call in an approval, in bytes. All of it is shown.
const maxInput = 256 << 10

// approvalFields returns the fields of every approval. The form shows the tool as its title and the input as its
// description. A form never changes, so the decision is about the call that was shown.
func approvalFields() []events.Field {
	return []events.Field{
		{Name: decisionField, Label: "Decision", Type: events.Buttons, Required: true, Options: []events.Option{
			{Value: Deny, Label: "Deny"}, {Value: Once, Label: "Once"}, {Value: Always, Label: "Always"}, {Value: Never, Label: "Never"},
		}},
		{Name: reasonField, Label: "Reason", Type: events.Textarea},
	}
}

// RequestApproval asks whether a tool may be called with an input, a JSON document. If standing rules cover the call,
// their use follows at once and no form is sent.
type RequestApproval struct {
	To       string // default: the agent's host
	Tool     string
	Input    string
	Folder   string // of the call: absolute, or "" if it is not known
	Deadline capabilities.Time
	Origin   *events.Origin // of an approval asked in a dialect; nil for none
	Key      string
}

// Form returns the approval as a form.
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
	if err := s.Profile.checkActive(); err != nil {
		return nil, err
	}
	if err := checkInput(c.Tool, c.Input); err != nil {
		return nil, err
	}
	if err := rule.CheckFolder(c.Folder); err != nil {
		return nil, err
	}
	read := rule.Read(rule.Call{Tool: c.Tool, Input: c.Input, Folder: c.Folder})
	made := s.Rules.ruling(c.Tool, read, now)
	if len(made.by) > 0 {
		return made.events(c), nil
	}
	evs, err := c.Form().decide(s, now, ids)
	if err != nil || len(evs) == 0 {
		return evs, err
	}
	return c.offer(s, evs, read, made.stale)
}

// checkInput refuses a tool's name or input that is invalid.
func checkInput(tool, input string) error {
	if tool == "" {
		return parley.Refuse(parley.InvalidForm, "an approval needs the name of a tool")
	}
	if err := checkText("a tool's name", tool, maxTitle); err != nil {
		return err
	}
	if len(input) > maxInput {
		return parley.Refuse(parley.TooLarge, "an input of %d bytes is over the limit of %d", len(input), maxInput).
			WithHint("make the call in smaller parts, each with an approval of its own")
	}
	if err := checkText("an input", input, maxInput); err != nil {
		return err
	}
	return rule.CheckInput(input)
}

// ApprovalResult is the decision about a call that needed permission.
type ApprovalResult struct {
	Decision string // "" if there is none
	Reason   string
	Allowed  bool
}

// ApprovalResult returns the decision about a call that the agent asked about in a form. Only the agent's host allows a
// call, and only the call that was shown. The answer of any other agent allows nothing.
func (s *State) ApprovalResult(f *Form, call string) ApprovalResult {
	if f.Kind != events.Approval || f.From != s.ID || f.Answered == nil || f.Digest() != call {
		return ApprovalResult{}
	}
	var v ApprovalResult
	v.Decision, v.Reason = ReadDecision(f.Answered.Values)
	v.Allowed = f.Answered.By == s.Profile.Host && (v.Decision == Once || v.Decision == Always)
	return v
}

// Digest returns the digest of the call that an approval shows; "" if the form is no approval.
func (f *Form) Digest() string {
	if f.Kind != events.Approval {
		return ""
	}
	return DigestCall(f.Title, f.Description)
}

// DigestCall returns the digest of a call. A NUL separates tool and input, since an input is JSON and holds none.
func DigestCall(tool, input string) string {
	sum := sha256.Sum256([]byte(tool + "\x00" + input))
	return hex.EncodeToString(sum[:])
}

// ReadDecision reads the answer to an approval. It does not tell whether the call is allowed: State.ApprovalResult
// does.
func ReadDecision(answer capabilities.Value) (decision, reason string) {
	values, _ := answer.AsRecord()
	decision, _ = values[decisionField].AsString()
	reason, _ = values[reasonField].AsString()
	return decision, reason
}
