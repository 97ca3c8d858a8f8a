package api

import (
	"parley/capabilities"
	"parley/events"
)

// MakeResourceRequest makes a resource, which the node's host then holds under Name: a folder of the node, a file by its content, a secret
// that is used and never seen, or the tools of a server of the Model Context Protocol. Facet is the most that anybody may do with it, the
// host too. With Again, a secret gets another value, and a tool is granted as it is now.
type MakeResourceRequest struct {
	Acting
	Kind  capabilities.Kind  `json:"kind"` // folder, file, secret or tool
	Name  string             `json:"name"`
	Again bool               `json:"again,omitempty"`
	Facet capabilities.Facet `json:"facet,omitzero"` // of a secret, only has the hosts and methods the methods

	Folder    string       `json:"folder,omitempty"`    // an absolute path of the node; of a tool, in which its command runs
	File      *events.File `json:"file,omitempty"`      // that the host has stored
	Secret    string       `json:"secret,omitempty"`    // the value: 8 bytes to 4 KiB of ASCII
	Header    string       `json:"header,omitempty"`    // of a secret: NAME: VALUE with {} in it; default "Authorization: Bearer {}"
	Authority string       `json:"authority,omitempty"` // of a secret: the only certificates that are trusted for its hosts, in PEM
	Command   []string     `json:"command,omitempty"`   // of a tool: the server's program
	Address   string       `json:"address,omitempty"`   // of a tool: the server's, if it has no command
}

// InvokeRequest uses a resource that the agent holds. Without a verb nothing is used: the response has what the agent holds, and the
// verbs. The use is charged before it goes out. When WaitMs has passed before it has ended, its state is asked or begun: call again
// with Use, and the rest as it was. With the same Key, another call is the same use, and needs the same input. Without a name too the response
// lists what the agent holds.
type InvokeRequest struct {
	Acting
	Name   string                        `json:"name,omitempty"`
	Verb   string                        `json:"verb,omitempty"`
	Input  map[string]capabilities.Value `json:"input,omitempty"`
	Key    string                        `json:"key,omitempty"` // the agent's own, of 255 bytes at most
	Use    string                        `json:"use,omitempty"`
	WaitMs *int64                        `json:"waitMs,omitempty"` // default 25,000, at most 50,000
}
