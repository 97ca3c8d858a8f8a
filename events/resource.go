package events

import "parley/capabilities"

// ResourceMade makes a mailbox that of a resource. It follows AgentCreated at once. The facet is the most that anybody may do with the
// resource. A secret's value is in none of these: it is kept sealed beside the log.
type ResourceMade struct {
	Kind      capabilities.Kind  `json:"kind"`
	Facet     capabilities.Facet `json:"facet,omitzero"`
	Folder    string             `json:"folder,omitempty"`    // of a folder, and the one that a tool's command runs in: an absolute path of the node
	File      *File              `json:"file,omitempty"`      // of a file
	Header    string             `json:"header,omitempty"`    // of a secret: "Name: value", with {} where the secret goes
	Authority []byte             `json:"authority,omitempty"` // of a secret: the only certificates that are trusted for its hosts, in PEM; nil for those of the system
	Command   []string           `json:"command,omitempty"`   // of a tool: the server's program
	Address   string             `json:"address,omitempty"`   // of a tool: the server's, if it has no command
	Tools     []ResourceTool     `json:"tools,omitempty"`
}

// ResourceTool is a tool as it was when the host has made, or granted again, the resource.
type ResourceTool struct {
	Name   string `json:"name"`
	Digest string `json:"digest"` // SHA-256 of its description and schemas, in hex
}

// ResourceRenewed has the tools of a resource be as they are now: the host grants them again.
type ResourceRenewed struct {
	Tools []ResourceTool `json:"tools"`
}

// UseBegun charges a use of a resource, at its home, before anything goes out. It counts for the grant and for all that this is derived
// from. Ask is who decides on the use first; the use goes out with UseAllowed then, and at once if it is zero.
type UseBegun struct {
	Use    capabilities.ID   `json:"use"`
	By     capabilities.ID   `json:"by"`
	Grant  capabilities.ID   `json:"grant,omitzero"` // zero for the host that has made the resource
	Words  string            `json:"words"`          // what it does
	Digest []byte            `json:"digest"`         // SHA-256 of the verb and the input
	Key    string            `json:"key,omitempty"`
	Ask    capabilities.ID   `json:"ask,omitzero"`
	Date   capabilities.Time `json:"date"`
}

// UseAllowed has a use that waited for a decision go out.
type UseAllowed struct {
	Use  capabilities.ID `json:"use"`
	Form capabilities.ID `json:"form"` // in which it was allowed
}

// UseEnded ends a use. The charge of one that was denied is given back: nothing has gone out.
type UseEnded struct {
	Use    capabilities.ID    `json:"use"`
	How    UseEnd             `json:"how"`
	Code   string             `json:"code,omitempty"` // of the error of a use that failed
	Text   string             `json:"text,omitempty"` // its message, or the reason of a denial
	Result capabilities.Value `json:"result"`         // of one with a key, if it is small; null otherwise
	Date   capabilities.Time  `json:"date"`
}

// UseEnd is how a use has ended.
type UseEnd string

// The ends of uses. One is unknown if the node ended while it was under way: it may have had its effect or not, and is not repeated.
const (
	UseDone    UseEnd = "done"
	UseFailed  UseEnd = "failed"
	UseDenied  UseEnd = "denied"
	UseUnknown UseEnd = "unknown"
)
