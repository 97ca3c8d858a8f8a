package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"parley/internal/regular"
)

// claudeSettings is what is read of a file of Claude Code's settings.
type claudeSettings struct {
	allow   []string // rules that allow calls
	sandbox bool     // commands may run in a sandbox, unasked
	notes   bool     // notes between sessions, or plans, are in a folder that it names, written unasked
	env     []string // names of variables that it gives to commands
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
			s := readClaudeSettings(text)
			if filepath.Dir(filepath.Dir(path)) != folder {
				s.env = nil // those of the person and of an administrator are theirs to set
			}
			all = append(all, s)
		}
	}
	return append(all, flaggedSettings(env)...)
}

// StartsPrograms reports whether a variable may have a program that only reads, or the shell, start another one: git takes programs from its
// configuration, and others from a file of options.
func StartsPrograms(name string) bool {
	if slices.Contains([]string{"PATH", "BASH_ENV", "ENV", "SHELL", "HOME", "XDG_CONFIG_HOME", "RIPGREP_CONFIG_PATH", "LESSOPEN"}, name) {
		return true
	}
	for _, harmless := range []string{"GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_OPTIONAL_LOCKS", "GIT_TERMINAL_PROMPT"} {
		if strings.HasPrefix(name, harmless) {
			return false
		}
	}
	return slices.ContainsFunc([]string{"GIT_", "LD_", "DYLD_", "CLAUDE_CODE_SHELL"}, func(begin string) bool { return strings.HasPrefix(name, begin) })
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
	s.allow, s.env = nil, nil
	return s
}

// readClaudeSettings reads settings as Claude Code does: after a byte order mark, members by their very names, the last of several, and
// each by itself, since it leaves out what is wrong and takes the rest. A repository could hide a member of its settings otherwise.
func readClaudeSettings(text []byte) claudeSettings {
	text = bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\ufeff")))
	if len(text) == 0 {
		return claudeSettings{}
	}
	var file, permissions, variables map[string]json.RawMessage
	if json.Unmarshal(text, &file) != nil {
		return claudeSettings{sandbox: true}
	}
	s := claudeSettings{sandbox: isSwitchedOn(file["sandbox"]), notes: isSet(file["autoMemoryDirectory"]) || isSet(file["plansDirectory"])}
	_ = json.Unmarshal(file["env"], &variables) // what is no object sets nothing
	s.env = slices.Sorted(maps.Keys(variables))
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
