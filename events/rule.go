package events

import (
	"bytes"

	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"parley/capabilities"
)

// RuleAdded adds a standing answer to an agent's calls of a tool, or changes its end. Covers says which calls it is
// for. Rules from before it existed have a Shape, which is text.
type RuleAdded struct {
	Rule   capabilities.ID   `json:"rule"`
	Agent  capabilities.ID   `json:"agent"`
	Tool   string            `json:"tool"`
	Shape  string            `json:"shape,omitempty"` // of the input
	Allow  bool              `json:"allow"`
	Until  capabilities.Time `json:"until,omitzero"`
	Form   capabilities.ID   `json:"form,omitzero"` // the approval that it came from
	Covers *Coverage         `json:"covers,omitempty"`
}

// ruleShaped lifts version 1, which had no Covers: it gets none at its end.
func ruleShaped(payload []byte) ([]byte, error) {
	if len(payload) == 0 || payload[0] != msgpcode.FixedArrayLow|7 {
		return nil, errMalformed
	}
	lifted := append(bytes.Clone(payload), msgpcode.Nil)
	lifted[0]++
	return lifted, nil
}

// CoverageKind is how the calls of a standing rule are recognized.
type CoverageKind string

// The kinds of coverage.
const (
	CoversCall     CoverageKind = "call"     // calls with this Input in this Folder
	CoversCommands CoverageKind = "commands" // command lines in this Folder of which every command has one of these Commands
	CoversFile     CoverageKind = "file"     // calls about this File in this Folder
	CoversFiles    CoverageKind = "files"    // calls about files in this Folder that match this Glob
)

// Coverage says which calls of a tool a standing rule is for. Package mailbox/rule reads it.
type Coverage struct {
	Kind     CoverageKind     `json:"kind"`
	Folder   string           `json:"folder,omitempty"` // absolute; "" where the call named none
	Input    string           `json:"input,omitempty"`  // a JSON document
	Commands []CommandPattern `json:"commands,omitempty"`
	File     string           `json:"file,omitempty"` // relative to Folder
	Glob     string           `json:"glob,omitempty"` // relative to Folder
}

// CommandPattern covers simple commands: those that begin with Words, and have nothing behind them but Options and
// Operands.
type CommandPattern struct {
	Words []string `json:"words"`

	// Options lists what may stand anywhere behind Words. "-x" and "--long" are to the letter, "-[abc]" is any of
	// these letters behind one dash, "-N" is a dash and digits, "-n N" takes the next word if that is digits, and
	// "--count=N" ends with digits.
	Options []string `json:"options,omitempty"`

	// Operands names what may stand there that is no option: "" for nothing, or names, branches, revisions, paths
	// or text, as package mailbox/rule defines them.
	Operands string `json:"operands,omitempty"`
}

// RulesOffered lists the standing rules that an approval offers, beside that for the very call. It follows the form in
// the log of the approval's home alone. Folder is where the call is made.
type RulesOffered struct {
	Form   capabilities.ID `json:"form"`
	Folder string          `json:"folder,omitempty"`
	Wider  []Coverage      `json:"wider,omitempty"`
}

// RuleUsed records a call that a standing rule decided, or, without a Rule, the agent's policy.
type RuleUsed struct {
	Rule  capabilities.ID `json:"rule,omitzero"`
	Tool  string          `json:"tool"`
	Input string          `json:"input"` // a JSON document
}

// RuleRemoved ends a standing rule.
type RuleRemoved struct {
	Rule capabilities.ID `json:"rule"`
}
