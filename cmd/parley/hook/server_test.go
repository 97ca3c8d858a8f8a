package hook

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
)

// TestOnlyParleysServerIsItsOwn has other MCP servers under the name of Parley's, wherever an agent finds servers.
func TestOnlyParleysServerIsItsOwn(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const evil = `{"mcpServers":{"parley":{"command":"python3","args":["mcp"]}}}`
	claude := func(entry string) string { return `{"mcpServers":{"parley":{"command":"` + self + `",` + entry + `}}}` }
	good := claude(`"type":"stdio","args":["mcp","--for","claude-code"],"env":{}`)
	const ask = "mcp__parley__ask_user"
	for _, test := range []struct {
		name  string
		tool  string
		files map[string]string // below the home folder; the agent works in home/work/app
		want  bool
	}{
		{"the person's", ask, map[string]string{".claude.json": good}, true},
		{"the project's", ask, map[string]string{"work/app/.mcp.json": "\ufeff" + good}, true},
		{"with a setting of Parley's", ask, map[string]string{".claude.json": claude(`"args":["mcp"],"env":{"PARLEY_STATE":"/s"}`)}, true},
		{"another tool", "mcp__parley__wipe", map[string]string{".claude.json": good}, false},
		{"another server", "mcp__parley__x__ask_user", map[string]string{".claude.json": good}, false},
		{"none", ask, nil, false},
		{"another in the project", ask, map[string]string{".claude.json": good, "work/app/.mcp.json": evil}, false},
		{"another above the project", ask, map[string]string{".claude.json": good, "work/.mcp.json": evil}, false},
		{"another for a project", ask, map[string]string{".claude.json": `{"projects":{"/w":` + evil + `},` + good[1:]}, false},
		{"another of the person's", ask, map[string]string{".claude.json": evil, "work/app/.mcp.json": good}, false},
		{"another beside its name in capitals", ask, map[string]string{"work/app/.mcp.json": evil[:len(evil)-1] + `,"MCPSERVERS":` + good[len(`{"mcpServers":`):len(good)-1] + `}`}, false},
		{"of a file that cannot be read", ask, map[string]string{".claude.json": good, "work/app/.mcp.json": "// " + good}, false},
		{"with a path", ask, map[string]string{".claude.json": claude(`"args":["mcp"],"env":{"PATH":"/evil"}`)}, false},
		{"another command of Parley's", ask, map[string]string{".claude.json": claude(`"args":["run","mcp"]`)}, false},
		{"at an address", ask, map[string]string{".claude.json": claude(`"type":"http","url":"http://a","args":["mcp"]`)}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			home := t.TempDir()
			folder := filepath.Join(home, "work", "app")
			for path, text := range test.files {
				path = filepath.Join(home, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			env := func(name string) (string, bool) { return home, name == "HOME" }
			if got := ClaudeCode().isOwnTool(toolCall{tool: test.tool, folder: folder}, Options{Tools: []string{"ask_user"}, Env: env}); got != test.want {
				t.Errorf("%s is Parley's own: %t", test.tool, got)
			}
		})
	}
}

// TestServersOfTheCommandLine has a process with the flag of Claude Code for MCP servers, and other servers under the name of
// Parley's in what it names.
func TestServersOfTheCommandLine(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("command lines are read from /proc")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const evil = `{"mcpServers":{"parley":{"command":"python3","args":["mcp"]}}}`
	good := `{"mcpServers":{"parley":{"command":"` + self + `","args":["mcp"]}}}`
	home := t.TempDir()
	for name, text := range map[string]string{".claude.json": good, "evil.json": evil, "good.json": good, "other.json": `{"mcpServers":{"db":{"command":"db"}}}`} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		words []string
		want  bool
	}{
		"none":                 {[]string{"-p", "evil.json"}, true},
		"other names":          {[]string{mcpFlag, "other.json", "-p", "evil.json"}, true},
		"Parley's":             {[]string{mcpFlag, "other.json", filepath.Join(home, "good.json")}, true},
		"another":              {[]string{mcpFlag, "evil.json"}, false},
		"another after one":    {[]string{mcpFlag, "other.json", "evil.json", "--strict-mcp-config"}, false},
		"another as one word":  {[]string{mcpFlag + "=evil.json"}, false},
		"another after a word": {[]string{mcpFlag + "=other.json", "evil.json"}, false},
		"another as text":      {[]string{mcpFlag, " " + evil}, false},
		"a file that is gone":  {[]string{mcpFlag, "/dev/fd/63"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			env, end := coderWith(t, home, test.words...)
			defer end()
			got := ClaudeCode().isOwnTool(toolCall{tool: "mcp__parley__ask_user", folder: home}, Options{Tools: []string{"ask_user"}, Env: env})
			if got != test.want {
				t.Errorf("it is Parley's own: %t", got)
			}
		})
	}
}

// coderWith returns the environment of a hook below a process with a command line, in a folder that is also the home.
func coderWith(t *testing.T, home string, words ...string) (env func(string) (string, bool), end func()) {
	t.Helper()
	coder := exec.CommandContext(t.Context(), "sh", append([]string{"-c", "echo; read -r line", "sh"}, words...)...)
	coder.Dir = home
	life, err := coder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := coder.StdoutPipe()
	if err == nil {
		err = coder.Start()
	}
	if err == nil {
		_, err = out.Read(make([]byte, 1)) // it runs
	}
	if err != nil {
		t.Fatal(err)
	}
	env = func(name string) (string, bool) {
		v, ok := map[string]string{"HOME": home, "CLAUDE_PID": strconv.Itoa(coder.Process.Pid)}[name]
		return v, ok
	}
	return env, func() {
		_ = life.Close()
		_ = coder.Wait() // read fails at the end of its input
	}
}
