package view

import "parley/events"

// StoredFile says how far an upload is. Digest is set when the file is stored.
type StoredFile struct {
	Upload string `json:"upload"`
	Offset int64  `json:"offset"` // where the upload goes on
	Size   int64  `json:"size"`
	Digest string `json:"digest,omitempty"`
}

// FilePart is a part of a file. It has no Data at the end of the file.
type FilePart struct {
	File   events.File `json:"file"`
	Offset int64       `json:"offset"`
	Data   string      `json:"data,omitempty"` // in base64
}
