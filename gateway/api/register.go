package api

import "parley/capabilities"

// RegisterPath is the address, on the node's socket, at which a coding agent is registered with POST. A process that the
// agent has started sends a Register, and is answered by a Registered. From then on the agent's process and all below it
// act for its guest alone. So does what names its session in the environment. It is no operation.
const RegisterPath = "/register"

// UnheardFolder is the name of the folder in the state folder with the registrations that found no node: a Register in each file
// whose name ends in .json, one for a session. The node takes them up as it starts, before it listens. So a node that is started
// below a coding agent knows that.
const UnheardFolder = "coders-unheard"

// Register names a coding agent and the folder that it works in.
type Register struct {
	Acting         // a guest of the host's instead of that of the folder; "" for that
	Program string `json:"program"`           // claude-code, codex
	Title   string `json:"title"`             // Claude Code, Codex
	Folder  string `json:"folder"`            // an absolute path
	Process int    `json:"process,omitempty"` // the agent's process, as the agent says; 0: it is the one above the caller
	Session string `json:"session,omitempty"` // that the agent works in, as what it starts has it in its environment; "" for none, at most 128 bytes
}

// Registered is the guest that a coding agent acts for.
type Registered struct {
	Agent capabilities.ID `json:"agent"`
	Name  string          `json:"name"`           // requests of the agent name it: the host holds it under this name
	Bound bool            `json:"bound,omitzero"` // the agent's process is known, and what is below it acts for the guest alone
}
