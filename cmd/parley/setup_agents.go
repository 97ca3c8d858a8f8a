package main

import (
	"fmt"
	"path/filepath"
)

// setupClaude enters hook and MCP server where Claude Code's references have them: hooks in settings.json, for a
// person below the home folder (or CLAUDE_CONFIG_DIR) or for a project in its .claude; MCP servers for a person in
// .claude.json, for a project in its .mcp.json.
func setupClaude(s *settingUp) ([]settingsFile, error) {
	settings := filepath.Join(s.folder, ".claude", "settings.json")
	servers := filepath.Join(s.folder, ".mcp.json")
	if !s.project {
		settings = filepath.Join(s.home, ".claude", "settings.json")
		servers = filepath.Join(s.home, ".claude.json")
		if folder, ok := s.p.env("CLAUDE_CONFIG_DIR"); ok && filepath.IsAbs(folder) {
			settings, servers = filepath.Join(folder, "settings.json"), filepath.Join(folder, ".claude.json")
		}
	}
	hook, err := s.hookFile(settings)
	if err != nil {
		return nil, err
	}
	server, err := s.server()
	if err != nil {
		return nil, err
	}
	mcp, err := enterJSON(servers, map[string]any{"mcpServers": map[string]mcpServer{serverName: server}}, func(o object) (object, error) {
		return enterServer(o, server)
	})
	return []settingsFile{hook, mcp}, err
}

// setupCodex enters the hook in hooks.json and the MCP server in config.toml, below the home folder (or CODEX_HOME)
// or in a project's .codex. Codex takes hooks in either file; the one in JSON can be changed without touching the
// person's comments.
func setupCodex(s *settingUp) ([]settingsFile, error) {
	folder := filepath.Join(s.folder, ".codex")
	if !s.project {
		folder = filepath.Join(s.home, ".codex")
		if set, ok := s.p.env("CODEX_HOME"); ok && filepath.IsAbs(set) {
			folder = set
		}
	}
	hook, err := s.hookFile(filepath.Join(folder, "hooks.json"))
	if err != nil {
		return nil, err
	}
	server, err := s.server()
	if err != nil {
		return nil, err
	}
	mcp, err := enterTOML(filepath.Join(folder, "config.toml"), server)
	if err == nil && hook.Changed {
		fmt.Fprintln(s.p.stderr, "note: Codex runs a hook once it is trusted: type /hooks there")
	}
	return []settingsFile{hook, mcp}, err
}

// hookFile is the file with the hook in it.
func (s *settingUp) hookFile(path string) (settingsFile, error) {
	command, err := s.hookCommand()
	if err != nil {
		return settingsFile{}, err
	}
	hook := ownHook(command)
	alone, _ := enterHook(nil, s.agent.name, hook) // nothing is an object
	return enterJSON(path, alone.encode(), func(o object) (object, error) {
		entered, ok := enterHook(o, s.agent.name, hook)
		if !ok {
			return nil, fmt.Errorf("its hooks are not as they should be")
		}
		return entered, nil
	})
}

// server is the MCP server as settings have it.
func (s *settingUp) server() (mcpServer, error) {
	self, err := s.program()
	return mcpServer{Type: "stdio", Command: self, Args: s.arguments("mcp", "--as", s.asker.name)}, err
}
