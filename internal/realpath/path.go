package realpath

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// maxLinks bounds the links that are followed of one path.
const maxLinks = 64

// Of returns the file that an absolute path leads to, as the system would open it: a link is followed before "..". What is not
// there is as it was named, and so is what a link leads to that is not there. It returns the path cleaned if it goes in circles.
func Of(path string) string {
	volume := filepath.VolumeName(path)
	root := volume + string(filepath.Separator)
	parts := split(path[len(volume):])
	at, links := root, 0
	for len(parts) > 0 {
		part := parts[0]
		parts = parts[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, part)
		target, err := os.Readlink(next)
		if err != nil { // no link, or nothing there
			at = next
			continue
		}
		if links++; links > maxLinks {
			return filepath.Clean(path)
		}
		if filepath.IsAbs(target) {
			at = filepath.VolumeName(target) + string(filepath.Separator)
			target = target[len(filepath.VolumeName(target)):]
		}
		parts = append(split(target), parts...)
	}
	return at
}

func split(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == filepath.Separator || r == '/' })
}

// All returns all names of a file by which somebody else may know it: the path without its "..", and what each of the two leads
// to. They have slashes.
func All(path string) []string {
	clean := filepath.Clean(path)
	all := []string{filepath.ToSlash(clean)}
	for _, other := range []string{Of(clean), Of(path)} {
		if other = filepath.ToSlash(other); !slices.Contains(all, other) {
			all = append(all, other)
		}
	}
	return all
}

// FoldsCase reports whether the system takes upper and lower case for the same in the folder of a path, as far as can be seen: it
// finds the last part that is there under its name in the other case.
func FoldsCase(path string) bool {
	for at := filepath.Clean(path); ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		name := filepath.Base(at)
		other := swapCase(name)
		if err == nil && other != name {
			found, err := os.Stat(filepath.Join(filepath.Dir(at), other))
			return err == nil && os.SameFile(info, found)
		}
		if at == filepath.Dir(at) {
			return false
		}
	}
}

func swapCase(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsUpper(r) {
			return unicode.ToLower(r)
		}
		return unicode.ToUpper(r)
	}, name)
}
