package setup

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"parley"
	"parley/cmd/parley/hook"
)

// Check reports how Parley is entered in the settings of a coding agent: in words, and whether that asks as it should. It
// reports no words where neither settings nor the program are found.
func Check(ctx context.Context, agent hook.Agent, o Options) (words string, good bool) {
	s := settings{Options: o, agent: agent}
	if agent.Name == hook.Codex().Name {
		return s.checkCodex(ctx)
	}
	return s.checkClaudeCode(ctx)
}

// checkClaudeCode reports whether Claude Code asks in every mode.
func (s settings) checkClaudeCode(ctx context.Context) (words string, good bool) {
	s.Project = false
	paths := []string{s.claudeFiles().hooks}
	s.Project = true
	paths = append(paths, s.claudeFiles().hooks)
	entered, missing, err := s.missingHooks(paths, s.claudeHooks(""))
	version, found := versionOf(ctx, "claude")
	switch {
	case err != nil:
		return err.Error(), false
	case !entered && !found:
		return "", true
	case !entered:
		return "not set up: parley setup claude-code", true
	case len(missing) > 0:
		return fmt.Sprintf("no hook on %s, so not every mode asks: parley setup claude-code enters it", strings.Join(missing, ", ")), false
	case !found:
		return "asks in every mode; the program claude is not on the path, so its version is not known", true
	case isOlder(version, LeastClaudeCode):
		return fmt.Sprintf("version %s is too old to ask in every mode: at least %s", version, LeastClaudeCode), false
	}
	return "asks in every mode, version " + version, true
}

// checkCodex reports whether Codex asks about calls that leave its sandbox. It also reports whether it has the MCP
// server, whose ask_user asks its questions. Codex alone knows whether a person trusts the hooks.
func (s settings) checkCodex(ctx context.Context) (words string, good bool) {
	var paths, servers []string
	for _, project := range []bool{false, true} {
		s.Project = project
		paths = append(paths, filepath.Join(s.codexFolder(), "hooks.json"))
		servers = append(servers, filepath.Join(s.codexFolder(), "config.toml"))
	}
	entered, missing, err := s.missingHooks(paths, codexHooks(""))
	hasServer := false
	for _, path := range servers {
		has, failed := hasServerIn(path)
		hasServer, err = hasServer || has, cmp.Or(err, failed)
	}
	version, found := versionOf(ctx, "codex")
	if version == "" {
		version = "unknown"
	}
	switch {
	case err != nil:
		return err.Error(), false
	case !entered && !hasServer && !found:
		return "", true
	case !entered && !hasServer:
		return "not set up: parley setup codex", true
	case len(missing) > 0:
		return fmt.Sprintf("no hook on %s: parley setup codex enters it", strings.Join(missing, ", ")), false
	case !hasServer:
		return "no MCP server, so its questions are not asked: parley setup codex enters it", false
	}
	return fmt.Sprintf("asks about calls that leave its sandbox once you trust the hooks with /hooks, version %s", version), true
}

// missingHooks returns the events of hooks that no file has, and reports whether any file has one of Parley's.
func (s settings) missingHooks(paths []string, wanted []eventHook) (any bool, missing []string, err error) {
	var entered []string
	for _, path := range paths {
		events, err := s.enteredIn(path)
		if err != nil {
			return false, nil, err
		}
		entered = append(entered, events...)
	}
	for _, h := range wanted {
		if !slices.Contains(entered, h.event) {
			missing = append(missing, h.event)
		}
	}
	return len(entered) > 0, missing, nil
}

// hasServerIn reports whether a file of Codex's configuration has the MCP server.
func hasServerIn(path string) (bool, error) {
	f, err := readSettings(path)
	if err != nil {
		return false, err
	}
	var all struct {
		Servers map[string]any `toml:"mcp_servers"`
	}
	if toml.Unmarshal(f.before, &all) != nil {
		return false, parley.Refuse(parley.InvalidArgument, "%s is no TOML", f.Path)
	}
	return all.Servers[hook.ServerName] != nil, nil
}

// enteredIn returns the events on which a file has Parley's hook.
func (s settings) enteredIn(path string) (events []string, err error) {
	f, err := readSettings(path)
	if err != nil {
		return nil, err
	}
	all, ok := readObject(f.before)
	if !ok {
		return nil, parley.Refuse(parley.InvalidArgument, "%s is no JSON object, or has comments", f.Path)
	}
	hooks, _ := readObject(all.get("hooks")) // empty where they are none
	for _, event := range hooks {
		var groups []struct {
			Hooks []json.RawMessage `json:"hooks"`
		}
		if json.Unmarshal(event.value, &groups) != nil {
			continue
		}
		for _, g := range groups {
			if slices.ContainsFunc(g.Hooks, func(h json.RawMessage) bool { return isOwnHook(h, s.agent.Name) }) {
				events = append(events, event.name)
			}
		}
	}
	return events, nil
}

// versionOf returns the version of a program on the path, and whether there is one: the word of its output that begins
// with a digit.
func versionOf(ctx context.Context, name string) (string, bool) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, "--version").Output()
	if err != nil {
		return "", false
	}
	for word := range strings.FieldsSeq(string(out)) {
		if word[0] >= '0' && word[0] <= '9' {
			return word, true
		}
	}
	return "", false
}

// isOlder reports whether a version comes before another. Both are numbers between dots.
func isOlder(version, than string) bool {
	a, b := strings.Split(version, "."), strings.Split(than, ".")
	for i := range min(len(a), len(b)) {
		x, _ := strconv.Atoi(a[i])
		y, _ := strconv.Atoi(b[i])
		if x != y {
			return x < y
		}
	}
	return len(a) < len(b)
}
