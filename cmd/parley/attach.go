package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"parley"
	"parley/capabilities"
	"parley/cmd/parley/terminal"
	"parley/events"
	"parley/gateway/api"
	"parley/gateway/client"
	"parley/internal/regular"
	"parley/mailbox/form"
)

// attachFiles stores files, for a message that carries them.
func attachFiles(ctx context.Context, env *environment, paths []string) (files []events.File, err error) {
	if len(paths) == 0 {
		return nil, nil
	}
	node := env.clientOf(client.Options{As: env.options.as})
	defer node.Close()
	for _, path := range paths {
		f, err := storeFile(ctx, env, node, path)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// storeFile stores a file under its own name.
func storeFile(ctx context.Context, env *environment, node *client.Client, path string) (events.File, error) {
	f, err := regular.Open(path, os.O_RDONLY)
	if err != nil {
		return events.File{}, parley.Refuse(parley.InvalidArgument, "the file %s cannot be read: %v", terminal.Visible(path), terminal.Reason(err))
	}
	defer f.Close() //nolint:errcheck // it was only read
	info, err := f.Stat()
	if err != nil {
		return events.File{}, err
	}
	name := filepath.Base(path)
	defer env.noteDisk(ctx)()
	return client.FilesOf(node).Store(ctx, name, mime.TypeByExtension(filepath.Ext(name)), info.Size(), f)
}

// storeAnswerFiles stores the files that an answer names as @PATH, for fields of type file.
func storeAnswerFiles(ctx context.Context, env *environment, answer *api.RespondFormRequest) error {
	if !slices.ContainsFunc(answer.Texts, func(t events.FieldText) bool { return strings.HasPrefix(t.Text, "@") }) {
		return nil
	}
	e, err := api.GetMessage.Do(ctx, env, api.MessageRequest{Acting: answer.Acting, FormRef: answer.FormRef})
	if err != nil {
		return err
	}
	for i, t := range answer.Texts {
		path, is := strings.CutPrefix(t.Text, "@")
		at := slices.IndexFunc(e.Fields, func(f events.Field) bool { return f.Name == capabilities.Normal(t.Name) })
		if !is || at < 0 || form.ControlOf(&e.Fields[at]) != form.File {
			continue
		}
		files, err := attachFiles(ctx, env, []string{path})
		if err != nil {
			return err
		}
		answer.Texts[i].Text = form.FileText(files[0])
	}
	return nil
}

// saved is a file that was fetched.
type saved struct {
	events.File
	Path string `json:"path"`
}

// saveFiles saves what a message carries into a folder, which it makes if there is none. A name is made safe, and one that is
// taken gets a number: nothing is overwritten, and nothing is written outside the folder.
func saveFiles(ctx context.Context, env *environment, number, folder string) error {
	e, err := api.GetMessage.Do(ctx, env, api.MessageRequest{Acting: env.acting(), FormRef: api.RefTo(number)})
	if err != nil {
		return err
	}
	files := e.Files
	if o := e.Outcome; o != nil {
		files = append(files, form.FilesIn(e.Fields, o.Values)...)
	}
	if len(files) == 0 {
		return parley.Refuse(parley.NoSuchFile, "message %s carries no file", terminal.Visible(number))
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return parley.Refuse(parley.InvalidArgument, "the folder %s cannot be made: %v", terminal.Visible(folder), terminal.Reason(err))
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return parley.Refuse(parley.InvalidArgument, "the folder %s cannot be used: %v", terminal.Visible(folder), terminal.Reason(err))
	}
	defer root.Close() //nolint:errcheck // the files in it are closed
	node := env.clientOf(client.Options{As: env.options.as})
	defer node.Close()
	var all []saved
	for i, f := range files {
		name, err := saveFile(ctx, node, root, e.MessageID, f, i)
		if err != nil {
			return err
		}
		all = append(all, saved{f, filepath.Join(folder, name)})
	}
	return env.print(all, func() string {
		lines := make([]string, len(all))
		for i, s := range all {
			lines[i] = "saved " + terminal.Visible(s.Path)
			if filepath.Base(s.Path) != s.Name {
				lines[i] += ", which its sender calls " + terminal.Quoted(s.Name)
			}
		}
		return strings.Join(lines, "\n")
	})
}

// saveFile saves one file, and returns the name that it has.
func saveFile(ctx context.Context, node *client.Client, root *os.Root, message capabilities.ID, f events.File, nth int) (string, error) {
	safe := safeName(f.Name, nth)
	for n := 1; ; n++ {
		name := safe
		if n > 1 {
			ext := filepath.Ext(safe)
			name = fmt.Sprintf("%s (%d)%s", strings.TrimSuffix(safe, ext), n, ext)
		}
		to, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) && n < 1000 {
			continue
		}
		if err != nil {
			return "", parley.Refuse(parley.InvalidArgument, "the file %s cannot be made: %v", terminal.Visible(name), terminal.Reason(err))
		}
		err = client.FilesOf(node).Fetch(ctx, client.ID(message.String()), f, to)
		if err = errors.Join(err, to.Close()); err != nil {
			return "", errors.Join(err, root.Remove(name))
		}
		return name, nil
	}
}

// maxSavedName bounds the name of a saved file, in letters, and maxSavedBytes in bytes: what file systems take, with a number.
const (
	maxSavedName  = 200
	maxSavedBytes = 240
)

// safeName returns a name for a file that its sender calls something: of one part, shown as it is, not hidden, and one that every
// system takes.
func safeName(name string, nth int) string {
	safe := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || parley.IsInvisible(r) || strings.ContainsRune(`/\:*?"<>|`, r) || r == unicode.ReplacementChar {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(name, "_"))
	safe = strings.TrimRight(strings.TrimSpace(safe), ". ")
	if trimmed := strings.TrimLeft(safe, "."); trimmed != safe {
		safe = "_" + trimmed
	}
	ext := filepath.Ext(safe)
	if len(ext) > 20 {
		ext = ""
	}
	stem := []rune(strings.TrimSuffix(safe, ext))
	for len(stem)+len([]rune(ext)) > maxSavedName || len(string(stem))+len(ext) > maxSavedBytes {
		stem = stem[:len(stem)-1]
	}
	safe = string(stem) + ext
	if safe == "" || safe == "_" {
		return fmt.Sprintf("file-%d", nth+1)
	}
	if first, _, _ := strings.Cut(strings.ToUpper(safe), "."); isReservedName(strings.TrimSpace(first)) {
		safe = "_" + safe
	}
	return safe
}

// isReservedName reports whether some system has a device of a name, in upper case.
func isReservedName(name string) bool {
	switch name {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	return len(name) == 4 && (strings.HasPrefix(name, "COM") || strings.HasPrefix(name, "LPT")) && name[3] >= '0' && name[3] <= '9'
}
