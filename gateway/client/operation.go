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
	if keyOf[operation] == "" && operation != string(api.Invoke) { // which gets no key by itself: a use with one is kept for who comes back
		return false
	}
	var keyed struct {
		Key       string `json:"key"`
		MessageID string `json:"messageId"`
	}
	return mux.Read(body, &keyed) == nil && keyed.Key+keyed.MessageID != ""
}

// keyOf are the members with the idempotency keys of requests.
var keyOf = map[string]string{
	string(api.Form): "key", string(api.RequestCapability): "key", string(api.Approve): "key", string(api.Send): "key", string(api.Reply): "key",
	string(api.Post): "key", string(api.DecideMany): "key", string(api.SendAgentMessage): "messageId",
}
