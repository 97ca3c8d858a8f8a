package main

// hookAnswer is what a hook prints: one JSON object. Both agents read the same members, and each takes fewer of them
// than the format has.
type hookAnswer struct {
	SystemMessage string        `json:"systemMessage,omitempty"` // shown to whoever works with the agent
	Specific      *hookSpecific `json:"hookSpecificOutput,omitempty"`
}

type hookSpecific struct {
	Event      string        `json:"hookEventName"`
	Decision   *hookDecision `json:"decision,omitempty"`                 // on PermissionRequest
	Permission string        `json:"permissionDecision,omitempty"`       // on PreToolUse
	Reason     string        `json:"permissionDecisionReason,omitempty"` // of that
}

type hookDecision struct {
	Behavior string `json:"behavior"`
	Message  string `json:"message,omitempty"`
}

// What a hook may say of a call.
const (
	hookAllow = "allow"
	hookDeny  = "deny"
	hookAsk   = "ask"
)

// onPermissionRequest is the answer in which both agree: a decision that allows, or denies with a message for the
// model. Without a decision the agent's own prompt goes on.
func onPermissionRequest(r ruling) *hookAnswer {
	if !r.decided {
		return remark(r)
	}
	d := hookDecision{Behavior: hookAllow}
	if !r.allowed {
		d = hookDecision{Behavior: hookDeny, Message: r.reason}
	}
	return &hookAnswer{Specific: &hookSpecific{Event: permissionRequest, Decision: &d}}
}

// remark says why nothing was decided, and decides nothing.
func remark(r ruling) *hookAnswer { return &hookAnswer{SystemMessage: "Parley: " + visible(r.reason)} }
