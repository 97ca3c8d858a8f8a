package events

import (
	"parley/capabilities"
)

// RuleAdded adds a standing rule for an agent's calls of a tool, or changes its end. Covers describes the calls.
type RuleAdded struct {
	Rule   capabilities.ID   `json:"rule"`
	Agent  capabilities.ID   `json:"agent"`
	Tool   string            `json:"tool"`
	Allow  bool              `json:"allow"`
	Until  capabilities.Time `json:"until,omitzero"`
	Form   capabilities.ID   `json:"form,omitzero"` // the approval that it came from
	Covers Coverage          `json:"covers"`
}

// CoverageKind is the way in which a standing rule matches calls.
type CoverageKind string

// The kinds of coverage.
const (
	CoversCall     CoverageKind = "call"     // calls with this Input in this Folder
	CoversCommands CoverageKind = "commands" // command lines in this Folder whose commands all match one of these Commands
	CoversFile     CoverageKind = "file"     // calls about this File in this Folder
	CoversFiles    CoverageKind = "files"    // calls about files in this Folder that match this Glob
	CoversTool     CoverageKind = "tool"     // all calls in this Folder; of mandates alone
)

// Coverage describes the calls of a tool that a standing rule covers. Package mailbox/rule matches it.
type Coverage struct {
	Kind     CoverageKind     `json:"kind"`
	Folder   string           `json:"folder,omitempty"` // absolute; "" if the call had none
	Input    string           `json:"input,omitempty"`  // a JSON document, or "sha256:" and the digest of a long one
	Commands []CommandPattern `json:"commands,omitempty"`
	File     string           `json:"file,omitempty"` // relative to Folder
	Glob     string           `json:"glob,omitempty"` // relative to Folder
}

// CommandPattern matches simple commands that begin with Words, and have only Options and Operands after them.
type CommandPattern struct {
	Words []string `json:"words"`

	// Options lists the options that may follow Words, in any order. "-x" and "--long" match exactly. "-[abc]" matches
	// any of these letters after one dash, and "-N" a dash and digits. "-n N" matches this option and a word of
	// digits, and "--count=N" an option that ends with digits.
	Options []string `json:"options,omitempty"`

	// Operands is the kind of the other words: "" for none, or names, branches, revisions, paths or text, as package
	// mailbox/rule defines them.
	Operands string `json:"operands,omitempty"`
}

// Offer is a standing rule that an approval offers. An answer names it by its ID, which no other offer of the approval has.
// Words are for people: two offers may have the same. The Rule for the very call leaves out the input, which the approval has.
type Offer struct {
	ID    string   `json:"id"`
	Rule  Coverage `json:"rule"`
	Words string   `json:"words"`
}

// RuleUsed records a call that was decided by a standing rule, or by the agent's policy if Rule is zero.
type RuleUsed struct {
	Rule  capabilities.ID `json:"rule,omitzero"`
	Tool  string          `json:"tool"`
	Input string          `json:"input"` // a JSON document
}

// RulePaused pauses a standing rule, which decides nothing then, or resumes it.
type RulePaused struct {
	Rule   capabilities.ID `json:"rule"`
	Paused bool            `json:"paused"`
	Form   capabilities.ID `json:"form,omitzero"` // the approval whose answer resumed it
}

// RuleRemoved ends a standing rule.
type RuleRemoved struct {
	Rule capabilities.ID `json:"rule"`
}
