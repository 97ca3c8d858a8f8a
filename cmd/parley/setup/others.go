package setup

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
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
	enabledBy := map[string]string{}
	for _, from := range sources {
		if onlyManaged && !from.managed {
			continue // hooks of others do not run
		}
		for _, name := range from.doc.names("enabledPlugins") {
			if _, set := enabled[name]; !set {
				enabled[name], enabledBy[name] = string(from.doc.get("enabledPlugins", name)) == "true", from.path
			}
		}
		found = append(found, from.doc.others(s.agent.Name, from.path, allowing...)...)
	}
	plugins, missing := s.plugins(enabled)
	for _, name := range missing {
		found = append(found, fmt.Sprintf("those of the plugin %s that %s enables, which is not installed, so that it cannot be looked at", parley.Quoted(name, maxCommand), enabledBy[name]))
	}
	places := s.claudePlaces()
	if !onlyManaged {
		plugins = append(plugins, amongSkills(places)...)
	}
	found = append(found, s.pluginHooks(plugins)...)
	if !onlyManaged {
		found = append(found, skillHooks(slices.Concat(plugins, places))...)
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

// amongSkills returns the folders of plugins that lie among skills, from which Claude Code takes them without anybody enabling them.
func amongSkills(places []string) (folders []string) {
	for _, place := range places {
		skills := filepath.Join(place, "skills")
		entries, _ := os.ReadDir(skills) // without any there is nothing to find
		for _, e := range entries {
			folder := filepath.Join(skills, e.Name())
			if _, err := os.Stat(filepath.Join(folder, manifestFolder)); err == nil {
				folders = append(folders, folder)
			}
		}
	}
	return folders
}

// manifestFolder is the folder of a plugin that has its manifest.
const manifestFolder = ".claude-plugin"

// plugins returns the folders of the plugins that are enabled, where Claude Code has installed them, and the names of those that it has
// not: it takes one of a marketplace that is a folder from there, as a repository's settings can have it.
func (s settings) plugins(enabled map[string]bool) (folders, missing []string) {
	s.Project = false
	var list struct {
		Plugins map[string][]struct {
			Path    string `json:"installPath"`
			Project string `json:"projectPath"`
		} `json:"plugins"`
	}
	text, err := regular.ReadLinked(filepath.Join(filepath.Dir(s.claudeFiles().hooks), "plugins", "installed_plugins.json"))
	if err == nil {
		_ = json.Unmarshal(text, &list) // what is no such list has none installed
	}
	for _, name := range slices.Sorted(maps.Keys(enabled)) {
		if !enabled[name] || strings.HasSuffix(name, "@skills-dir") { // which are among the skills
			continue
		}
		found := len(folders)
		for _, p := range list.Plugins[name] {
			if p.Path != "" && (p.Project == "" || sameFolder(p.Project, s.Folder)) {
				folders = append(folders, p.Path)
			}
		}
		if len(folders) == found {
			missing = append(missing, name)
		}
	}
	slices.Sort(folders)
	return slices.Compact(folders), missing
}

// pluginHooks returns such hooks of plugins, as far as they can be read. A plugin has hooks in hooks/hooks.json, and in what its
// manifest names or holds.
func (s settings) pluginHooks(plugins []string) (found []string) {
	var files []string
	for _, folder := range plugins {
		manifest := filepath.Join(folder, manifestFolder, "plugin.json")
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

// helpers are the members of settings that name a program which Claude Code runs without a question, or have it start the MCP servers of the
// project's .mcp.json.
var helpers = []string{
	"apiKeyHelper", "awsAuthRefresh", "awsCredentialExport", "enableAllProjectMcpServers", "enabledMcpjsonServers", "fileSuggestion", "gcpAuthRefresh",
	"otelHeadersHelper", "proxyAuthHelper", "statusLine", "subagentStatusLine",
}

// startedByProject returns what comes with the project of a folder and has an agent run programs without a question, as words.
func startedByProject(agent, folder string, sources []source) (found []string) {
	for _, from := range sources {
		if from.flag != " --project" {
			continue
		}
		for _, name := range helpers {
			if raw := string(from.doc.get(name)); raw != "" && raw != "null" && raw != "false" {
				found = append(found, name+" in "+from.path)
			}
		}
		for _, event := range from.doc.names("hooks") {
			if !slices.Contains(allowing, event) && len(from.doc.others(agent, from.path, event)) > 0 {
				found = append(found, "hooks on "+parley.Quoted(event, maxCommand)+" in "+from.path)
			}
		}
	}
	for _, plugin := range amongSkills([]string{filepath.Join(folder, ".claude")}) {
		found = append(found, "the plugin in "+plugin)
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
