package client

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"

	"parley"
	"parley/events"
	"parley/gateway/api"
)

// File is a file that a message carries, or an answer to a field of type file.
type File = events.File

// Files are the files of an agent.
type Files struct{ c *Client }

// FilesOf returns the files of a client's agent.
func FilesOf(c *Client) Files { return Files{c} }

// Store stores a file of a size, part by part, and returns it for a Post or an answer. The name is one without a path; the media
// type may be "". It counts for the agent's quota, and is kept for a week until something carries it.
func (fs Files) Store(ctx context.Context, name, mediaType string, size int64, content io.Reader) (File, error) {
	f := File{Name: name, Type: mediaType, Size: size}
	part := api.StoreFileRequest{Size: size}
	for {
		data := make([]byte, min(size-part.Offset, api.MaxFilePart))
		if _, err := io.ReadFull(content, data); err != nil {
			return f, fmt.Errorf("read %s: %w", parley.Quoted(name, 80), err)
		}
		part.Data = base64.StdEncoding.EncodeToString(data)
		at, err := api.StoreFile.Do(ctx, fs.c, part)
		if err != nil {
			return f, err
		}
		if f.Digest = at.Digest; f.Digest != "" {
			return f, nil
		}
		if at.Offset != part.Offset+int64(len(data)) {
			return f, parley.Refuse(parley.Internal, "the node has %d bytes of %s, and was given %d", at.Offset, parley.Quoted(name, 80), part.Offset+int64(len(data)))
		}
		part.Upload, part.Offset, part.Size = at.Upload, at.Offset, 0
	}
}

// Fetch writes the content of a file that a message of the agent carries, or the answer to a form. It fails with FILE_DAMAGED if
// what was written is not the file's content.
func (fs Files) Fetch(ctx context.Context, message ID, f File, w io.Writer) error {
	sum := sha256.New()
	all := io.MultiWriter(w, sum)
	for at := int64(0); ; {
		part, err := api.FetchFile.Do(ctx, fs.c, api.FetchFileRequest{FormRef: refTo(message), File: f.Digest, Offset: at})
		if err != nil {
			return err
		}
		data, err := base64.StdEncoding.DecodeString(part.Data)
		if err != nil {
			return parley.Refuse(parley.Internal, "the node gave a part of a file that is not in base64")
		}
		if len(data) == 0 {
			break
		}
		if _, err := all.Write(data); err != nil {
			return err
		}
		if at += int64(len(data)); at > f.Size {
			break
		}
	}
	if hex.EncodeToString(sum.Sum(nil)) != f.Digest {
		return parley.Refuse(parley.FileDamaged, "what the node gave is not the file %s", parley.Quoted(f.Name, 80))
	}
	return nil
}
