package client

import (
	"slices"

	"parley/gateway/api"
	"parley/gateway/mux"
)

// looks reports whether an operation changes nothing, so that it can be called again.
func looks(operation string) bool {
	return slices.ContainsFunc(api.Operations(), func(o api.Operation) bool { return o.Name == operation && o.Scope == api.ScopeRead })
}

// repeats reports whether a call that is made twice has the effect of one.
func repeats(operation string, body []byte) bool {
	if looks(operation) {
		return true
	}
	var keyed struct {
		Key       string `json:"key"`
		MessageID string `json:"messageId"`
	}
	switch operation {
	case "form", "request", "approve", "send", "reply", "post", "decide_many", "invoke":
		return mux.Read(body, &keyed) == nil && keyed.Key != ""
	case "send_agent_message":
		return mux.Read(body, &keyed) == nil && keyed.MessageID != ""
	}
	return false
}
