package setup

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"parley"
	"parley/cmd/parley/hook"
	"parley/cmd/parley/terminal"
)

// codexConfig is what a file of Codex' configuration says of hooks and approvals.
type codexConfig struct {
	path string

	Servers  map[string]any `toml:"mcp_servers"`
	Features map[string]any `toml:"features"`
	Approval any            `toml:"approval_policy"`
	Sandbox  any            `toml:"sandbox_mode"`
	Managed  bool           `toml:"allow_managed_hooks_only"`
	Hooks    map[string]any `toml:"hooks"`
}

// checkCodex reports whether Codex asks about calls that leave its sandbox. It also reports whether it has the MCP
// server, whose ask_user asks its questions.
func (s settings) checkCodex(ctx context.Context) (words string, good bool) {
	var (
		sources   []source
		configs   []codexConfig // the strongest first
		wrong     []string
		hasServer bool
	)
	configs, wrong = addConfig(configs, wrong, "/etc/codex/requirements.toml")
	folders := s.codexFolders()
	for i, folder := range folders {
		configs, wrong = addConfig(configs, wrong, filepath.Join(folder, "config.toml"))
		from := source{path: filepath.Join(folder, "hooks.json"), flag: " --project"}
		if i == len(folders)-1 {
			from.flag = " --user"
		}
		f, err := readSettings(resolve(from.path, maxLinks))
		if err != nil {
			wrong = append(wrong, terminal.Message(err))
			continue
		}
		var ok bool
		if from.doc, ok = readDocument(f.before); !ok {
			wrong = append(wrong, fmt.Sprintf("%s is no JSON object, or has comments", from.path))
			continue
		}
		sources = append(sources, from)
	}
	configs, wrong = addConfig(configs, wrong, "/etc/codex/config.toml")
	var own []ownHook
	for _, from := range sources {
		own = append(own, from.doc.own(s.agent.Name)...)
	}
	for _, c := range configs {
		hasServer = hasServer || c.Servers[hook.ServerName] != nil
	}
	version, found := versionOf(ctx, "codex")
	switch isThere := len(own) > 0 || hasServer; {
	case !isThere && len(wrong) > 0:
		return strings.Join(wrong, "; "), false
	case !isThere && !found:
		return "", true
	case !isThere:
		return "not set up: parley setup codex", true
	}
	wanted := codexHooks("", otherwise(s.agent.Name, "", ""))
	if missing := missingFrom(own, wanted); len(missing) > 0 {
		wrong = append(wrong, fmt.Sprintf("no hook on %s: parley setup codex enters it", strings.Join(missing, ", ")))
	}
	if !hasServer {
		wrong = append(wrong, "no MCP server, so its questions are not asked: parley setup codex enters it")
	}
	wrong = append(wrong, unasked(configs)...)
	wrong = append(wrong, s.wrongHooks(ctx, sources, wanted)...)
	wrong = append(wrong, s.wrongCodexServers(ctx, configs)...)
	wrong = append(wrong, s.wrongClient(ctx)...)
	away, _ := s.whenAway(own)
	asks := "asks about calls that leave its sandbox"
	others := s.othersOfCodex(sources, configs)
	if len(others) > 0 {
		asks += ", but hooks of others may allow calls where nobody decides in Parley: " + strings.Join(others, ", ")
	}
	switch {
	case len(wrong) > 0:
		return strings.Join(wrong, "; "), false
	case !found:
		return asks + " once you trust the hooks with /hooks; the program codex is not on the path, so it was not tried" + away, len(others) == 0
	}
	if wrong := s.probeCodex(ctx, sources); len(wrong) > 0 {
		return fmt.Sprintf("version %s was tried: %s", version, strings.Join(wrong, "; ")), false
	}
	return fmt.Sprintf("%s, version %s: a call was tried, and refused%s. codex exec and -a never do not ask", asks, version, away), len(others) == 0
}

// othersOfCodex returns the hooks of others that can allow a call of Codex, as words with the file of each. It waits for all hooks, and one
// that denies counts. So they allow a call only where Parley's decides nothing.
func (s settings) othersOfCodex(sources []source, configs []codexConfig) (found []string) {
	for _, from := range sources {
		found = append(found, from.doc.others(s.agent.Name, from.path, hook.PermissionRequest)...)
	}
	for _, c := range configs {
		if c.Hooks[hook.PermissionRequest] != nil {
			found = append(found, fmt.Sprintf("a hook on %s in %s", hook.PermissionRequest, c.path))
		}
	}
	return found
}

// wrongCodexServers returns what is wrong with the MCP servers that are called as Parley's is.
func (s settings) wrongCodexServers(ctx context.Context, configs []codexConfig) (wrong []string) {
	for _, c := range configs {
		if c.Servers[hook.ServerName] == nil {
			continue
		}
		server, _ := c.Servers[hook.ServerName].(map[string]any) // nil for what is no table
		command, _ := server["command"].(string)
		if !isParley(command) {
			wrong = append(wrong, fmt.Sprintf("%s has another MCP server with the name %s", c.path, hook.ServerName))
			continue
		}
		wrong = append(wrong, s.wrongProgram(ctx, "MCP server in "+c.path, command, "")...)
	}
	return wrong
}

// codexFolders returns the folders with configuration of Codex that takes effect, the strongest first: those of the project
// up to the root of its repository, and the person's.
func (s settings) codexFolders() (folders []string) {
	s.Project = false
	own := s.codexFolder()
	for at := s.Folder; ; at = filepath.Dir(at) {
		if folder := filepath.Join(at, ".codex"); folder != own {
			folders = append(folders, folder)
		}
		if at == s.root() || at == filepath.Dir(at) {
			return append(folders, own)
		}
	}
}

// addConfig adds a file of Codex' configuration.
func addConfig(configs []codexConfig, wrong []string, path string) ([]codexConfig, []string) {
	f, err := readSettings(resolve(path, maxLinks))
	if err != nil {
		return configs, append(wrong, terminal.Message(err))
	}
	var c codexConfig
	if toml.Unmarshal(f.before, &c) != nil {
		return configs, append(wrong, terminal.Message(parley.Refuse(parley.InvalidArgument, "%s is no TOML, or not as Codex reads it", path)))
	}
	c.path = path
	return append(configs, c), wrong
}

// unasked returns what keeps Codex from asking. Of several files that set it, the first holds.
func unasked(configs []codexConfig) (wrong []string) {
	var isHooks, isApproval, isSandbox bool // that a stronger file has set it
	for _, c := range configs {
		for _, name := range []string{"hooks", "codex_hooks"} { // the second is the name before
			on, set := c.Features[name].(bool)
			if set && !on && !isHooks {
				wrong = append(wrong, fmt.Sprintf("it asks nothing: %s has %s = false among its features", c.path, name))
			}
			isHooks = isHooks || set
		}
		if c.Managed {
			wrong = append(wrong, fmt.Sprintf("it asks nothing: %s has allow_managed_hooks_only", c.path))
		}
		if c.Approval == "never" && !isApproval {
			wrong = append(wrong, fmt.Sprintf(`it asks nothing: %s has approval_policy = "never"`, c.path))
		}
		if c.Sandbox == "danger-full-access" && !isSandbox {
			wrong = append(wrong, fmt.Sprintf(`it asks nothing: %s has sandbox_mode = "danger-full-access", so no call leaves its sandbox`, c.path))
		}
		isApproval, isSandbox = isApproval || c.Approval != nil, isSandbox || c.Sandbox != nil
	}
	return wrong
}
