package hook

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parley/internal/regular"
)

// unaskedByClaudeCode says why Claude Code might make a call without its prompt, in a terminal in the mode default, so that
// PermissionRequest would not be called for it; "" where nothing says so. Versions 2.1.290 and 2.1.332 do so for four reasons beside the
// settings' rules: a sandbox, in which commands run unasked; a command that only reads, as "git status", which runs another program where
// a variable says so; a skill or a command that has brought rules of its own, for the rest of the turn; and some files, among them those of
// a folder that the settings name. Each can come with a repository.
func unaskedByClaudeCode(call toolCall, folder string, env func(string) (string, bool)) string {
	settings := settingsFor(folder, env)
	switch {
	case entry(env) != "cli" || call.mode != "default" || !isShown(call.tool) || call.tool == planTool:
		return ""
	case slices.ContainsFunc(allowedBySettings(folder, env), func(entry string) bool { return allowsCall(entry, call) }):
		return ""
	case slices.ContainsFunc(settings, func(s claudeSettings) bool { return s.sandbox }):
		return "the settings have Claude Code run commands in a sandbox without a question"
	case call.tool == "Bash" && setsPrograms(settings) != "":
		return "the project's settings set " + setsPrograms(settings) + ", by which a command that only reads may run another program without a question"
	case writesFile(call.tool) && slices.ContainsFunc(settings, func(s claudeSettings) bool { return s.notes }):
		return "the settings name a folder in which Claude Code writes its notes or plans without a question"
	case writesFile(call.tool) && !isPlainFile(call, folder, env):
		return "Claude Code writes some files outside of the folder, and some in .claude, without a question"
	}
	return broughtRules(call)
}

// setsPrograms returns a variable of settings by which commands may run other programs, "" without one.
func setsPrograms(settings []claudeSettings) string {
	for _, s := range settings {
		if i := slices.IndexFunc(s.env, StartsPrograms); i >= 0 {
			return s.env[i]
		}
	}
	return ""
}

func writesFile(tool string) bool { return tool == "Write" || tool == "Edit" || tool == "NotebookEdit" }

// isPlainFile reports whether a call writes a file in the folder that the agent works in, outside of .claude: Claude Code asks about those.
// Its own notes between sessions are Markdown elsewhere, what starts a preview is a file in .claude, and it has a folder for scratch files
// among the temporary ones. Those may be in the folder too, if that is the one for temporary files, or has Claude Code's own.
func isPlainFile(call toolCall, folder string, env func(string) (string, bool)) bool {
	path, ok := textMember(call.input, "file_path")
	if !ok {
		path, ok = textMember(call.input, "notebook_path")
	}
	if !ok || !filepath.IsAbs(path) {
		return false
	}
	real, err := resolve(path)
	if err != nil {
		return false
	}
	within, isIn := below(folder, real)
	if !isIn || slices.ContainsFunc(within, func(part string) bool { return strings.EqualFold(part, ".claude") }) {
		return false
	}
	if own := ClaudeConfig(env); own != "" {
		if _, isOwn := below(own, real); isOwn {
			return false
		}
	}
	temporary := []string{"/tmp", os.TempDir()}
	for _, name := range []string{"TMPDIR", "CLAUDE_CODE_TMPDIR"} {
		if set, ok := env(name); ok && filepath.IsAbs(set) {
			temporary = append(temporary, set)
		}
	}
	return !slices.ContainsFunc(temporary, func(place string) bool {
		within, isIn := below(place, real)
		return isIn && strings.HasPrefix(strings.ToLower(within[0]), "claude")
	})
}

// below returns the parts of the path from a folder to a file below it, whose own path has no links, and whether it is there.
func below(folder, file string) (parts []string, is bool) {
	real, err := resolve(folder)
	if err != nil {
		return nil, false
	}
	within, err := filepath.Rel(real, file)
	return strings.Split(filepath.ToSlash(within), "/"), err == nil && filepath.IsLocal(within)
}

// resolve returns a path without links. The file, and folders above it, may not be there yet.
func resolve(path string) (string, error) {
	rest := ""
	for at := filepath.Clean(path); ; at = filepath.Dir(at) {
		real, err := filepath.EvalSymlinks(at)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		if _, there := os.Lstat(at); there == nil || at == filepath.Dir(at) { // a link that leads nowhere
			return "", err
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}

const (
	writtenWithin = 2 * time.Second       // a transcript is written behind
	writtenLook   = 25 * time.Millisecond // between two looks
	writtenNew    = 1 << 20               // bytes of its end that the looks after the first are at
)

// broughtRules says that a skill or a command of the conversation has brought rules that allow calls, or that this cannot be told: where
// the conversation does not have the call yet, what comes before may not be there either. It is "" where neither is so.
func broughtRules(call toolCall) string {
	most := int64(maxTranscript)
	for until := time.Now().Add(writtenWithin); ; time.Sleep(writtenLook) {
		text := call.endOfConversation(most)
		own, rules, whole := text, false, true
		if call.part != "" {
			own, rules, whole = call.ofSubagents(most)
		}
		if rules || bringsRules(text) {
			return "a skill or a command has brought rules that let calls run without a question"
		}
		if whole {
			most = writtenNew
		}
		if whole && call.id != "" && bytes.Contains(own, []byte(`"`+call.id+`"`)) {
			return ""
		}
		if time.Now().After(until) {
			return "Claude Code has not written down its conversation up to this call, so that rules of a skill may let it run without a question"
		}
	}
}

const maxDepth = 16 // of subagents that subagents have started

// ofSubagents returns the end of the conversation of the subagent that makes a call, and whether it has rules of a skill or a command, or
// one of the subagents above it, which hands them on. A subagent that a skill has started (context: fork) has those of the skill, and no
// conversation says so: a file beside it does. It reports whether all those above could be told.
func (c toolCall) ofSubagents(most int64) (own []byte, rules, whole bool) {
	folder := filepath.Join(strings.TrimSuffix(c.transcript, ".jsonl"), "subagents")
	for part, depth := c.part, 0; depth < maxDepth; depth++ {
		path := filepath.Join(folder, "agent-"+part)
		text, _ := readTail(path+".jsonl", most)
		if own == nil {
			own = text
		}
		forked, err := filepath.Glob(path + ".forked-skill*")
		if len(forked) > 0 || err != nil || bringsRules(text) {
			return own, true, true
		}
		about, err := regular.ReadLinked(path + ".meta.json")
		if err != nil || !json.Valid(about) {
			return own, false, false
		}
		if part, _ = textMember(about, "parentAgentId"); part == "" {
			return own, false, true
		}
	}
	return own, true, true
}

func bringsRules(conversation []byte) bool {
	for line := range bytes.Lines(conversation) {
		if !bytes.Contains(line, []byte("command_permissions")) {
			continue
		}
		var entry struct {
			Attachment struct {
				Type  string            `json:"type"`
				Rules []json.RawMessage `json:"allowedTools"`
			} `json:"attachment"`
		}
		if json.Unmarshal(line, &entry) != nil || entry.Attachment.Type == "command_permissions" && len(entry.Attachment.Rules) > 0 {
			return true
		}
	}
	return false
}
