package view

import "parley/capabilities"

// Archive describes the archived beginning of a node's journal.
type Archive struct {
	Last       uint64           `json:"last"`       // the last archived commit; 0 if none is
	New        uint64           `json:"new"`        // commits that the call archived
	Checkpoint int64            `json:"checkpoint"` // bytes of the states of all mailboxes at Last
	Bytes      int64            `json:"bytes"`      // of all segments, wherever they are
	Segments   []ArchiveSegment `json:"segments"`   // in order
}

// ArchiveSegment is a file with consecutive commits.
type ArchiveSegment struct {
	First  uint64            `json:"first"` // its first commit, by which it is named
	Last   uint64            `json:"last"`
	From   capabilities.Time `json:"from"` // the time of its first commit
	To     capabilities.Time `json:"to"`
	Bytes  int64             `json:"bytes"`
	Digest string            `json:"digest"`
	Here   bool              `json:"here"`            // its file is at the node
	Place  string            `json:"place,omitempty"` // where a copy of it was moved to
}

// Elsewhere names a segment of the archive that is not at the node, and how to bring it back.
type Elsewhere struct {
	Segment uint64            `json:"segment"`         // its first commit
	From    capabilities.Time `json:"from"`            // the time of that
	To      capabilities.Time `json:"to"`              // the time of its last commit
	Place   string            `json:"place,omitempty"` // where it was moved to, if that is known
	Hint    string            `json:"hint"`            // the command that brings it back
}

// MissingEvents are consecutive events of a log that are in a segment elsewhere. First and Last are versions of the
// mailbox.
type MissingEvents struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
	Elsewhere
}

// Log is a part of a mailbox's log. Missing are events that belong before or among the entries.
type Log struct {
	Entries  []Entry         `json:"entries"`
	Missing  []MissingEvents `json:"missing,omitempty"`
	Archived uint64          `json:"archived,omitempty"` // version after the last event that is in the archive
}
