package events

import (
	"bytes"

	"github.com/vmihailenco/msgpack/v5/msgpcode"

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

// ProgramSet says what program an agent runs for the messages that it gets. It replaces the one before; one of no
// Runtime is none.
type ProgramSet struct {
	Runtime     string   `json:"runtime"` // exec or acp
	Command     []string `json:"command,omitempty"`
	Folder      string   `json:"folder,omitempty"`      // where it runs
	Environment []string `json:"environment,omitempty"` // "NAME=value" each
	Keep        bool     `json:"keep,omitempty"`        // one process serves one message after the other
	Seconds     uint64   `json:"seconds,omitempty"`     // how long a run may take; 0 is as long as it takes
	Access      []string `json:"access,omitempty"`      // what it may do through the node: read, write, terminal
	Inherit     []string `json:"inherit,omitempty"`     // names of variables of the node's own that it gets at each start
	User        string   `json:"user,omitempty"`        // the system's user that it runs as; "" is the node's default
	Wrap        []string `json:"wrap,omitempty"`        // words that stand before the command; none are the node's default
}

// programUnconfined turns a ProgramSet of version 1 into one of version 2: it names no user, no wrap and no variables. A
// program that does not know these refuses the version, and so runs nothing without them.
func programUnconfined(payload []byte) ([]byte, error) {
	if len(payload) == 0 || payload[0] != msgpcode.FixedArrayLow|7 {
		return nil, errMalformed
	}
	lifted := append(bytes.Clone(payload), msgpcode.Nil, msgpcode.FixedStrLow, msgpcode.Nil)
	lifted[0] += 3
	return lifted, nil
}

// PolicySet says what becomes of an agent's calls that need permission: always, on-miss, never or deny.
type PolicySet struct {
	Policy string `json:"policy"`
}

// RunStarted says that the agent's program runs.
type RunStarted struct {
	Run    capabilities.ID `json:"run"`
	Prompt capabilities.ID `json:"prompt,omitzero"` // the message that it runs for
}

// RunEnded says that it no longer does. An empty Error is a good end. With Again the run came to nothing, and there is to
// be another for its message, before those for later ones.
type RunEnded struct {
	Run    capabilities.ID `json:"run"`
	Error  string          `json:"error,omitempty"`
	Output string          `json:"output,omitempty"` // the tail of it
	Again  bool            `json:"again,omitempty"`
}
