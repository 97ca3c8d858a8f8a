package events

import (
	"parley/capabilities"
)

// AgentKind says what an agent was made as.
type AgentKind string

// The kinds of agents. A host's @host is itself.
const (
	Host  AgentKind = "host"
	Guest AgentKind = "guest"
)

// AgentCreated is the first event of every mailbox.
type AgentCreated struct {
	Agent  capabilities.ID   `json:"agent"`
	Kind   AgentKind         `json:"kind"`
	Host   capabilities.ID   `json:"host"`
	By     capabilities.ID   `json:"by,omitzero"` // zero for the node's own host
	Name   string            `json:"name,omitempty"`
	Title  string            `json:"title,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
}

// AgentUpdated replaces what it mentions: a nil Title or Labels, or an empty Status, is left as it was.
type AgentUpdated struct {
	Title  *string           `json:"title,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Status string            `json:"status,omitempty"` // initializing, idle, running, error, closed
	Error  string            `json:"error,omitempty"`
}

// AgentArchived puts an agent out of use. Its log stays.
type AgentArchived struct {
	By capabilities.ID `json:"by"`
}

// RunStarted says that the agent's program runs.
type RunStarted struct {
	Run    capabilities.ID `json:"run"`
	Prompt capabilities.ID `json:"prompt,omitzero"` // the message that it runs for
}

// RunEnded says that it no longer does. An empty Error is a good end.
type RunEnded struct {
	Run    capabilities.ID `json:"run"`
	Error  string          `json:"error,omitempty"`
	Output string          `json:"output,omitempty"` // the tail of it
}

// RuleAdded is a standing answer to an agent's calls of a tool.
type RuleAdded struct {
	Rule  capabilities.ID   `json:"rule"`
	Agent capabilities.ID   `json:"agent"`
	Tool  string            `json:"tool"`
	Shape string            `json:"shape,omitempty"` // of the input
	Allow bool              `json:"allow"`
	Until capabilities.Time `json:"until,omitzero"`
	Form  capabilities.ID   `json:"form,omitzero"` // the approval that it came from
}

// RuleUsed says that a standing rule has answered whether a tool may be called.
type RuleUsed struct {
	Rule  capabilities.ID `json:"rule"`
	Tool  string          `json:"tool"`
	Input string          `json:"input"` // a JSON document
}

// RuleRemoved takes a standing answer back.
type RuleRemoved struct {
	Rule capabilities.ID `json:"rule"`
}
