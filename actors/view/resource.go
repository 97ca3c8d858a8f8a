package view

import (
	"parley"
	"parley/capabilities"
)

// The states of a use.
const (
	UseQueued  = "queued" // it is for the answer of a request, which is not there yet
	UseAsked   = "asked"  // who gave the reference decides on it
	UseBegun   = "begun"
	UseDone    = "done"
	UseFailed  = "failed"
	UseDenied  = "denied"
	UseUnknown = "unknown" // the node ended while it was under way: it may have had its effect or not, and is not repeated
)

// Use is a use of a resource. It is charged before it goes out, and a use that failed or is unknown stays charged. What stands in Result
// and in the text of the error was written by others.
type Use struct {
	Use    capabilities.ID    `json:"use,omitzero"`
	State  string             `json:"state,omitempty"`
	Words  string             `json:"words,omitempty"` // what it does
	Form   capabilities.ID    `json:"form,omitzero"`   // in which it is decided on, at the resource's home
	Result capabilities.Value `json:"result"`          // of one that is done; null if it is not known any more
	Error  *parley.Error      `json:"error,omitempty"` // of one that failed, was denied or is unknown
	Holds  *Holding           `json:"holds,omitempty"` // for a request without a verb alone

	Held     []Held `json:"held,omitempty"`     // for a request without a name alone: what the agent holds
	MoreHeld bool   `json:"moreHeld,omitempty"` // and there is more
}

// Held is a resource that an agent holds, as a list has it.
type Held struct {
	Name  string            `json:"name"` // by which it is used: the agent's own, or the path of the message or the answer that gave it, as @mail/3/notes
	Kind  capabilities.Kind `json:"kind"`
	Words string            `json:"words,omitempty"` // all that it permits, in one line
	Until capabilities.Time `json:"until,omitzero"`
	Left  *uint32           `json:"left,omitempty"` // uses that are left, of a resource of this node that was given for so many
	Gone  string            `json:"gone,omitempty"` // why it cannot be used any more
}

// HasEnded reports whether the use has ended.
func (u *Use) HasEnded() bool {
	switch u.State {
	case UseQueued, UseAsked, UseBegun, "":
		return false
	}
	return true
}

// Holding is what an agent holds of a resource. Of an answer that is not there yet it has the verbs of all kinds, and no Resource and Kind.
type Holding struct {
	Resource capabilities.ID    `json:"resource,omitzero"`
	Kind     capabilities.Kind  `json:"kind,omitempty"`
	Facet    capabilities.Facet `json:"facet,omitzero"`
	Words    string             `json:"words"` // all that it permits, in one line
	Used     uint32             `json:"used"`  // how often its grant was used; of the host, all of them
	Verbs    []Verb             `json:"verbs"`
	Uses     []UseBy            `json:"uses"` // the last 20 of these, the newest first
}

// UseBy is a use of a resource, by the agent that holds it or by one that has it from that.
type UseBy struct {
	By     capabilities.ID   `json:"by"`
	ByName string            `json:"byName,omitempty"` // what the agent calls it
	Words  string            `json:"words"`            // what it does
	State  string            `json:"state"`
	Begun  capabilities.Time `json:"begun"`
	Ended  capabilities.Time `json:"ended,omitzero"`
	Error  *parley.Error     `json:"error,omitempty"` // of one that failed, was denied or is unknown
}

// Verb is something that can be done with a resource.
type Verb struct {
	Name  string `json:"name"`
	Words string `json:"words"`
	Takes []Take `json:"takes"` // its input, what it needs first
	Needs int    `json:"needs"` // of these
}

// Take is a member of a verb's input.
type Take struct {
	Name string `json:"name"`
	Type string `json:"type"` // text, number, record, or content: a text, or bytes
}

// MadeResource is a resource that a host has made.
type MadeResource struct {
	Resource capabilities.ID   `json:"resource"`
	Name     string            `json:"name"`
	Kind     capabilities.Kind `json:"kind"`
	Words    string            `json:"words"`           // all that it permits, in one line
	Tools    []string          `json:"tools,omitempty"` // that it has
}
