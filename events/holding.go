package events

import (
	"parley/capabilities"
)

// NameBound puts a value under a name of the agent's, in place of what stood there.
type NameBound struct {
	Name  string             `json:"name"`
	Value capabilities.Value `json:"value"`
}

// NameUnbound removes a name.
type NameUnbound struct {
	Name string `json:"name"`
}

// CapabilityGranted stands in the giver's log.
type CapabilityGranted struct {
	Grant capabilities.Grant `json:"grant"`
}

// CapabilityMinted stands in the log of a grant's target: it may be reached by that grant from another node.
// The grant's Parent is the one by which its giver could be seen to hold the target.
type CapabilityMinted struct {
	Grant capabilities.Grant `json:"grant"`
}

// CapabilityRevoked stands in the giver's log and in the holder's. Each in its own, it cuts what was
// derived from the grant.
type CapabilityRevoked struct {
	Grant capabilities.ID   `json:"grant"`
	By    capabilities.ID   `json:"by"`
	Date  capabilities.Time `json:"date"`
}
