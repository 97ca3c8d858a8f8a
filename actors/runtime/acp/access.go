package acp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/coder/acp-go-sdk"

	"parley"
	"parley/actors/runtime"
)

// What an agent may be given access to.
const (
	accessRead     = "read"
	accessWrite    = "write"
	accessTerminal = "terminal"
)

// access is what an agent may do through the node, in a folder.
type access struct {
	read, write, terminal bool
	folder                string
}

func accessOf(granted []string, folder string) access {
	return access{
		read: slices.Contains(granted, accessRead), write: slices.Contains(granted, accessWrite), terminal: slices.Contains(granted, accessTerminal),
		folder: folder,
	}
}

// capabilities returns the node's capabilities for the protocol.
func (a access) capabilities() acp.ClientCapabilities {
	return acp.ClientCapabilities{
		Fs:          acp.FileSystemCapabilities{ReadTextFile: a.read, WriteTextFile: a.write},
		Terminal:    a.terminal,
		Elicitation: &acp.ElicitationCapabilities{Form: &acp.ElicitationFormCapabilities{}},
	}
}

func refuseAccess(what string) error {
	return parley.Refuse(parley.NotPermitted, "the agent has no %s access", what)
}

// within opens the folder and returns the name of a path in it.
func (a access) within(path string) (*os.Root, string, error) {
	outside := parley.Refuse(parley.NotPermitted, "%.200q is not in the agent's folder", path)
	if !filepath.IsAbs(path) {
		return nil, "", parley.Refuse(parley.InvalidArgument, "a path is absolute, and %.200q is not", path)
	}
	folders := []string{a.folder}
	if real, err := filepath.EvalSymlinks(a.folder); err == nil {
		folders = append(folders, real)
	}
	for _, folder := range folders {
		name, err := filepath.Rel(folder, path)
		if err != nil || !filepath.IsLocal(name) {
			continue
		}
		root, err := os.OpenRoot(folder)
		if err != nil {
			return nil, "", parley.Refuse(parley.Internal, "the agent's folder cannot be opened")
		}
		return root, name, nil
	}
	return nil, "", outside
}

// fileError returns the error of a file operation. It tells nothing about files outside of the folder.
func fileError(err error) error {
	if _, ok := errors.AsType[*parley.Error](err); ok {
		return err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return acp.NewInvalidParams("there is no such file")
	case errors.Is(err, fs.ErrPermission):
		return parley.Refuse(parley.NotPermitted, "the node may not open the file")
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return parley.Refuse(parley.NotPermitted, "the file cannot be used: %v", e.Err)
	}
	return err
}

func readFile(ctx context.Context, t *turn, params json.RawMessage) (any, error) {
	var r acp.ReadTextFileRequest
	if err := t.parse(params, &r, (*string)(&r.SessionId)); err != nil {
		return nil, err
	}
	a := t.peer.access
	if !a.read {
		return nil, refuseAccess(accessRead)
	}
	root, name, err := a.within(r.Path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe is not waited for
	if err != nil {
		return nil, fileError(err)
	}
	defer f.Close()
	if err := wantFile(f); err != nil {
		return nil, err
	}
	text, err := readLines(ctx, f, r.Line, r.Limit)
	if err != nil {
		return nil, fileError(err)
	}
	return acp.ReadTextFileResponse{Content: text}, nil
}

func wantFile(f *os.File) error {
	about, err := f.Stat()
	if err != nil {
		return fileError(err)
	}
	if !about.Mode().IsRegular() {
		return parley.Refuse(parley.InvalidArgument, "it is not a plain file")
	}
	return nil
}

// readLines reads a file, or limit lines from a line on. The first line is 1.
func readLines(ctx context.Context, f io.Reader, line, limit *int) (string, error) {
	var b bytes.Buffer
	if line == nil && limit == nil {
		if _, err := io.Copy(&b, io.LimitReader(f, runtime.MaxLine+1)); err != nil {
			return "", err
		}
	} else if err := copyLines(ctx, &b, f, line, limit); err != nil {
		return "", err
	}
	if b.Len() > runtime.MaxLine {
		return "", parley.Refuse(parley.TooLarge, "at most %d bytes of a file can be read at once", runtime.MaxLine).WithHint("give a line and a limit")
	}
	return strings.ToValidUTF8(b.String(), string(utf8.RuneError)), nil
}

func copyLines(ctx context.Context, b *bytes.Buffer, f io.Reader, line, limit *int) error {
	skip, left := 0, -1
	if line != nil {
		skip = max(*line-1, 0)
	}
	if limit != nil {
		left = max(*limit, 0)
	}
	chunk := make([]byte, 64<<10)
	for left != 0 && b.Len() <= runtime.MaxLine {
		n, err := f.Read(chunk)
		for text := chunk[:n]; len(text) > 0 && left != 0; {
			end := bytes.IndexByte(text, '\n') + 1
			whole := end > 0
			if !whole {
				end = len(text)
			}
			if skip == 0 {
				b.Write(text[:end])
			}
			text = text[end:]
			switch {
			case whole && skip > 0:
				skip--
			case whole && left > 0:
				left--
			}
		}
		if err == io.EOF {
			return nil
		}
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

// newFile makes a file, and the folders above it that are not there. A link may be changed at any moment, so nothing is made before the place
// of the folder that it is made in, which is open by then, may be written. Path is the name from the root of all.
func newFile(root *os.Root, name, path string, may func(place string) error) (*os.File, error) {
	above, base := filepath.Dir(name), filepath.Base(name)
	var missing []string // folders, the outermost first
	at, err := root.OpenRoot(above)
	for errors.Is(err, fs.ErrNotExist) && above != "." {
		missing = append([]string{filepath.Base(above)}, missing...)
		above = filepath.Dir(above)
		at, err = root.OpenRoot(above)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = at.Close() }() // only names are looked up in it
	for i := 0; ; i++ {
		below := filepath.Join(append(slices.Clone(missing[i:]), base)...)
		if err := mayMake(at, strings.TrimSuffix(path, below), below, may); err != nil {
			return nil, err
		}
		if i == len(missing) {
			return at.OpenFile(base, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) // it follows no link
		}
		if err := at.Mkdir(missing[i], 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		next, err := at.OpenRoot(missing[i])
		if err != nil {
			return nil, err
		}
		_ = at.Close()
		at = next
	}
}

// mayMake reports whether what is below an open folder may be made there.
func mayMake(folder *os.Root, path, below string, may func(place string) error) error {
	f, err := folder.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	place, err := placeOf(f, path)
	if err != nil {
		return err
	}
	return may(filepath.Join(place, below))
}

func writeFile(ctx context.Context, t *turn, params json.RawMessage) (any, error) {
	var r acp.WriteTextFileRequest
	if err := t.parse(params, &r, (*string)(&r.SessionId)); err != nil {
		return nil, err
	}
	a := t.peer.access
	if !a.write {
		return nil, refuseAccess(accessWrite)
	}
	root, name, err := a.within(r.Path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if err := t.host.MayWrite(ctx, r.Path); err != nil {
		return nil, err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = newFile(root, name, r.Path, func(place string) error { return t.host.MayWrite(ctx, place) })
	}
	if err != nil {
		return nil, fileError(err)
	}
	defer f.Close()
	if err := wantFile(f); err != nil {
		return nil, err
	}
	place, err := placeOf(f, r.Path)
	if err != nil {
		return nil, fileError(err)
	}
	if err := t.host.MayWrite(ctx, place); err != nil { // a link may have been changed since the name was looked at
		return nil, err
	}
	if err := f.Truncate(0); err != nil {
		return nil, fileError(err)
	}
	if _, err := f.WriteString(r.Content); err != nil {
		return nil, fileError(err)
	}
	if err := f.Close(); err != nil {
		return nil, fileError(err)
	}
	return acp.WriteTextFileResponse{}, nil
}
