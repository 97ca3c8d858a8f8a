package web

import (
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"parley"
	"parley/events"
	"parley/gateway/api"
	"parley/gateway/sanitize"
	"parley/mailbox/form"
)

// filePolicy is the Content-Security-Policy of a file: wherever it is shown, it runs and loads nothing.
const filePolicy = "default-src 'none'; sandbox"

// attachment is a file of a message, or of the answer to a form.
type attachment struct {
	events.File
	Address string
}

// Bytes returns the size for people.
func (a attachment) Bytes() string {
	switch {
	case a.Size >= 10<<20:
		return strconv.FormatInt(a.Size>>20, 10) + " MiB"
	case a.Size >= 10<<10:
		return strconv.FormatInt(a.Size>>10, 10) + " KiB"
	}
	return strconv.FormatInt(a.Size, 10) + " bytes"
}

// Attached returns the files that the message carries, and those of its answer.
func (c card) Attached() []attachment {
	files := c.Files
	if c.Outcome != nil {
		files = append(files[:len(files):len(files)], form.FilesIn(c.Fields, c.Outcome.Values)...)
	}
	all := make([]attachment, len(files))
	for i, f := range files {
		q := url.Values{"file": {f.Digest}}
		if c.As != "" {
			q.Set("as", c.As)
		}
		all[i] = attachment{f, c.Base + FormsPath + c.MessageID.String() + "?" + q.Encode()}
	}
	return all
}

// TakesFile reports whether the form has a field for a file.
func (c card) TakesFile() bool {
	for i := range c.Fields {
		if form.ControlOf(&c.Fields[i]) == form.File {
			return true
		}
	}
	return false
}

// download sends a file that a message carries. A browser saves it: it is never shown as a page, whatever its sender calls it.
func download(p *page, ref api.FormRef, digest string) error {
	r := api.FetchFileRequest{Acting: api.Acting{As: p.as}, FormRef: ref, File: digest}
	part, err := api.FetchFile.Do(p.ctx(), p, r)
	if err != nil {
		return err
	}
	saves(p, savedName(part.File.Name), part.File.Size)
	if p.r.Method == http.MethodHead {
		return nil
	}
	for {
		data, err := base64.StdEncoding.DecodeString(part.Data)
		if err != nil || len(data) == 0 {
			return nil
		}
		if _, err := p.w.Write(data); err != nil {
			return nil // the browser is gone
		}
		if r.Offset += int64(len(data)); r.Offset >= part.File.Size {
			return nil
		}
		if part, err = api.FetchFile.Do(p.ctx(), p, r); err != nil {
			panic(http.ErrAbortHandler) // the length was sent: the browser has to see that the file is not whole
		}
	}
}

// saves has the browser save what follows as a file.
func saves(p *page, name string, size int64) {
	h := p.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", filePolicy)
	h.Set("Cache-Control", "private, no-store")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	h.Set("Content-Length", strconv.FormatInt(size, 10))
}

// proofOf sends a proof of the decision on a form, as a file.
func proofOf(p *page, ref api.FormRef) error {
	got, err := api.ProveForm.Do(p.ctx(), p, api.ProofRequest{Acting: api.Acting{As: p.as}, FormRef: ref})
	if err != nil {
		return err
	}
	saves(p, got.Form.ULID.String()+".proof", int64(len(got.Proof)))
	if p.r.Method != http.MethodHead {
		_, _ = io.WriteString(p.w, got.Proof) // a failure is that of the browser
	}
	return nil
}

// savedName returns the name of a file without what would hide a part of it, or name a place.
func savedName(name string) string {
	name = strings.TrimLeft(strings.Map(func(r rune) rune {
		if parley.IsInvisible(r) || strings.ContainsRune(`/\:*?"<>|`, r) {
			return '_'
		}
		return r
	}, sanitize.Line(name)), ". ")
	if name == "" {
		return "file"
	}
	return name
}

// takeUploads reads a plain HTML form that has files, and stores them for the reader. Each is in the values by the name of its field,
// as the text of an answer. With scripts a file is stored before its form is sent: attach.js.
func takeUploads(p *page, fields []events.Field) error {
	if err := p.r.ParseMultipartForm(maxPlainForm); err != nil {
		return parley.Refuse(parley.InvalidArgument, "the form cannot be read, or its files are too large to be sent without scripts: %d MiB at most", maxPlainForm>>20)
	}
	defer p.r.MultipartForm.RemoveAll() //nolint:errcheck // nothing was written: all is in memory
	p.r.PostForm = url.Values(p.r.MultipartForm.Value)
	for i := range fields {
		sent := p.r.MultipartForm.File[control(i)+".file"]
		if form.ControlOf(&fields[i]) != form.File || len(sent) != 1 || sent[0].Filename == "" {
			continue
		}
		f, err := sent[0].Open()
		if err != nil {
			return err
		}
		stored, err := storeUpload(p, f, sent[0].Size)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		kind, _, _ := strings.Cut(sent[0].Header.Get("Content-Type"), ";")
		if !form.IsMediaType(kind) {
			kind = ""
		}
		p.r.PostForm.Set(control(i), form.FileText(events.File{Digest: stored, Name: savedName(sent[0].Filename), Size: sent[0].Size, Type: kind}))
	}
	return nil
}

// storeUpload stores a file, and returns its digest.
func storeUpload(p *page, content io.Reader, size int64) (digest string, err error) {
	r := api.StoreFileRequest{Acting: api.Acting{As: p.as}, Size: size}
	for {
		data := make([]byte, min(size-r.Offset, api.MaxFilePart))
		if _, err := io.ReadFull(content, data); err != nil {
			return "", err
		}
		r.Data = base64.StdEncoding.EncodeToString(data)
		at, err := api.StoreFile.Do(p.ctx(), p, r)
		if err != nil || at.Digest != "" {
			return at.Digest, err
		}
		if at.Offset <= r.Offset {
			return "", parley.Refuse(parley.Internal, "the upload does not go on")
		}
		r.Upload, r.Offset, r.Size = at.Upload, at.Offset, 0
	}
}
