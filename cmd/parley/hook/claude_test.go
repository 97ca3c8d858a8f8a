package hook

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

func TestSettingsAllowOnlyWhatIsUnderstood(t *testing.T) {
	for _, test := range []struct {
		entry, tool, key, value string
		want                    bool
	}{
		{"Bash", "Bash", "command", "rm -rf /", true},
		{"Bash(*)", "Bash", "command", "rm x", true},
		{"Bash(make test)", "Bash", "command", "make test", true},
		{"Bash(make test)", "Bash", "command", "make tests", false},
		{"Bash(npm run:*)", "Bash", "command", "npm run build", true},
		{"Bash(npm run *)", "Bash", "command", "npm run build", true},
		{"Bash(npm run *)", "Bash", "command", "npm runs", false},
		{"Bash(npm run *)", "Bash", "command", "npm run a; rm x", false},
		{"Bash(npm run *)", "Bash", "command", "npm run $(rm x)", false},
		{"Bash(npm run *)", "Bash", "command", "npm run a > b", false},
		{"Bash(git * main)", "Bash", "command", "git push main", false},
		{"Edit", "Edit", "file_path", "/a", true},
		{"Edit", "Write", "file_path", "/a", false},
		{"Edit(/src/**)", "Edit", "file_path", "/src/a", false},
		{"WebFetch(domain:a.org)", "WebFetch", "url", "https://a.org/x", true},
		{"WebFetch(domain:a.org)", "WebFetch", "url", "https://a.org.evil/x", false},
		{"mcp__memory", "mcp__memory__read", "a", "b", true},
		{"mcp__memory__*", "mcp__memory__read", "a", "b", true},
		{"mcp__memory__read", "mcp__memory__read", "a", "b", true},
		{"mcp__mem", "mcp__memory__read", "a", "b", false},
		{"Bash(", "Bash", "command", "", false},
		{"", "Bash", "command", "", false},
	} {
		input, err := json.Marshal(map[string]string{test.key: test.value})
		if err != nil {
			t.Fatal(err)
		}
		if got := allowsCall(test.entry, toolCall{tool: test.tool, input: input}); got != test.want {
			t.Errorf("%s allows %s %s: %t", test.entry, test.tool, input, got)
		}
	}
}

func TestClaudeCodeKeepsCalls(t *testing.T) {
	folder := t.TempDir()
	if err := os.MkdirAll(filepath.Join(folder, ".claude"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, ".claude", "settings.local.json"), []byte(`{"permissions":{"allow":["Bash(make:*)"]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		tool, command, mode, entry string
		want                       bool
	}{
		{"Bash", "touch a", "auto", "cli", false},
		{"Bash", "touch a", "default", "cli", true}, // PermissionRequest follows
		{"Bash", "touch a", "default", "sdk-cli", false},
		{"Bash", "touch a", "", "", false},
		{"Bash", "make all", "auto", "sdk-cli", true},
		{"Read", "", "auto", "sdk-cli", true},
		{"NewTool", "", "auto", "sdk-cli", false},
	} {
		call := toolCall{event: PreToolUse, tool: test.tool, mode: test.mode, input: []byte(`{"command":"` + test.command + `"}`)}
		env := map[string]string{"CLAUDE_CODE_ENTRYPOINT": test.entry, "CLAUDE_PROJECT_DIR": folder}
		got := ClaudeCode().leaves(call, func(name string) (string, bool) { v, ok := env[name]; return v, ok })
		if got != test.want {
			t.Errorf("%+v is left: %t", test, got)
		}
	}
	if Codex().leaves(toolCall{event: PreToolUse, tool: "Read"}, func(string) (string, bool) { return "", false }) {
		t.Error("Codex is left a call")
	}
}
