package rule

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/bmatcuk/doublestar/v4"

	"parley"
	"parley/events"
)

// fileTool lists the keys in the input of a tool: the one that names its file, and others. A rule for a file ignores
// the others.
type fileTool struct {
	path string
	rest []string
}

// fileTools are the tools of coding agents that read or change one file.
func fileTools() map[string]fileTool {
	return map[string]fileTool{
		"Read":         {"file_path", []string{"offset", "limit", "pages"}},
		"Write":        {"file_path", []string{"content"}},
		"Edit":         {"file_path", []string{"old_string", "new_string", "replace_all"}},
		"MultiEdit":    {"file_path", []string{"edits"}},
		"NotebookEdit": {"notebook_path", []string{"new_source", "cell_id", "cell_type", "edit_mode"}},
	}
}

// EditTool is the name of an edit by an agent of the Agent Client Protocol. Its input has the diffs as content.
const EditTool = "edit"

// ReadTool is the name of a reading by an agent of the Agent Client Protocol. Its input has the file in the agent's own
// input, or as a location.
const ReadTool = "read"

// filesOf returns the files that a call is about, as absolute paths. It returns none if the call may be about more.
func filesOf(c *parley.Permission) []string {
	var input map[string]json.RawMessage
	if json.Unmarshal([]byte(c.Input), &input) != nil {
		return nil
	}
	var named []string
	switch tool, ok := fileTools()[c.Tool]; {
	case c.Tool == EditTool:
		named = editedFiles(input)
	case c.Tool == ReadTool:
		named = readFiles(input)
	case ok:
		named = namedFile(input, tool)
	}
	files := make([]string, len(named))
	for i, name := range named {
		whole, ok := absolute(name, c.Folder)
		if !ok {
			return nil
		}
		files[i] = whole
	}
	return files
}

// namedFile returns the one file that an input names.
func namedFile(input map[string]json.RawMessage, tool fileTool) []string {
	for key := range input {
		if key != tool.path && !slices.Contains(tool.rest, key) {
			return nil
		}
	}
	if name, ok := textOf(input[tool.path]); ok {
		return []string{name}
	}
	return nil
}

// editedFiles returns the files of an edit. It returns none unless the content has only diffs and the raw input names
// no other file.
func editedFiles(input map[string]json.RawMessage) []string {
	var content []struct{ Type, Path string }
	if json.Unmarshal(input["content"], &content) != nil {
		return nil
	}
	var files []string
	for _, c := range content {
		if c.Type != "diff" {
			return nil
		}
		files = append(files, c.Path)
	}
	for key, value := range input {
		switch key {
		case "title", "content", "description":
		case "rawInput":
			if !namesOnly(value, files) {
				return nil
			}
		default:
			return nil
		}
	}
	return files
}

// readFiles returns the files of a reading: the one that the agent's own input names, or without that the locations. It
// returns none if the input has anything else.
func readFiles(input map[string]json.RawMessage) []string {
	named := input // a call without a title has its own input alone
	if raw, given := input["rawInput"]; given {
		named = nil
		for key := range input {
			if key != "title" && key != "rawInput" {
				return nil
			}
		}
		if json.Unmarshal(raw, &named) != nil {
			return nil
		}
	} else if input["locations"] != nil {
		return locatedFiles(input)
	}
	var files []string
	for key, value := range named {
		switch key {
		case "file_path", "path", "abs_path", "absolute_path":
			name, ok := textOf(value)
			if !ok {
				return nil
			}
			files = append(files, name)
		case "offset", "limit", "line", "pages":
		default:
			return nil
		}
	}
	if len(files) != 1 {
		return nil
	}
	return files
}

// locatedFiles returns the files of a reading that has locations, and a title at most.
func locatedFiles(input map[string]json.RawMessage) []string {
	for key := range input {
		if key != "title" && key != "locations" {
			return nil
		}
	}
	var locations []struct{ Path string }
	if json.Unmarshal(input["locations"], &locations) != nil {
		return nil
	}
	files := make([]string, len(locations))
	for i, l := range locations {
		files[i] = l.Path
	}
	return files
}

// namesOnly reports whether the raw input of an edit names no other files.
func namesOnly(raw json.RawMessage, files []string) bool {
	var input map[string]json.RawMessage
	if json.Unmarshal(raw, &input) != nil {
		return false
	}
	for key, value := range input {
		switch key {
		case "file_path", "path", "abs_path":
			if name, ok := textOf(value); !ok || !slices.Contains(files, name) {
				return false
			}
		case "content", "old_string", "new_string", "replace_all", "edits":
		default:
			return false
		}
	}
	return true
}

// absolute returns a path as an absolute one. It refuses a path with . or .. in it, and a relative path without a
// folder.
func absolute(name, folder string) (string, bool) {
	if name == "" || path.Clean(name) != name || strings.HasPrefix(name, "..") {
		return "", false
	}
	if path.IsAbs(name) {
		return name, true
	}
	return path.Join(folder, name), folder != ""
}

// within returns the path of a file relative to a folder.
func within(folder, file string) (string, bool) {
	if folder == "" || folder == "/" {
		return "", false
	}
	rel, ok := strings.CutPrefix(file, folder+"/")
	return rel, ok && isPlainPath(rel)
}

// isPlainPath reports whether a relative path has only letters, digits and marks that no file system maps to others.
func isPlainPath(rel string) bool {
	for part := range strings.SplitSeq(rel, "/") {
		if part == "" || part == "." || part == ".." || strings.HasSuffix(part, ".") || strings.HasSuffix(part, " ") {
			return false
		}
		for _, r := range part {
			if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._-+@,=()[] #&'!$%", r) {
				return false
			}
		}
	}
	return true
}

// isHidden reports whether a path has a part that begins with a dot: .git, .env and the like.
func isHidden(rel string) bool {
	return strings.HasPrefix(rel, ".") || strings.Contains(rel, "/.")
}

// coversFile reports whether a coverage is for a file.
func coversFile(c *events.Coverage, file string) bool {
	rel, ok := within(c.Folder, file)
	if !ok {
		return false
	}
	if c.Kind == events.CoversFile {
		return rel == c.File
	}
	matched, err := doublestar.Match(c.Glob, rel)
	return err == nil && matched && !isHidden(rel)
}

// mayAllow reports whether a rule of a coverage may allow a tool to use a file: see isOfRepository.
func mayAllow(c *events.Coverage, tool, file string) bool {
	rel, ok := within(c.Folder, file)
	return ok && !(writes(tool) && isOfRepository(rel))
}

// fileOffers returns the coverages to offer for calls of a tool about a file: the file, files with its extension beside and
// below it, all files there, and the same for the whole folder.
func fileOffers(folder, tool, file string) []events.Coverage {
	rel, ok := within(folder, file)
	if !ok || writes(tool) && isOfRepository(rel) {
		return nil
	}
	offers := []events.Coverage{{Kind: events.CoversFile, Folder: folder, File: rel}}
	if isHidden(rel) {
		return offers
	}
	dir, base := path.Split(rel)
	ext := path.Ext(base)
	add := func(dir string) {
		if ext != "" && ext != "." && ext != base {
			offers = append(offers, events.Coverage{Kind: events.CoversFiles, Folder: folder, Glob: escaped(dir) + "**/*" + escaped(ext)})
		}
		offers = append(offers, events.Coverage{Kind: events.CoversFiles, Folder: folder, Glob: escaped(dir) + "**"})
	}
	add(dir)
	if dir != "" {
		add("")
	}
	return offers
}

// escaped returns a glob that matches a text exactly.
func escaped(text string) string {
	var b strings.Builder
	for _, r := range text {
		if strings.ContainsRune(`*?[]{}\`, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
