package api

import "parley/capabilities"

// ArchiveJournalRequest archives the beginning of the node's journal.
type ArchiveJournalRequest struct {
	Acting
	Before capabilities.Time `json:"before"`       // commits before it are archived, where whole files of the journal are
	To     string            `json:"to,omitempty"` // moves the segments to this folder, or to s3://BUCKET/PREFIX
}

// MoveSegmentsRequest moves segments of the archive to another place, or brings them back from it. A segment is removed
// from the node only after its copy was read back and compared.
type MoveSegmentsRequest struct {
	Acting
	Segments []uint64 `json:"segments,omitempty"` // their first commits; default: all
	Place    string   `json:"place"`              // an absolute path of a folder at the node, or s3://BUCKET/PREFIX; to bring back, "" is where each was moved to
}
