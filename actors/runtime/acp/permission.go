package acp

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/coder/acp-go-sdk"

	"parley"
	"parley/actors/runtime"
)

// permissionRequest is an agent's request for permission to make a call.
type permissionRequest struct {
	SessionID string                 `json:"sessionId"`
	ToolCall  toolCall               `json:"toolCall"`
	Options   []acp.PermissionOption `json:"options"`
}

// permit asks the host whether a call may be made.
func permit(ctx context.Context, t *turn, params json.RawMessage) (any, error) {
	var r permissionRequest
	if err := t.parse(params, &r, &r.SessionID); err != nil {
		return nil, err
	}
	t.settle(ctx)
	call := t.notices.calls.complete(r.ToolCall)
	options := usable(r.Options)
	d, err := runtime.Decision{}, error(parley.Refuse(parley.TooLarge, "the call is too long to be shown"))
	if call.isShowable() {
		shown := callOf(call, t.peer.agent)
		shown.DenyOnly = optionFor(runtime.Decision{Allowed: true}, options) == nil
		d, err = t.host.Approve(ctx, shown)
	}
	switch {
	case t.isEnding():
		d = runtime.Decision{Ended: true}
	case err != nil && ctx.Err() != nil:
		return nil, err
	case err != nil: // it cannot be asked, so it is not allowed
		d = runtime.Decision{}
		t.warn("what the agent asks cannot be asked: " + parley.AsError(err).Error())
	}
	if !d.Allowed && !d.Ended {
		t.explainLater(call, d.Reason)
	}
	outcome := acp.NewRequestPermissionOutcomeCancelled()
	if option := optionFor(d, options); option != nil {
		outcome = acp.NewRequestPermissionOutcomeSelected(option.OptionId)
	}
	return acp.RequestPermissionResponse{Meta: reasonOf(d), Outcome: outcome}, nil
}

// usable returns the options that say one thing each. An ID that stands twice does not tell what the agent makes of it.
func usable(options []acp.PermissionOption) []acp.PermissionOption {
	times := map[acp.PermissionOptionId]int{}
	for _, o := range options {
		times[o.OptionId]++
	}
	return slices.DeleteFunc(slices.Clone(options), func(o acp.PermissionOption) bool { return o.OptionId == "" || times[o.OptionId] > 1 })
}

// reasonOf returns the metadata with the reason of a decision. The protocol has no field for it, and the agents that are
// known do not read this one: they are told by a prompt, see explainLater.
func reasonOf(d runtime.Decision) map[string]any {
	if d.Reason == "" {
		return nil
	}
	return map[string]any{"parley/reason": d.Reason}
}

// optionFor returns the option for a decision about this one call, nil if there is none. A standing rule of the node
// decides later calls. The agent is not told of it: what it remembers may be wider than what the person saw.
func optionFor(d runtime.Decision, options []acp.PermissionOption) *acp.PermissionOption {
	wanted := []acp.PermissionOptionKind{acp.PermissionOptionKindRejectOnce, acp.PermissionOptionKindRejectAlways}
	switch {
	case d.Ended:
		return nil
	case d.Allowed:
		wanted = []acp.PermissionOptionKind{acp.PermissionOptionKindAllowOnce}
	}
	for _, kind := range wanted {
		for i := range options {
			if options[i].Kind == kind {
				return &options[i]
			}
		}
	}
	return nil
}
