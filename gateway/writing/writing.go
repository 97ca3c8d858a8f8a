package writing

import (
	"path/filepath"
	"strings"

	"parley/gateway/api"
	"parley/gateway/call"
	"parley/internal/realpath"
	"parley/mailbox/lease"
)

// Of returns what a call of a tool would write; nil for a call that writes nothing, as far as its input says. The folder is the one that it
// is made in, home that of whoever makes it; "" for one that is not known.
func Of(tool string, input []byte, folder, home string) *api.Writes {
	files, more := lease.Writes(tool, input, folder)
	touched := call.Touches(tool, string(input), filepath.ToSlash(folder))
	w := &api.Writes{
		Files: names(append(files, touched.Files...), home), Trees: names(touched.Trees, home), Maybe: names(touched.Maybe, home), More: more,
	}
	if len(w.Files)+len(w.Trees)+len(w.Maybe) == 0 {
		return nil
	}
	return w
}

// names returns all names of paths. A relative one is of no known folder, and is left out. Links are followed up to the first part
// with a wildcard.
func names(paths []string, home string) (all []string) {
	for _, path := range paths {
		if below, ok := strings.CutPrefix(path, "~/"); ok && home != "" {
			path = filepath.ToSlash(home) + "/" + below
		}
		if !filepath.IsAbs(filepath.FromSlash(path)) {
			continue
		}
		at, rest := lease.Pattern(path).Cut()
		if !strings.ContainsAny(path, "*?") {
			at, rest = path, ""
		}
		for _, name := range realpath.All(filepath.FromSlash(at)) {
			if rest != "" {
				name = strings.TrimSuffix(name, "/") + "/" + rest
			}
			all = append(all, name)
		}
	}
	return all
}
