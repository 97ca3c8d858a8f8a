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
	Here   bool              `json:"here"` // its file is at the node
}
