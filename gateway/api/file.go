package api

// MaxFilePart bounds the data of a part of a file, in bytes.
const MaxFilePart = 128 << 10

// StoreFileRequest stores a part of a file, which a message of the agent can carry then. The first part has the size of the file, at
// most 32 MiB, and no upload; those after it have the upload of the response before. What is there already is passed over, so a part
// may be sent again. The response to the last part has the digest, by which "files" of a message, or an answer, name the file.
type StoreFileRequest struct {
	Acting
	Upload string `json:"upload,omitempty"`
	Size   int64  `json:"size,omitempty"`
	Offset int64  `json:"offset,omitempty"`
	Data   string `json:"data,omitempty"` // 128 KiB at most, in base64
}

// FetchFileRequest fetches a part of a file that a message carries, or the answer to a form: 128 KiB at most, from an offset on. A
// file that another node has is fetched from there first.
type FetchFileRequest struct {
	Acting
	FormRef
	File   string `json:"file"` // its digest
	Offset int64  `json:"offset,omitempty"`
}
