package setup

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"parley"
	"parley/cmd/parley/hook"
	"parley/internal/regular"
)

const (
	maxOthers  = 8   // hooks of others that are shown
	maxCommand = 120 // bytes of each
)

// othersHooks returns the hooks of others that can allow a call of Claude Code, as words with the file of each: those in
// settings that take effect, those of plugins, and those in the files of skills, commands and subagents. In the mode default Parley's hook on PreToolUse leaves most calls to
// Claude Code, and a hook of others that allows one there has nobody asked. In any other mode Parley's own asks all the same.
func (s settings) othersHooks(sources []source) (found []string) {
	onlyManaged := slices.ContainsFunc(sources, func(from source) bool { return from.managed && string(from.doc.get("allowManagedHooksOnly")) == "true" })
	enabled := map[string]bool{} // by the strongest file that has the plugin
	for _, from := range sources {
		if onlyManaged && !from.managed {
			continue // hooks of others do not run
		}
		for _, name := range from.doc.names("enabledPlugins") {
			if _, set := enabled[name]; !set {
				enabled[name] = string(from.doc.get("enabledPlugins", name)) == "true"
			}
		}
		found = append(found, from.doc.others(s.agent.Name, from.path, allowing...)...)
	}
	plugins := s.plugins(enabled)
	found = append(found, s.pluginHooks(plugins)...)
	if !onlyManaged {
		found = append(found, s.skillHooks(plugins)...)
	}
	if more := len(found) - maxOthers; more > 0 {
		found = append(found[:maxOthers], fmt.Sprintf("%d more", more))
	}
	return found
}

// allowing are the events on which a hook of Claude Code can allow a call.
var allowing = []string{hook.PreToolUse, hook.PermissionRequest}

// others returns the hooks of others on events in a file.
func (d *document) others(agent, path string, events ...string) (found []string) {
	for _, event := range events {
		for i := range max(d.count("hooks", event), 0) {
			for j := range max(d.count("hooks", event, i, "hooks"), 0) {
				if raw := d.get("hooks", event, i, "hooks", j); !isOwnHook(raw, agent) {
					found = append(found, fmt.Sprintf("%s on %s in %s", handlerWords(raw), event, path))
				}
			}
		}
	}
	return found
}

// handlerWords shows what a hook runs: its command, or what its type has in place of one.
func handlerWords(raw json.RawMessage) string {
	var h struct{ Type, Command, URL, Prompt, Server, Tool string }
	_ = json.Unmarshal(raw, &h) // what is not as it should be is shown as far as it is
	for _, text := range []string{h.Command, h.URL, h.Prompt, strings.TrimSpace(h.Server + " " + h.Tool)} {
		if text != "" {
			return parley.Quoted(text, maxCommand)
		}
	}
	return "a hook of the type " + parley.Quoted(h.Type, maxCommand)
}

// plugins returns the folders of the plugins that are enabled, where Claude Code has installed them.
func (s settings) plugins(enabled map[string]bool) (folders []string) {
	s.Project = false
	var list struct {
		Plugins map[string][]struct {
			Path    string `json:"installPath"`
			Project string `json:"projectPath"`
		} `json:"plugins"`
	}
	text, err := regular.ReadLinked(filepath.Join(filepath.Dir(s.claudeFiles().hooks), "plugins", "installed_plugins.json"))
	if err != nil || json.Unmarshal(text, &list) != nil {
		return nil // none is installed
	}
	for name, installed := range list.Plugins {
		for _, p := range installed {
			if enabled[name] && p.Path != "" && (p.Project == "" || sameFolder(p.Project, s.Folder)) {
				folders = append(folders, p.Path)
			}
		}
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}

// pluginHooks returns such hooks of plugins, as far as they can be read. A plugin has hooks in hooks/hooks.json, and in what its
// manifest names or holds.
func (s settings) pluginHooks(plugins []string) (found []string) {
	var files []string
	for _, folder := range plugins {
		manifest := filepath.Join(folder, ".claude-plugin", "plugin.json")
		files = append(files, manifest, filepath.Join(folder, "hooks", "hooks.json"))
		if d, ok := readPlugin(manifest); ok {
			for _, more := range hookFiles(d.get("hooks")) {
				files = append(files, filepath.Join(folder, more))
			}
		}
	}
	slices.Sort(files)
	for _, path := range slices.Compact(files) {
		if d, ok := readPlugin(path); ok {
			found = append(found, d.others(s.agent.Name, path, allowing...)...)
		}
	}
	return found
}

func readPlugin(path string) (*document, bool) {
	text, err := regular.ReadLinked(path)
	if err != nil {
		return nil, false
	}
	return readDocument(text)
}

// hookFiles returns the files with hooks that a plugin's manifest names: one, or several.
func hookFiles(raw json.RawMessage) (files []string) {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return []string{one}
	}
	_ = json.Unmarshal(raw, &files) // an object holds the hooks themselves
	return files
}
