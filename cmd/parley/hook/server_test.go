package hook

import (
	"os"
	"path/filepath"
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
