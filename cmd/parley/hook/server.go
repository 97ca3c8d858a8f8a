package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"parley/internal/regular"
)

// ServerName is the name of Parley's MCP server in the settings of coding agents.
const ServerName = "parley"

// serverFile is a file that may define MCP servers.
type serverFile struct {
	path    string
	text    string                                          // in place of a file; "" is read from path
	named   bool                                            // the agent was told to read it: it is there
	defined func(text []byte) (servers []server, err error) // those with the name of Parley's
}

// server is an MCP server as settings define it.
type server map[string]any

// isOwnTool reports whether a call is of a tool of Parley's MCP server, which reaches the agent's own mail. Any server can
// have that name: it has to be the one that setup enters, in all files in reach.
func (a Agent) isOwnTool(call toolCall, o Options) bool {
	name, ok := strings.CutPrefix(call.tool, "mcp__"+ServerName+"__")
	if !ok || !slices.Contains(o.Tools, name) {
		return false
	}
	if a.servers == nil { // an allow on PreToolUse leaves the call as it is
		return true
	}
	found := false
	for _, folder := range []string{a.workFolder(call, o.Env), call.folder} {
		own, others := a.lookForServers(folder, o.Env)
		if len(others) > 0 {
			return false
		}
		found = found || own
	}
	return found
}

// OtherServers returns the files that have another MCP server under the name of Parley's, for an agent in a folder. Files that
// cannot be read are among them.
func (a Agent) OtherServers(folder string, env func(string) (string, bool)) []string {
	if a.servers == nil {
		return nil
	}
	_, others := a.lookForServers(folder, env)
	return others
}

func (a Agent) lookForServers(folder string, env func(string) (string, bool)) (own bool, others []string) {
	for _, f := range a.servers(folder, env) {
		text, err := []byte(f.text), error(nil)
		if f.text == "" {
			text, err = regular.ReadLinked(f.path)
		}
		if errors.Is(err, fs.ErrNotExist) && !f.named {
			continue
		}
		var servers []server
		if text = bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\ufeff"))); err == nil && len(text) > 0 {
			servers, err = f.defined(text)
		}
		if err != nil || slices.ContainsFunc(servers, func(s server) bool { return !s.isOwn() }) {
			others = append(others, f.path)
		}
		own = own || err == nil && len(servers) > 0
	}
	return own, others
}

// above returns a path in a folder and in all above it.
func above(folder string, path ...string) (all []string) {
	for at := filepath.Clean(folder); filepath.IsAbs(at); at = filepath.Dir(at) {
		all = append(all, filepath.Join(append([]string{at}, path...)...))
		if at == filepath.Dir(at) {
			break
		}
	}
	return all
}

// claudeServers returns where Claude Code has MCP servers from. The person's file has some for projects too. Each folder can have
// an .mcp.json, and so can those above it. An administrator's file is one as well, and what --mcp-config names. A server of a
// plugin has another name.
func claudeServers(folder string, env func(string) (string, bool)) (files []serverFile) {
	files = claudeFlagged(env)
	for _, path := range append(above(folder, ".mcp.json"), "/etc/claude-code/managed-mcp.json") {
		files = append(files, serverFile{path: path, defined: claudeDefined})
	}
	if set, ok := env("CLAUDE_CONFIG_DIR"); ok && filepath.IsAbs(set) {
		return append(files, serverFile{path: filepath.Join(set, ".claude.json"), defined: claudeDefined})
	}
	if home, ok := env("HOME"); ok && filepath.IsAbs(home) {
		files = append(files, serverFile{path: filepath.Join(home, ".claude.json"), defined: claudeDefined})
	}
	return files
}

// mcpFlag has Claude Code take the MCP servers of files and of texts in JSON: all words up to the next flag.
const mcpFlag = "--mcp-config"

// claudeCommand returns the command line of Claude Code and the folder that it works in, as far as they can be read. A file of the command
// line is not found without the folder.
func claudeCommand(env func(string) (string, bool)) (words []string, folder string) {
	set, _ := env("CLAUDE_PID")
	pid, err := strconv.Atoi(set)
	if err != nil || pid <= 0 {
		return nil, ""
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return nil, ""
	}
	if folder, err = os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)); err != nil {
		folder = ""
	}
	return strings.Split(string(line), "\x00"), folder
}

// claudeFlagged returns what the command line of Claude Code names. A file that is not found counts as another server's.
func claudeFlagged(env func(string) (string, bool)) (files []serverFile) {
	words, folder := claudeCommand(env)
	add := func(word string) {
		switch {
		case strings.HasPrefix(strings.TrimSpace(word), "{"):
			files = append(files, serverFile{path: mcpFlag, text: word, defined: claudeDefined})
		case word != "":
			if !filepath.IsAbs(word) {
				word = filepath.Join(folder, word)
			}
			files = append(files, serverFile{path: word, named: true, defined: claudeDefined})
		}
	}
	follows := false
	for _, word := range words {
		if value, ok := strings.CutPrefix(word, mcpFlag+"="); ok {
			add(value)
		}
		switch {
		case strings.HasPrefix(word, "-"):
			follows = word == mcpFlag || strings.HasPrefix(word, mcpFlag+"=")
		case follows:
			add(word)
		}
	}
	return files
}

// claudeDefined reads a file of Claude Code. Maps tell names apart by case, as Claude Code does.
func claudeDefined(text []byte) (servers []server, err error) {
	var file map[string]json.RawMessage
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	projects := map[string]map[string]json.RawMessage{}
	if raw := file["projects"]; raw != nil {
		if err := json.Unmarshal(raw, &projects); err != nil {
			return nil, err
		}
	}
	projects[""] = file
	for _, p := range projects {
		var named map[string]json.RawMessage
		if raw := p["mcpServers"]; raw != nil {
			err = errors.Join(err, json.Unmarshal(raw, &named))
		}
		if raw := named[ServerName]; raw != nil {
			var s server
			err = errors.Join(err, json.Unmarshal(raw, &s))
			servers = append(servers, s)
		}
	}
	return servers, err
}

// isOwn reports whether a server is "parley mcp" of this program. What else an entry has could have another program run in its
// place.
func (s server) isOwn() bool {
	command, _ := s["command"].(string)
	args, _ := s["args"].([]any)
	if !isThisProgram(command) || len(args) == 0 || args[0] != "mcp" {
		return false
	}
	if kind, there := s["type"]; there && kind != "stdio" {
		return false
	}
	for _, name := range []string{"cwd", "url", "headers", "headersHelper"} {
		if _, there := s[name]; there {
			return false
		}
	}
	variables, isObject := s["env"].(map[string]any)
	if _, there := s["env"]; there && !isObject {
		return false
	}
	for name := range variables {
		if !strings.HasPrefix(name, "PARLEY_") { // such as PATH
			return false
		}
	}
	return true
}

// isThisProgram reports whether a command is this program, or "parley" or "parley-client" beside it.
func isThisProgram(command string) bool {
	found, err := exec.LookPath(command)
	if err != nil || !filepath.IsAbs(found) {
		return false
	}
	self, err := os.Executable()
	if err != nil {
		return false
	}
	for _, path := range []string{self, filepath.Join(filepath.Dir(self), "parley"), filepath.Join(filepath.Dir(self), "parley-client")} {
		a, errA := os.Stat(found)
		b, errB := os.Stat(path)
		if errA == nil && errB == nil && os.SameFile(a, b) {
			return true
		}
	}
	return false
}
