package mcp

import (
	"context"
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"parley"
	"parley/actors/view"
	"parley/events"
	"parley/gateway/api"
	"parley/gateway/sanitize"
	"parley/mailbox/form"
)

// maxFileText bounds what one call of read_file gives of a text, in bytes.
const maxFileText = 16 << 10

// fileContent is a part of a file, for a model.
type fileContent struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	Type   string `json:"type,omitempty"`
	From   string `json:"from"`             // who sent it
	Text   string `json:"text,omitempty"`   // what its sender wrote: data
	Binary bool   `json:"binary,omitempty"` // it is no text, and is not given
	ReadOn int64  `json:"readOn,omitempty"` // where to read on
}

// readFile returns a part of a text file that a message carries, or the answer to a form.
func readFile(ctx context.Context, c *call) (any, error) {
	var arguments struct {
		Message api.RefText `json:"message"`
		File    string      `json:"file"`
		From    int64       `json:"from"`
	}
	if err := c.read(&arguments); err != nil {
		return nil, err
	}
	ref := api.RefTo(string(arguments.Message))
	m, err := api.GetMessage.Do(ctx, steady{c.agent}, api.MessageRequest{FormRef: ref})
	if err != nil {
		return nil, err
	}
	f, err := pickFile(&m, arguments.File)
	if err != nil {
		return nil, err
	}
	part, err := api.FetchFile.Do(ctx, steady{c.agent}, api.FetchFileRequest{FormRef: ref, File: f.Digest, Offset: arguments.From})
	if err != nil {
		return nil, err
	}
	data, err := base64.StdEncoding.DecodeString(part.Data)
	if err != nil {
		return nil, parley.Refuse(parley.Internal, "the part of the file is not in base64")
	}
	got := fileContent{Name: sanitize.Line(f.Name), Size: f.Size, Type: f.Type, From: sanitize.Line(m.FromName)}
	if got.From == "" {
		got.From = m.From.String()
	}
	text, isText := partText(data)
	if !isText {
		got.Binary = true
		return got, nil
	}
	got.Text = sanitize.Lines(text)
	if on := arguments.From + int64(len(text)); on < f.Size && len(text) > 0 {
		got.ReadOn = on
	}
	return got, nil
}

// pickFile returns the file of a message with a name or digest, or its only one.
func pickFile(m *view.Message, which string) (events.File, error) {
	files := m.Files
	if m.Outcome != nil {
		files = append(files[:len(files):len(files)], form.FilesIn(m.Fields, m.Outcome.Values)...)
	}
	var names []string
	for _, f := range files {
		if f.Digest == which || f.Name == which || sanitize.Line(f.Name) == which || which == "" && len(files) == 1 {
			return f, nil
		}
		names = append(names, parley.Quoted(f.Name, 80))
	}
	if len(files) == 0 {
		return events.File{}, parley.Refuse(parley.NoSuchFile, "message %d carries no file", m.Number)
	}
	return events.File{}, parley.Refuse(parley.NoSuchFile, "which file of message %d? it carries %s", m.Number, strings.Join(names, ", "))
}

// partText returns the beginning of some bytes as text, whole characters of it. It reports false for what is no text.
func partText(data []byte) (string, bool) {
	data = data[:min(len(data), maxFileText)]
	for cut := 0; cut < utf8.UTFMax && len(data) > 0 && !utf8.Valid(data); cut++ {
		data = data[:len(data)-1]
	}
	return string(data), utf8.Valid(data) && !strings.ContainsRune(string(data), 0)
}

// attached is a file as a model gives it: its own words, or bytes in base64. A path is none: the server may run on another machine, and
// what the model may read there is not its to say.
type attached struct {
	Name string `json:"name"`
	Text string `json:"text"`
	Data string `json:"data"`
	Type string `json:"type"`
}

// maxAttached bounds the files of one call, in bytes: a request has 1 MiB at most.
const maxAttached = 512 << 10

// attach stores the files that a model gives with a message, which carries them.
func attach(ctx context.Context, c *call, all []attached, p *parley.Post) error {
	contents, size := make([][]byte, len(all)), 0
	for i, f := range all {
		contents[i] = []byte(f.Text)
		if f.Data != "" {
			var err error
			if contents[i], err = base64.StdEncoding.DecodeString(f.Data); err != nil || f.Text != "" {
				return parley.Refuse(parley.InvalidArgument, "the file %s has text, or data in base64", parley.Quoted(f.Name, 80))
			}
		}
		if size += len(contents[i]); size > maxAttached {
			return parley.Refuse(parley.TooLarge, "the files of one call have %d KiB at most", maxAttached>>10).WithHint("parley send --attach sends larger ones")
		}
	}
	for i, f := range all {
		stored, err := storeFile(ctx, c, contents[i])
		if err != nil {
			return err
		}
		p.Files = append(p.Files, events.File{Digest: stored, Name: f.Name, Size: int64(len(contents[i])), Type: f.Type})
	}
	return nil
}

// storeFile stores content for the agent, and returns its digest.
func storeFile(ctx context.Context, c *call, content []byte) (string, error) {
	part := api.StoreFileRequest{Size: int64(len(content))}
	for {
		data := content[part.Offset:min(part.Offset+api.MaxFilePart, int64(len(content)))]
		part.Data = base64.StdEncoding.EncodeToString(data)
		at, err := api.StoreFile.Do(ctx, c.agent, part)
		if err != nil {
			return "", err
		}
		if at.Digest != "" {
			return at.Digest, nil
		}
		if at.Offset <= part.Offset {
			return "", parley.Refuse(parley.Internal, "the node takes no more of a file")
		}
		part.Upload, part.Offset, part.Size = at.Upload, at.Offset, 0
	}
}
