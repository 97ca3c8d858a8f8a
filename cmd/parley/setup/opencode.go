package setup

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"parley/cmd/parley/terminal"
)

// pluginText is the plugin of OpenCode, a file that is Parley's alone. HOOK and SERVER in it stand for the commands of the hook
// and of the MCP server.
//
//go:embed opencode.js
var pluginText string

// pluginMark begins the file.
const pluginMark = "// Parley's plugin for OpenCode:"

// hookLine begins the line of the file with the command of the hook.
const hookLine = "const hook = "

// openCode enters the plugin where OpenCode looks for plugins: in a person's configuration, or in a project's .opencode.
func (s settings) openCode() ([]File, error) {
	f, err := s.settingsFile(s.pluginPath())
	if err != nil || f.problem != nil {
		return []File{f}, err
	}
	own := bytes.HasPrefix(f.before, []byte(pluginMark))
	switch {
	case s.Remove && own:
		f.withoutEntries(nil, true, func([]byte) bool { return false })
	case s.Remove:
	case f.there && !own:
		f.problem = leftAlone(f.Path, "it is not Parley's")
	default:
		f.Entered = s.plugin()
		f.becomes([]byte(f.Entered), false)
	}
	return []File{f}, nil
}

// pluginPath returns the path of the plugin.
func (s settings) pluginPath() string {
	folder := filepath.Join(s.Home, ".config", "opencode")
	if set, ok := s.Env("XDG_CONFIG_HOME"); ok && filepath.IsAbs(set) {
		folder = filepath.Join(set, "opencode")
	}
	if s.Project {
		folder = filepath.Join(s.Folder, ".opencode")
	}
	return filepath.Join(folder, "plugins", "parley.js")
}

// plugin returns the text of the plugin with the commands.
func (s settings) plugin() string {
	hookArgs := []string{s.runs, "hook", s.agent.Name}
	if s.As != "" {
		hookArgs = append(hookArgs, "--as", s.As)
	}
	server := s.server()
	return strings.NewReplacer(
		hookLine+"HOOK", hookLine+string(plainJSON(s.arguments(hookArgs...))),
		"const server = SERVER", "const server = "+string(plainJSON(append([]string{server.Command}, server.Args...))),
	).Replace(pluginText)
}

// pluginCommand returns the command of the hook in a plugin of Parley's; nil if it has none.
func pluginCommand(text []byte) (command []string) {
	for line := range strings.Lines(string(text)) {
		if words, ok := strings.CutPrefix(line, hookLine); ok {
			_ = json.Unmarshal([]byte(strings.TrimRight(words, ";\r\n")), &command) // none is found in what is no list
			return command
		}
	}
	return nil
}

// checkOpenCode reports whether OpenCode has the plugin, and whether that is of this program.
func (s settings) checkOpenCode(ctx context.Context) (words string, good bool) {
	var found, wrong []string
	for _, project := range []bool{true, false} {
		s.Project = project
		path := s.pluginPath()
		text, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			continue
		}
		command := pluginCommand(text)
		switch {
		case err != nil:
			wrong = append(wrong, fmt.Sprintf("cannot read %s: %v", path, terminal.Reason(err)))
		case !bytes.HasPrefix(text, []byte(pluginMark)) || len(command) == 0:
			wrong = append(wrong, path+" is not Parley's, or was changed: parley setup opencode enters it")
		default:
			found = append(found, path)
			wrong = append(wrong, s.wrongProgram(ctx, "plugin in "+path, command[0], "")...)
		}
	}
	away := ". Where no node runs, or nobody follows the inbox: " + WhenAway(s.agent, "")
	version, isThere := versionOf(ctx, "opencode")
	switch {
	case len(wrong) > 0:
		return strings.Join(wrong, "; "), false
	case len(found) > 1:
		return "both the project's and your own plugin are entered, so each call is asked about twice: parley setup opencode --remove, and enter one", false
	case len(found) == 1 && isThere:
		return fmt.Sprintf("has the plugin, version %s: what OpenCode asks about is asked in Parley", version) + away, true
	case len(found) == 1:
		return "has the plugin; the program opencode is not on the path" + away, true
	case isThere:
		return "not set up: parley setup opencode", true
	}
	return "", true
}
