package setup

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"parley"
	"parley/internal/regular"
)

// Bounds of the files of skills, commands and subagents that are looked at.
const (
	maxSkills = 2000
	maxDeep   = 6 // folders below that of all skills

	maxBelow = 20_000 // folders of the project, the nearest first
)

// claudePlaces returns the folders in which Claude Code may look for skills, commands and subagents: those of the project and of the
// folders above it and below, of the person and of an administrator. It reads one of a folder below once it works there.
func (s settings) claudePlaces() (folders []string) {
	s.Project = false
	folders = append(folders, filepath.Dir(s.claudeFiles().hooks), filepath.Join(s.Managed, ".claude"))
	for at := s.Folder; ; at = filepath.Dir(at) {
		folders = append(folders, filepath.Join(at, ".claude"))
		if at == filepath.Dir(at) {
			break
		}
	}
	return append(folders, claudeFolders(s.Folder)...)
}

// skillHooks returns hooks of others that can allow a call in the files of skills, commands and subagents. They take effect while the
// skill or the subagent is used.
func skillHooks(folders []string) (found []string) {
	var files []string
	for i, folder := range folders {
		if slices.Contains(folders[:i], folder) {
			continue
		}
		for _, name := range []string{"skills", "commands", "agents"} {
			files = markdownBelow(files, filepath.Join(folder, name), maxDeep)
		}
	}
	for _, path := range files {
		text, err := regular.ReadLinked(path)
		if err != nil {
			continue
		}
		for _, h := range frontMatterHooks(string(text)) {
			found = append(found, h+" in "+path)
		}
	}
	return found
}

// claudeFolders returns the folders with the settings of Claude Code in the folders below one, as far as maxBelow reaches.
func claudeFolders(below string) (found []string) {
	next := []string{below}
	for looked := 0; looked < len(next) && looked < maxBelow; looked++ {
		entries, err := os.ReadDir(next[looked])
		if err != nil {
			continue
		}
		for _, e := range entries {
			path := filepath.Join(next[looked], e.Name())
			switch {
			case e.Name() == ".claude": // it may be a link
				found = append(found, path)
			case e.IsDir() && e.Name() != ".git" && len(next) < maxBelow:
				next = append(next, path)
			}
		}
	}
	return found
}

// markdownBelow adds the Markdown files below a folder, which may be a link, as the folders in it may be.
func markdownBelow(files []string, folder string, deep int) []string {
	entries, err := os.ReadDir(folder)
	if err != nil || deep == 0 {
		return files
	}
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		isFolder := e.IsDir()
		if e.Type()&fs.ModeSymlink != 0 {
			info, err := os.Stat(path)
			isFolder = err == nil && info.IsDir()
		}
		switch {
		case len(files) >= maxSkills:
			return files
		case isFolder:
			files = markdownBelow(files, path, deep-1)
		case strings.EqualFold(filepath.Ext(path), ".md"):
			files = append(files, path)
		}
	}
	return files
}

// frontMatterHooks returns the hooks that can allow a call in what stands before a Markdown file's text, as words. It reads no YAML:
// it looks for the names of the events where they are keys, and for the first command behind each.
func frontMatterHooks(text string) (found []string) {
	text = strings.TrimPrefix(strings.ReplaceAll(text, "\r\n", "\n"), "\ufeff")
	if !strings.HasPrefix(text, "---") {
		return nil
	}
	matter, _, _ := strings.Cut(text[len("---"):], "\n---")
	if isUnclear(matter) {
		return []string{"front matter that cannot be read here, and may have hooks,"}
	}
	if !strings.Contains(matter, "hooks") {
		return nil
	}
	for _, event := range allowing {
		for rest, ok := behindKey(matter, event); ok; rest, ok = behindKey(rest, event) {
			found = append(found, firstCommand(rest)+" on "+event)
		}
	}
	return found
}

// isUnclear reports whether names of keys may be spelled so that they are not found: with escapes, and where there are hooks, with tabs
// or as explicit keys. Claude Code reads all of these.
func isUnclear(matter string) bool {
	for _, escape := range []string{`\x`, `\u`, `\U`} {
		if strings.Contains(matter, escape) {
			return true
		}
	}
	if !strings.Contains(matter, "hooks") {
		return false
	}
	for line := range strings.Lines(matter) {
		rest := strings.TrimLeft(line, " ")
		if strings.HasPrefix(rest, "\t") || strings.HasPrefix(rest, "? ") || strings.HasPrefix(rest, "?\t") {
			return true
		}
	}
	return false
}

// behindKey returns what is behind the first key of a name in a text of YAML: behind the name and a colon, where it is not in words.
func behindKey(text, name string) (rest string, ok bool) {
	for {
		before, after, found := strings.Cut(text, name)
		if !found {
			return "", false
		}
		text = after
		before = strings.TrimRight(before, `"' `)
		value, isKey := strings.CutPrefix(strings.TrimLeft(after, `"' `), ":")
		if isKey && (before == "" || strings.ContainsAny(before[len(before)-1:], "\n{,-?")) {
			return value, true
		}
	}
}

// scalar returns the scalar at the beginning of a text of YAML: what is in its quotes, else its first line.
func scalar(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line = strings.TrimSpace(line)
	if line != "" && (line[0] == '"' || line[0] == '\'') {
		for i := 1; i < len(line); i++ {
			switch {
			case line[i] == '\\' && line[0] == '"':
				i++
			case line[i] == line[0]:
				return line[1:i]
			}
		}
	}
	return line
}

// firstCommand shows what the first hook in a part of front matter runs.
func firstCommand(matter string) string {
	for _, name := range []string{"command", "url", "prompt"} {
		if value, ok := behindKey(matter, name); ok {
			return parley.Quoted(scalar(value), maxCommand)
		}
	}
	return "a hook"
}
