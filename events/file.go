package events

import (
	"parley/capabilities"
	"parley/internal/pack"
)

// File is what a message or an answer says of a file that it carries. The content is kept beside the log, by its digest.
type File struct {
	Digest string `json:"digest"`         // the SHA-256 of the content, in 64 hexadecimal digits
	Name   string `json:"name"`           // as its sender calls it; no path
	Size   int64  `json:"size"`           // in bytes
	Type   string `json:"type,omitempty"` // the media type, as its sender says; "" if it says none
}

func appendFile(b []byte, f *File) []byte {
	b = appendTexts(pack.AppendArray(b, 4), f.Digest, f.Name)
	return appendTexts(pack.AppendInt(b, f.Size), f.Type)
}

// FileStored records that the agent has stored a file here, which it may attach to what it sends. It counts for the agent until it
// is dropped.
type FileStored struct {
	Digest string            `json:"digest"`
	Size   int64             `json:"size"`
	Date   capabilities.Time `json:"date"`
}

// FilesDropped records that files count no more for the agent: nothing in its mailbox has referred to them for a time. Their content
// is removed when no other mailbox refers to it.
type FilesDropped struct {
	Digests []string `json:"digests"`
}
