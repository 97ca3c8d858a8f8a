package resource

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"unicode"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// folder is a folder of the node, with what is below it.
//
// No use leads through a link: each folder on the way is looked at, opened, and compared with what was looked at. So who swaps a folder
// for a link in between is refused. None leads out of the folder, or into what makes a repository of git: there, a file that is
// written is a program that others run.
type folder struct {
	writing sync.Mutex // of all folders: a repository could be made of two halves at once
}

const maxListed = 1000 // entries

func (*folder) verbs() []Verb {
	return []Verb{
		{Name: "list", Words: "lists a folder", Takes: []Take{{"path", "text"}, {"after", "text"}}},
		{Name: "read", Words: "reads a part of a file", Takes: []Take{{"path", "text"}, {"offset", "number"}}, Needs: 1},
		{Name: "write", Words: "writes a file, in place of what was in it", Writes: true, Takes: []Take{{"path", "text"}, {"content", "content"}}, Needs: 2},
	}
}

// Describe implements Kind.
func (k *folder) Describe(_ Resource, f capabilities.Facet) []Verb { return permitted(f, k.verbs()...) }

// Narrow implements Kind.
func (*folder) Narrow(f capabilities.Facet) error { return f.CheckFor(capabilities.KindFolder) }

// Revoke implements Kind.
func (*folder) Revoke(Resource) error { return nil }

// CheckFolder returns the folder as it is named in the log. It refuses one that is not there, or is inside of a repository's own files, and
// to be written to, one with settings of tools.
func CheckFolder(name string, writes bool) (string, error) {
	if !filepath.IsAbs(name) {
		return "", parley.Refuse(parley.InvalidArgument, "the folder %s is no absolute path", parley.Quoted(name, 200))
	}
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return "", parley.Refuse(parley.NoSuchFile, "there is no folder %s", parley.Quoted(name, 200))
	}
	for _, part := range strings.Split(filepath.ToSlash(real), "/") {
		if part != "" && checkPart(part) != nil {
			return "", parley.Refuse(parley.InvalidArgument, "the folder %s is inside of a repository's own files", parley.Quoted(real, 200))
		}
	}
	if err := checkSettings(strings.Split(filepath.ToSlash(real), "/")); err != nil && writes {
		return "", parley.AsError(err).WithHint("give it with --read-only")
	}
	root, err := openFolder(real)
	if err != nil {
		return "", err
	}
	return real, root.Close()
}

// openFolder opens the folder of a resource, which is no link and no repository of its own.
func openFolder(name string) (*os.Root, error) {
	seen, err := os.Lstat(name)
	if err != nil || !seen.IsDir() {
		return nil, parley.Refuse(parley.NoSuchFile, "the folder is not there any more")
	}
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, parley.Refuse(parley.NoSuchFile, "the folder cannot be opened")
	}
	return sameFolder(root, seen)
}

// sameFolder closes and refuses a folder that is another than was seen, or a repository.
func sameFolder(opened *os.Root, seen fs.FileInfo) (*os.Root, error) {
	now, err := opened.Stat(".")
	if err == nil && !os.SameFile(seen, now) {
		err = parley.Refuse(parley.NotPermitted, "the folder was changed meanwhile")
	} else if err == nil {
		err = checkRepository(opened, "")
	}
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return opened, nil
}

// partsOf returns the names on a path below the folder; none for the folder itself.
func partsOf(p string) ([]string, error) {
	p = strings.TrimSuffix(p, "/")
	if p == "" || p == "." {
		return nil, nil
	}
	if len(p) > 1024 || path.IsAbs(p) || path.Clean(p) != p || strings.ContainsAny(p, "\\:") || strings.ContainsFunc(p, unicode.IsControl) {
		return nil, parley.Refuse(parley.InvalidArgument, "%s is no path below the folder", parley.Quoted(p, 200)).
			WithHint("as in docs/a.md: with / between names, without . and ..")
	}
	parts := strings.Split(p, "/")
	for _, part := range parts {
		if err := checkPart(part); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// checkPart refuses a name that leads up, or that some file system takes for that of a repository's own folder.
func checkPart(name string) error {
	bare := bareName(name)
	switch {
	case name == ".." || name == "." || bare == "":
		return parley.Refuse(parley.NotPermitted, "%s leads out of the folder", parley.Quoted(name, 80))
	case bare == ".git" || strings.HasPrefix(bare, "git~"):
		return parley.Refuse(parley.NotPermitted, "%s is a repository's own: nothing of it is read or written", parley.Quoted(name, 80))
	}
	return nil
}

// bareName returns a name as file systems that ignore the most of it take it.
func bareName(name string) string {
	bare := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) { // which some file systems ignore
			return -1
		}
		return r
	}, name)
	return strings.ToLower(strings.TrimRight(bare, " ."))
}

// settings are the files and folders that make somebody's tools run programs, when they only enter the folder or open a file in it.
var settings = []string{
	".envrc", ".autoenv", ".autoenv.zsh", ".mcp.json", ".claude", ".claude.json", ".codex", ".opencode", "opencode.json", "opencode.jsonc", ".cursor", ".gemini", ".qwen",
	".continue", ".roo", ".kilocode", ".kiro", ".amazonq", ".junie", ".trae", ".windsurf", ".factory", ".crush.json", "crush.json", ".aider.conf.yml",
	".vscode", ".idea", ".fleet", ".zed", ".helix", ".devcontainer", ".husky", ".gitmodules", ".gitattributes", ".nvim.lua", ".nvimrc", ".exrc", ".vimrc", ".dir-locals.el",
	"mise.toml", ".mise.toml", "mise.local.toml", ".mise.local.toml", ".mise",
	".hg", ".jj", ".sl", // whose settings have hooks and aliases, which a prompt of a shell runs
}

// checkSettings refuses a path on which somebody's tools would run what is written there.
func checkSettings(parts []string) error {
	for _, part := range parts {
		if slices.Contains(settings, bareName(part)) {
			return parley.Refuse(parley.NotPermitted, "%s has settings of tools, which may run what is written there: it is read, and not written", parley.Quoted(part, 80))
		}
	}
	return nil
}

// repository are the names that make a repository of a folder: it has HEAD, and one of the others.
var repository = []string{"HEAD", "objects", "refs", "commondir"}

// checkRepository refuses a folder that is a repository's own, or would be with one more name in it.
func checkRepository(in *os.Root, more string) error {
	has := func(name string) bool {
		if strings.EqualFold(name, more) {
			return true
		}
		_, err := in.Lstat(name)
		return !errors.Is(err, fs.ErrNotExist)
	}
	if more != "" && !slices.ContainsFunc(repository, func(n string) bool { return strings.EqualFold(n, more) }) {
		return nil
	}
	if has(repository[0]) && slices.ContainsFunc(repository[1:], has) {
		return parley.Refuse(parley.NotPermitted, "that would be a repository's own folder: nothing of it is read or written")
	}
	return nil
}

// at opens the folder at the end of a path. With makes, what is not there is made.
func at(root *os.Root, parts []string, makes bool) (*os.Root, error) {
	now := root
	for i, part := range parts {
		next, err := enter(now, part, makes)
		if i > 0 {
			_ = now.Close() // nothing was written by it
		}
		if err != nil {
			return nil, err
		}
		now = next
	}
	return now, nil
}

func enter(in *os.Root, name string, makes bool) (*os.Root, error) {
	seen, err := in.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) && makes {
		if err = checkRepository(in, name); err == nil {
			if err = in.Mkdir(name, 0o777); err == nil {
				seen, err = in.Lstat(name)
			}
		}
	}
	if err != nil {
		return nil, refused(err, name)
	}
	if !seen.IsDir() {
		return nil, noFile(name, seen)
	}
	next, err := in.OpenRoot(name)
	if err != nil {
		return nil, refused(err, name)
	}
	return sameFolder(next, seen)
}

// noFile refuses what is no file, or no folder, where one is wanted.
func noFile(name string, seen fs.FileInfo) error {
	if seen.Mode()&fs.ModeSymlink != 0 {
		return parley.Refuse(parley.NotPermitted, "%s is a link, which nothing leads through", parley.Quoted(name, 80))
	}
	return parley.Refuse(parley.InvalidArgument, "%s is a %s", parley.Quoted(name, 80), typeOf(seen.Mode()))
}

// otherNames refuses a file with other names: it may be one of outside of the folder, and what reads it there may not expect a change of it.
func otherNames(name string) error {
	return parley.Refuse(parley.NotPermitted, "%s has other names, which may be outside of the folder (a hard link)", parley.Quoted(name, 80))
}

func typeOf(m fs.FileMode) string {
	switch {
	case m.IsRegular():
		return "file"
	case m.IsDir():
		return "folder"
	case m&fs.ModeSymlink != 0:
		return "link"
	}
	return "device"
}

// refused returns an error of the file system as one for the holder, without the path of the folder itself.
func refused(err error, name string) error {
	switch {
	case parley.CodeOf(err) != parley.Internal:
		return err
	case errors.Is(err, fs.ErrNotExist):
		return parley.Refuse(parley.NoSuchFile, "there is no %s", parley.Quoted(name, 80))
	case errors.Is(err, fs.ErrPermission):
		return parley.Refuse(parley.NotPermitted, "the node may not open %s", parley.Quoted(name, 80))
	case errors.Is(err, syscall.ENOSPC):
		return parley.Refuse(parley.ReadOnly, "the disk is full")
	}
	return parley.Refuse(parley.NotPermitted, "%s cannot be opened", parley.Quoted(name, 80))
}

// Read implements Kind.
func (k *folder) Read(_ Resource, verb string, in Input) (Call, error) {
	v, err := find(k.verbs(), verb, in)
	if err != nil {
		return Call{}, err
	}
	name, err := textIn(in, "path")
	if err != nil {
		return Call{}, err
	}
	parts, err := partsOf(name)
	if err != nil {
		return Call{}, err
	}
	if len(parts) == 0 && verb != "list" {
		return Call{}, parley.Refuse(parley.InvalidArgument, "%s which file? give its path", verb)
	}
	c := Call{Action: capabilities.Action{Verb: verb, Writes: v.Writes, Path: strings.Join(parts, "/")}, Input: in}
	c.Words = strings.TrimSuffix(verb+" "+c.Action.Path, " ")
	if verb == "write" {
		if err := checkSettings(parts); err != nil {
			return Call{}, err
		}
		content, err := contentIn(in, "content")
		if err != nil {
			return Call{}, err
		}
		if len(content) > maxPiece {
			return Call{}, parley.Refuse(parley.TooLarge, "a file is written with %d KiB at most", maxPiece>>10)
		}
		c.Words += fmt.Sprintf(" (%d bytes)", len(content))
	}
	if _, err := numberIn(in, "offset"); err != nil {
		return Call{}, err
	}
	_, err = textIn(in, "after")
	return c, err
}

// Invoke implements Kind.
func (k *folder) Invoke(_ context.Context, r Resource, c Call, _ capabilities.Facet) (capabilities.Value, error) {
	parts, err := partsOf(c.Action.Path)
	if err != nil {
		return capabilities.Value{}, err
	}
	root, err := openFolder(r.Made.Folder)
	if err != nil {
		return capabilities.Value{}, err
	}
	defer root.Close()
	switch c.Action.Verb {
	case "list":
		return list(root, parts, c.Input)
	case "read":
		return readIn(root, parts, c.Input)
	}
	k.writing.Lock()
	defer k.writing.Unlock()
	return writeIn(root, parts, c.Input)
}

func list(root *os.Root, parts []string, in Input) (capabilities.Value, error) {
	dir, err := at(root, parts, false)
	if err != nil {
		return capabilities.Value{}, err
	}
	defer dir.Close()
	d, err := dir.Open(".")
	if err != nil {
		return capabilities.Value{}, refused(err, "the folder")
	}
	defer d.Close()
	names, err := d.Readdirnames(100 * maxListed)
	if err != nil && err != io.EOF {
		return capabilities.Value{}, refused(err, "the folder")
	}
	slices.Sort(names)
	after, _ := textIn(in, "after")
	entries, more := []capabilities.Value{}, false
	for _, name := range names {
		if name <= after || checkPart(name) != nil || !isShown(name) {
			continue
		}
		seen, err := dir.Lstat(name)
		if err != nil {
			continue // it is gone
		}
		if len(entries) == maxListed {
			more = true
			break
		}
		entry := Input{"name": capabilities.String(name), "type": capabilities.String(typeOf(seen.Mode()))}
		if seen.Mode().IsRegular() {
			entry["size"] = capabilities.Int(seen.Size())
		}
		entries = append(entries, capabilities.Record(entry))
	}
	return capabilities.Record(Input{"entries": capabilities.List(entries...), "more": capabilities.Bool(more)}), nil
}

// isShown reports whether a name can be part of a path here.
func isShown(name string) bool {
	parts, err := partsOf(name)
	return err == nil && len(parts) == 1 && len(name) <= 255
}

func readIn(root *os.Root, parts []string, in Input) (capabilities.Value, error) {
	last := len(parts) - 1
	dir, err := at(root, parts[:last], false)
	if err != nil {
		return capabilities.Value{}, err
	}
	if dir != root {
		defer dir.Close()
	}
	name := parts[last]
	seen, err := dir.Lstat(name)
	if err != nil {
		return capabilities.Value{}, refused(err, name)
	}
	if !seen.Mode().IsRegular() {
		return capabilities.Value{}, noFile(name, seen)
	}
	if hasOtherNames(seen) {
		return capabilities.Value{}, otherNames(name)
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe that it was swapped for would block
	if err != nil {
		return capabilities.Value{}, refused(err, name)
	}
	defer f.Close()
	if now, err := f.Stat(); err != nil || !os.SameFile(seen, now) {
		return capabilities.Value{}, parley.Refuse(parley.NotPermitted, "%s was changed meanwhile", parley.Quoted(name, 80))
	}
	offset, err := numberIn(in, "offset")
	if err != nil {
		return capabilities.Value{}, err
	}
	data := make([]byte, maxPiece)
	n, err := f.ReadAt(data, offset)
	if err != nil && err != io.EOF {
		return capabilities.Value{}, refused(err, name)
	}
	return piece(data[:n], offset, seen.Size()), nil
}

// piece returns a part of a file as a result.
func piece(data []byte, offset, size int64) capabilities.Value {
	if offset+int64(len(data)) < size {
		if cut := whole(data); len(cut) > 0 {
			data = cut
		}
	}
	result := Input{"offset": capabilities.Int(offset), "size": capabilities.Int(size), "more": capabilities.Bool(offset+int64(len(data)) < size)}
	addContent(result, data)
	return capabilities.Record(result)
}

func writeIn(root *os.Root, parts []string, in Input) (_ capabilities.Value, err error) {
	last := len(parts) - 1
	dir, err := at(root, parts[:last], true)
	if err != nil {
		return capabilities.Value{}, err
	}
	if dir != root {
		defer dir.Close()
	}
	name := parts[last]
	mode := fs.FileMode(0o666)
	switch seen, err := dir.Lstat(name); {
	case err == nil && !seen.Mode().IsRegular():
		return capabilities.Value{}, noFile(name, seen)
	case err == nil && hasOtherNames(seen):
		return capabilities.Value{}, otherNames(name)
	case err == nil:
		mode = seen.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return capabilities.Value{}, refused(err, name)
	}
	if err := checkRepository(dir, name); err != nil {
		return capabilities.Value{}, err
	}
	content, err := contentIn(in, "content")
	if err != nil {
		return capabilities.Value{}, err
	}
	part := ".parley-" + rand.Text()
	f, err := dir.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return capabilities.Value{}, refused(err, name)
	}
	defer func() {
		if err != nil {
			_ = dir.Remove(part) // the error is what went wrong before
		}
	}()
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = dir.Rename(part, name) // which replaces a link, and does not go through it
	}
	if err != nil {
		return capabilities.Value{}, refused(err, name)
	}
	return capabilities.Record(Input{"size": capabilities.Int(int64(len(content)))}), nil
}

// file is a file by its content, which never changes.
type file struct{}

func (file) verbs() []Verb {
	return []Verb{{Name: "read", Words: "reads a part of the file", Takes: []Take{{"offset", "number"}}}}
}

// Describe implements Kind.
func (k file) Describe(_ Resource, f capabilities.Facet) []Verb { return permitted(f, k.verbs()...) }

// Narrow implements Kind.
func (file) Narrow(f capabilities.Facet) error { return f.CheckFor(capabilities.KindFile) }

// Revoke implements Kind. The content goes when nothing refers to it any more.
func (file) Revoke(Resource) error { return nil }

// Read implements Kind.
func (k file) Read(r Resource, verb string, in Input) (Call, error) {
	if _, err := find(k.verbs(), verb, in); err != nil {
		return Call{}, err
	}
	_, err := numberIn(in, "offset")
	return Call{Action: capabilities.Action{Verb: verb}, Words: "read " + nameOf(r.Made.File), Input: in}, err
}

func nameOf(f *events.File) string { return f.Name }

// Invoke implements Kind.
func (file) Invoke(ctx context.Context, r Resource, c Call, _ capabilities.Facet) (capabilities.Value, error) {
	offset, err := numberIn(c.Input, "offset")
	if err != nil {
		return capabilities.Value{}, err
	}
	data, size, err := r.Content(ctx, offset)
	if err != nil {
		return capabilities.Value{}, err
	}
	return piece(data[:min(len(data), maxPiece)], offset, size), nil
}
