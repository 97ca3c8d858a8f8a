package setup

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"strings"

	"parley"
	"parley/cmd/parley/hook"
	"parley/cmd/parley/terminal"
)

// LeastClaudeCode is the least version of Claude Code whose PreToolUse asks in every mode, takes a form's answers, and that runs the hooks of
// events which it knows where there are others: an earlier one runs none.
const LeastClaudeCode = "2.1.101"

// Files returns the files of a coding agent's settings with the entries of Parley, or without them. It writes nothing.
func Files(ctx context.Context, agent hook.Agent, o Options) ([]File, error) {
	s := settings{Options: o, agent: agent}
	if err := s.findPrograms(ctx); err != nil {
		return nil, err
	}
	switch agent.Name {
	case hook.ClaudeCode().Name:
		return s.claudeCode()
	case hook.Codex().Name:
		return s.codex()
	case hook.OpenCode().Name:
		return s.openCode()
	}
	if isOneFile(agent) {
		return s.oneFile()
	}
	return nil, parley.Refuse(parley.InvalidArgument, "%s has no settings that are known here", agent.Title)
}

// claudeCode enters hook and MCP server where Claude Code's references have them. Hooks are in settings.json: for a
// person below the home folder (or CLAUDE_CONFIG_DIR), for a project in its .claude. MCP servers are in .claude.json for
// a person, and in .mcp.json for a project.
func (s settings) claudeCode() ([]File, error) {
	files := s.claudeFiles()
	hooks, err := s.hookFile(files.hooks)
	if err != nil {
		return nil, err
	}
	server := s.server()
	entered := plainJSON(map[string]any{"mcpServers": map[string]mcpServer{hook.ServerName: server}})
	mcp, err := s.jsonFile(files.servers, entered, func(d *document, enter bool) error {
		if enter {
			return d.setServer(&server)
		}
		return d.setServer(nil)
	})
	return []File{hooks, mcp}, err
}

// codex enters the hooks in hooks.json and the MCP server in config.toml. No hook answers the questions of Codex, so it
// notes in AGENTS.md that ask_user asks a person. The first two are below the home folder (or CODEX_HOME) or in a
// project's .codex. Codex takes hooks in either file. The one in JSON can be changed without touching the person's
// comments.
func (s settings) codex() ([]File, error) {
	folder := s.codexFolder()
	hooks, err := s.hookFile(filepath.Join(folder, "hooks.json"))
	if err != nil {
		return nil, err
	}
	server := s.server()
	mcp, err := s.tomlFile(filepath.Join(folder, "config.toml"), server)
	if err != nil {
		return nil, err
	}
	instructions := filepath.Join(folder, "AGENTS.md")
	if s.Project {
		instructions = filepath.Join(s.Folder, "AGENTS.md")
	}
	words, err := s.markdownFile(instructions)
	return []File{hooks, mcp, words}, err
}

// codexFolder returns the folder of a person's configuration of Codex, or of the project's.
func (s settings) codexFolder() string {
	if s.Project {
		return filepath.Join(s.Folder, ".codex")
	}
	if folder, ok := s.Env("CODEX_HOME"); ok && filepath.IsAbs(folder) {
		return folder
	}
	return filepath.Join(s.Home, ".codex")
}

// hookFile returns the file with the hooks entered, or taken out.
func (s settings) hookFile(path string) (File, error) {
	own := s.hooks(path)
	alone, _ := readDocument(nil) // nothing is an object
	if err := alone.setHooks(s.agent.Name, own); err != nil {
		return File{}, err
	}
	return s.jsonFile(path, alone.text, func(d *document, enter bool) error {
		if enter {
			return d.setHooks(s.agent.Name, own)
		}
		return d.setHooks(s.agent.Name, nil)
	})
}

// jsonFile returns the file with an entry, or without it. change makes or undoes the entry. A file that has the entry
// already stays unchanged.
func (s settings) jsonFile(path string, entered []byte, change func(d *document, enter bool) error) (File, error) {
	f, err := s.settingsFile(path)
	if err != nil || f.problem != nil {
		return f, err
	}
	if !s.Remove {
		f.Entered = string(indented(entered))
	}
	plain := func(text []byte) (*document, error) {
		d, ok := readDocument(text)
		if !ok {
			return nil, parley.Refuse(parley.InvalidArgument, "it is no JSON object, or has comments")
		}
		return d, change(d, false)
	}
	without, err := plain(f.before)
	if err != nil {
		f.problem = leftAlone(f.Path, terminal.Message(err))
		return f, nil
	}
	written, _ := readDocument(f.before)
	if s.Remove {
		if bytes.Equal(written.text, without.text) {
			return f, nil
		}
		f.withoutEntries(without.text, len(without.names()) == 0, func(kept []byte) bool {
			d, err := plain(kept)
			return err == nil && sameJSON(withoutEmpty(d), withoutEmpty(without))
		})
		return f, nil
	}
	isPlain := bytes.Equal(written.text, without.text)
	if err := change(written, true); err != nil {
		f.problem = leftAlone(f.Path, terminal.Message(err))
		return f, nil
	}
	if f.there && sameJSON(f.before, written.text) {
		return f, nil
	}
	f.becomes(written.text, isPlain)
	return f, nil
}

// withoutEmpty returns the text of settings without the containers that entries go into, where those are empty.
func withoutEmpty(d *document) []byte {
	d = &document{text: bytes.Clone(d.text), unit: d.unit, newline: d.newline}
	for _, event := range d.names("hooks") {
		if d.count("hooks", event) == 0 {
			d.cut("hooks", event)
		}
	}
	for _, name := range []string{"hooks", "mcpServers"} {
		if value := d.get(name); value != nil && value[0] == '{' && len(d.names(name)) == 0 {
			d.cut(name)
		}
	}
	return d.text
}

func leftAlone(path, why string) error {
	return parley.Refuse(parley.InvalidArgument, "%s is left alone: %s", path, why).WithHint("--print shows what to enter by hand")
}

// hooks returns the hooks of the agent for a file of settings.
func (s settings) hooks(path string) []eventHook {
	command := s.hookCommand()
	shown := path
	if inside, ok := strings.CutPrefix(path, s.Folder+string(filepath.Separator)); ok && s.Project {
		shown = inside
	} else if inside, ok := strings.CutPrefix(path, s.Home+string(filepath.Separator)); ok {
		shown = "~/" + inside
	}
	fails := otherwise(s.agent.Name, command, shown)
	if s.agent.Name == hook.Codex().Name {
		return codexHooks(command, fails)
	}
	return claudeHooks(command, s.Away, fails)
}

// codexHooks returns the hooks of Codex. It asks on PermissionRequest, denies on PreToolUse what another agent has leased, and withdraws
// approvals and carries mail on the others. Where it
// fails the call is denied: Codex leaves it to its own prompt otherwise, which does not come where a hook of others allows the call.
func codexHooks(command, otherwise string) []eventHook {
	return []eventHook{
		askHook(hook.PermissionRequest, command+otherwise), endHook(hook.PostToolUse, command), endHook(hook.Stop, command),
		endHook(hook.SessionStart, command), endHook(hook.UserPromptSubmit, command), endHook(hook.SessionEnd, command),
		quickHook(hook.PreToolUse, command+" "+leasesFlag),
	}
}

// leasesFlag has a hook on PreToolUse ask nobody.
const leasesFlag = "--leases"

// claudeHooks returns the hooks of Claude Code. It asks in every mode on PreToolUse, and on PermissionRequest about calls
// that PreToolUse leaves. On the other events it withdraws approvals and carries mail. Only where a call waits does a failure block.
// On Stop it would keep the person from ending a turn. On Elicitation it would decline in the person's name.
func claudeHooks(command, away, otherwise string) []eventHook {
	asking := command
	if away != "" {
		asking += " --when-away " + away
	}
	return []eventHook{
		shutHook(hook.PreToolUse, asking, otherwise), shutHook(hook.PermissionRequest, asking+" --skip-asked", otherwise),
		askHook(hook.Elicitation, asking+" || exit 1"),
		endHook(hook.PostToolUse, command), endHook(hook.PostToolUseFailure, command), endHook(hook.SubagentStop, command), endHook(hook.Stop, command), endHook(hook.SessionEnd, command),
		endHook(hook.SessionStart, command), endHook(hook.UserPromptSubmit, command), endHook(hook.PostToolBatch, command), wakeHook(hook.FileChanged, command),
		endHook(hook.DirectoryAdded, command),
	}
}

// isOfMail reports whether a hook on an event of Claude Code is for mail alone.
func isOfMail(event string) bool {
	return slices.Contains([]string{hook.SessionStart, hook.UserPromptSubmit, hook.PostToolBatch, hook.FileChanged}, event)
}

// claudeFiles are the paths of Claude Code's settings.
type claudeFiles struct{ hooks, local, servers string }

// claudeFiles returns the paths of a person's settings, or of the project's.
func (s settings) claudeFiles() claudeFiles {
	if s.Project {
		folder := filepath.Join(s.Folder, ".claude")
		return claudeFiles{filepath.Join(folder, "settings.json"), filepath.Join(folder, "settings.local.json"), filepath.Join(s.Folder, ".mcp.json")}
	}
	if folder, ok := s.Env("CLAUDE_CONFIG_DIR"); ok && filepath.IsAbs(folder) {
		return claudeFiles{hooks: filepath.Join(folder, "settings.json"), servers: filepath.Join(folder, ".claude.json")}
	}
	return claudeFiles{hooks: filepath.Join(s.Home, ".claude", "settings.json"), servers: filepath.Join(s.Home, ".claude.json")}
}

// server returns the entry of the MCP server. It acts for the same agent as the hook.
func (s settings) server() mcpServer {
	args := []string{"mcp", "--for", s.agent.Name}
	if s.As != "" {
		args = []string{"mcp", "--as", s.As}
	}
	return mcpServer{Type: "stdio", Command: s.runs, Args: s.arguments(args...)}
}
