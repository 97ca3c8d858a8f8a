package events

import (
	"parley/capabilities"
)

// NameBound puts a value under a name of the agent's, in place of what stood there.
type NameBound struct {
	_msgpack struct{}           `msgpack:",as_array"`
	Name     string             `json:"name"`
	Value    capabilities.Value `json:"value"`
}

// NameUnbound removes a name.
type NameUnbound struct {
	_msgpack struct{} `msgpack:",as_array"`
	Name     string   `json:"name"`
}

// CapabilityGranted stands in the giver's log.
type CapabilityGranted struct {
	_msgpack struct{}           `msgpack:",as_array"`
	Grant    capabilities.Grant `json:"grant"`
}

// CapabilityRevoked stands in the giver's log and in the holder's. Each in its own, it cuts what was
// derived from the grant.
type CapabilityRevoked struct {
	_msgpack struct{}          `msgpack:",as_array"`
	Grant    capabilities.ID   `json:"grant"`
	By       capabilities.ID   `json:"by"`
	Date     capabilities.Time `json:"date"`
}
