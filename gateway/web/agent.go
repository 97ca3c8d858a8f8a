package web

import (
	"fmt"
	"net/url"
	"strings"

	"parley/actors/view"
	"parley/capabilities"
)

// AgentsPath, with a name behind it, is the address of an agent's own page.
const AgentsPath = "/agents/"

// AgentPage is what the page of an agent shows.
type AgentPage struct {
	Name   string // "" is who is signed in
	ID     capabilities.ID
	Mail   []Card         // newest first
	Output string         // the end of it
	Names  []Named        // sorted
	Grants []view.Granted // newest first
	Rules  []view.Rule    // oldest first
	Log    History
	MayAct bool // the session may take back, remove and end
	MayEnd bool // and the reader is the node's host, who ends rules
	Standing
}

// History is a part of an agent's log.
type History struct {
	Events []Logged // newest first
	Older  uint64   // there is more before this version; 0 if there is none
	Newest bool     // it is the end of the log
}

// Named is a value under one of the agent's names.
type Named struct{ Name, Value string }

// Special reports whether nobody gave the name, and nobody can remove it.
func (n Named) Special() bool { return strings.HasPrefix(n.Name, "@") }

// Logged is an event of the agent's log.
type Logged struct {
	view.Entry
	Text string // the event as JSON
	Cut  int    // how many characters more it has
}

// self is the name of the agent that is signed in, in the address of its own page.
const self = "SELF"

// AgentPath returns the address of the page of an agent by its name; "" is the agent that is signed in.
func AgentPath(name string) string {
	if name == "" {
		name = self
	}
	return AgentsPath + url.PathEscape(name)
}

// FacetLimits returns the limits of a facet in words; "" if it has none.
func FacetLimits(f capabilities.Facet) string {
	var b strings.Builder
	if f.Mode != capabilities.Full {
		fmt.Fprintf(&b, ", %s only", f.Mode)
	}
	if f.Uses != 0 {
		fmt.Fprintf(&b, ", %d uses", f.Uses)
	}
	if f.Until != 0 {
		fmt.Fprintf(&b, ", until %s", Readable(f.Until))
	}
	return b.String()
}

// Limits returns the limits of a facet in words.
func (d AgentPage) Limits(f capabilities.Facet) string { return FacetLimits(f) }

// Page returns the address of the agent's page.
func (d AgentPage) Page() string { return AgentPath(d.Name) }

// Inbox returns the address of the agent's mail.
func (d AgentPage) Inbox() string {
	if d.Name == "" {
		return "/"
	}
	return "/?" + url.Values{"as": {d.Name}}.Encode()
}

// AgentList is a part of the list of agents.
type AgentList struct {
	Agents []Listed
	After  string // there are more after this name; "" if there are not
	Later  bool   // it is not the first part
}

// More returns the address of the next part.
func (r AgentList) More() string { return "/agents?" + url.Values{"after": {r.After}}.Encode() }

// Listed is an agent in the list.
type Listed struct {
	Name    string
	ID      capabilities.ID
	Away    bool // it is on another node
	Here    bool // the reader may act as it, and so sees what follows
	Waiting int  // forms that wait for its answer
	Standing
}

// Page returns the address of the agent's page.
func (l Listed) Page() string { return AgentPath(l.Name) }

// Standing is the status of an agent of this node.
type Standing struct {
	view.AgentStatus
	Marks []string // its labels as key=value, sorted
}

// Sign returns a character for the status.
func (s Standing) Sign() string {
	switch s.Status {
	case "running":
		return "●"
	case "error":
		return "✕"
	case "closed":
		return "⊘"
	case "initializing":
		return "◌"
	}
	return "○"
}
