package parley

import "encoding/json"

// MandateTerms say what leave an agent gets with the answer to one of its approvals: calls that one of Rules covers are allowed without a
// question, until a limit is reached. It ends with the session of a coding agent that asked, at the latest.
type MandateTerms struct {
	Rules []MandateRule `json:"rules"`           // at least one, and 32 at most
	Calls uint32        `json:"calls,omitempty"` // how many in all; 1000 at most, and if it is not said
	Until string        `json:"until,omitempty"` // a time from now (8h), or a moment
	Sums  []MandateSum  `json:"sums,omitempty"`  // 8 at most
}

// MandateRule says which calls a mandate covers. One of Offer, Command, Files and Input says it, or else Tool alone.
type MandateRule struct {
	Offer   string          `json:"offer,omitempty"`   // those of a rule that the approval offers, by its ID
	Command string          `json:"command,omitempty"` // command lines whose commands are all among those of this one, of each tool that runs some
	Like    bool            `json:"like,omitempty"`    // of Command: commands like these too, as approvals of them offer it
	Files   string          `json:"files,omitempty"`   // a glob: reading and writing files that match it, by each tool that does; no hidden ones
	Read    bool            `json:"read,omitempty"`    // of Files: reading alone
	Tool    string          `json:"tool,omitempty"`    // with Input this tool; alone all calls of it, if it runs no command lines and uses no files
	Input   json.RawMessage `json:"input,omitempty"`   // this very call, which may be of high risk
	Folder  string          `json:"folder,omitempty"`  // where the calls are made, an absolute path; default: the folder of the approval
}

// MandateSum bounds what a member of the inputs of a tool's calls adds up to. A call whose input has no such member is asked about, and one
// whose member is no plain number: digits, at most 12, and perhaps a point and at most 6 more.
type MandateSum struct {
	Tool   string `json:"tool,omitempty"` // default: that of the rules for all calls of a tool, or one call, if these are for one
	Member string `json:"member"`         // of the input itself, and not of an object in it
	Most   string `json:"most"`           // a plain number
}

// MandateEnd is how a mandate has ended.
type MandateEnd string

// The ends of a mandate. It is "" while it lasts.
const (
	MandateRevoked MandateEnd = "revoked" // by the agent's host
	MandateSession MandateEnd = "session" // with its session, or the agent was stopped
	MandateExpired MandateEnd = "expired"
	MandateUsedUp  MandateEnd = "used up"
)
