package events

import (
	"parley/capabilities"
)

// AgentKind is the kind of an agent.
type AgentKind string

// The kinds of agents. A host is its own @host.
const (
	Host  AgentKind = "host"
	Guest AgentKind = "guest"

	ResourceKind AgentKind = "resource" // no agent: ResourceMade says what it is
)

// AgentCreated is the first event of every mailbox. Of is set for a session of a coding agent: the agent of the folder that
// it works in, which is its address.
type AgentCreated struct {
	Agent  capabilities.ID   `json:"agent"`
	Kind   AgentKind         `json:"kind"`
	Host   capabilities.ID   `json:"host"`
	By     capabilities.ID   `json:"by,omitzero"` // zero for the node's own host
	Name   string            `json:"name,omitempty"`
	Title  string            `json:"title,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Of     capabilities.ID   `json:"of,omitzero"`
}

// AgentUpdated changes the title, labels or status of an agent. A nil Title or Labels, or an empty Status, changes
// nothing.
type AgentUpdated struct {
	Title  *string           `json:"title,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Status string            `json:"status,omitempty"` // initializing, idle, running, error, closed
	Error  string            `json:"error,omitempty"`
}

// AgentArchived archives an agent. Its log stays.
type AgentArchived struct {
	By capabilities.ID `json:"by"`
}

// ProgramSet sets the program that runs for messages to an agent. It replaces the one before. An empty Runtime means
// none.
type ProgramSet struct {
	Runtime     string   `json:"runtime"` // exec or acp
	Command     []string `json:"command,omitempty"`
	Folder      string   `json:"folder,omitempty"`      // in which it runs
	User        string   `json:"user,omitempty"`        // the operating system's user; "" is the node's default
	Wrap        []string `json:"wrap,omitempty"`        // words before the command; if empty, the node's default
	Environment []string `json:"environment,omitempty"` // "NAME=value" each
	Inherit     []string `json:"inherit,omitempty"`     // names of the node's own variables that it gets at each start
	Keep        bool     `json:"keep,omitempty"`        // one process serves all messages, one after the other
	Seconds     uint64   `json:"seconds,omitempty"`     // the limit of a run; 0 is none
	Access      []string `json:"access,omitempty"`      // through the node: read, write, terminal
}

// PolicySet sets the policy for an agent's calls that need permission: always, on-miss, never or deny.
type PolicySet struct {
	Policy string `json:"policy"`
}

// RunsHeld says whether the agent's program is started for the messages that wait. Held, they stay queued.
type RunsHeld struct {
	By   capabilities.ID `json:"by"`
	Held bool            `json:"held"`
}

// RunStarted records the start of a run of the agent's program.
type RunStarted struct {
	Run    capabilities.ID `json:"run"`
	Prompt capabilities.ID `json:"prompt,omitzero"` // the message that it runs for
}

// RunEnded records the end of a run. An empty Error means success. With Again, the run had no effect and its message
// gets another one, before all later messages. By is the agent that stopped the run; zero if none did.
type RunEnded struct {
	Run    capabilities.ID `json:"run"`
	Error  string          `json:"error,omitempty"`
	Output string          `json:"output,omitempty"` // its tail
	Again  bool            `json:"again,omitempty"`
	By     capabilities.ID `json:"by,omitzero"`
}
