package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"parley/internal/regular"
)

// claudeSettings is what is read of a file of Claude Code's settings.
type claudeSettings struct {
	allow   []string // rules that allow calls
	sandbox bool     // commands may run in a sandbox, unasked
	notes   bool     // notes between sessions, or plans, are in a folder that it names, written unasked
}

// settingsFor returns all settings for a folder. Of those that cannot be read nothing is known but that they may switch on a sandbox.
func settingsFor(folder string, env func(string) (string, bool)) (all []claudeSettings) {
	const managed = "/etc/claude-code"
	files := []string{
		filepath.Join(managed, "managed-settings.json"),
		filepath.Join(folder, ".claude", "settings.json"), filepath.Join(folder, ".claude", "settings.local.json"),
	}
	pieces, _ := filepath.Glob(filepath.Join(managed, "managed-settings.d", "*.json")) // the pattern is right
	files = append(files, pieces...)
	if own := ClaudeConfig(env); own != "" {
		files = append(files, filepath.Join(own, "settings.json"), filepath.Join(own, "remote-settings.json"))
	}
	for _, path := range files {
		text, err := regular.ReadLinked(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			all = append(all, claudeSettings{sandbox: true})
		default:
			all = append(all, readClaudeSettings(text))
		}
	}
	return append(all, flaggedSettings(env)...)
}

// settingsFlag has Claude Code take the settings of a file, or of a text in JSON.
const settingsFlag = "--settings"

// flaggedSettings returns what the command line of Claude Code has it take, as far as it can be read. Its rules are left out: calls that
// they allow are asked about, as with --allowedTools.
func flaggedSettings(env func(string) (string, bool)) (all []claudeSettings) {
	words, folder := claudeCommand(env)
	for i, word := range words {
		value, ok := strings.CutPrefix(word, settingsFlag+"=")
		switch {
		case ok:
		case word == settingsFlag && i+1 < len(words):
			value = words[i+1]
		default:
			continue
		}
		if strings.HasPrefix(strings.TrimSpace(value), "{") {
			all = append(all, readClaudeSettings([]byte(value)).withoutRules())
			continue
		}
		if !filepath.IsAbs(value) {
			value = filepath.Join(folder, value)
		}
		text, err := regular.ReadLinked(value)
		if err != nil {
			all = append(all, claudeSettings{sandbox: true})
			continue
		}
		all = append(all, readClaudeSettings(text).withoutRules())
	}
	return all
}

func (s claudeSettings) withoutRules() claudeSettings {
	s.allow = nil
	return s
}

// readClaudeSettings reads settings as Claude Code does: after a byte order mark, members by their very names, the last of several, and
// each by itself, since it leaves out what is wrong and takes the rest. A repository could hide a member of its settings otherwise.
func readClaudeSettings(text []byte) claudeSettings {
	text = bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\ufeff")))
	if len(text) == 0 {
		return claudeSettings{}
	}
	var file, permissions map[string]json.RawMessage
	if json.Unmarshal(text, &file) != nil {
		return claudeSettings{sandbox: true}
	}
	s := claudeSettings{sandbox: isSwitchedOn(file["sandbox"]), notes: isSet(file["autoMemoryDirectory"]) || isSet(file["plansDirectory"])}
	var rules []any
	if json.Unmarshal(file["permissions"], &permissions) != nil || json.Unmarshal(permissions["allow"], &rules) != nil {
		return s
	}
	for _, r := range rules {
		if rule, ok := r.(string); ok {
			s.allow = append(s.allow, rule)
		}
	}
	return s
}

func isSet(value json.RawMessage) bool { return len(value) > 0 && string(value) != "null" }

// isSwitchedOn reports whether an object may have a true member "enabled". Null is none.
func isSwitchedOn(object json.RawMessage) bool {
	var members map[string]json.RawMessage
	if len(object) > 0 && json.Unmarshal(object, &members) != nil {
		return true
	}
	switch string(bytes.TrimSpace(members["enabled"])) {
	case "", "null", "false":
		return false
	}
	return true
}

// allowedBySettings returns the permission rules that allow calls, from all settings for a folder.
func allowedBySettings(folder string, env func(string) (string, bool)) (rules []string) {
	for _, s := range settingsFor(folder, env) {
		rules = append(rules, s.allow...)
	}
	return rules
}
