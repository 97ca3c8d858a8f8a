package lease

import (
	"encoding/json"
	"slices"
	"strings"
)

// MaxWrites bounds the files of one call that are looked at.
const MaxWrites = 1024

// Writes returns the files that a call of a coding agent's tool writes, as absolute paths with slashes: of the tools that edit
// files, and of a patch each file. They are not cleaned: a link comes before "..". A relative path is of a folder. It returns none for a call of any other tool, and for a
// command: nobody knows what a command writes. More reports that a call has more than MaxWrites.
func Writes(tool string, input []byte, folder string) (files []string, more bool) {
	keys := members(tool)
	if keys == nil {
		return nil, false
	}
	var in map[string]json.RawMessage
	if json.Unmarshal(input, &in) != nil {
		return nil, false
	}
	add := func(file string) {
		if file == "" {
			return
		}
		if hasDrive(file) || hasDrive(folder) {
			file = strings.ReplaceAll(file, `\`, "/")
		}
		if !isAbsolute(file) {
			file = strings.ReplaceAll(folder, `\`, "/") + "/" + file
		}
		switch {
		case slices.Contains(files, file):
		case len(files) == MaxWrites:
			more = true
		default:
			files = append(files, file)
		}
	}
	for _, key := range keys {
		var text string
		if json.Unmarshal(in[key], &text) != nil {
			continue
		}
		if !slices.Contains(patches, key) {
			add(text)
			continue
		}
		for _, file := range Patched(text) {
			add(file)
		}
	}
	return files, more
}

// members returns the members of a tool's input with a path or a patch; none for a tool that edits no files.
func members(tool string) []string {
	switch strings.ToLower(tool) {
	case "edit", "write": // Claude Code, Qwen, OpenCode
		return []string{"file_path", "filePath", "path"}
	case "multiedit", "write_file", "replace": // Claude Code, Gemini, Qwen
		return []string{"file_path", "filePath"}
	case "notebookedit":
		return []string{"notebook_path"}
	case "apply_patch", "patch": // Codex, OpenCode
		return patches
	}
	return nil
}

// patches are the members that have a patch.
var patches = []string{"command", "input", "patch", "patchText"}

// Patched returns the paths that a patch names: of each file that it adds, changes, deletes or moves, and where it moves that.
func Patched(patch string) (files []string) {
	for line := range strings.Lines(patch) {
		for _, head := range heads {
			if file, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), head); ok {
				files = append(files, strings.TrimSpace(file))
			}
		}
	}
	return files
}

// heads are the beginnings of the lines of a patch that name a file.
var heads = []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "}
