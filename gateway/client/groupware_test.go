package client_test

import (
	"strings"
	"testing"

	"parley/gateway/client"
)

// groupware is what the scripts say that use files, teams, topics and what a reader sets.
const groupware = `file a.bin 250001 true 0
FILE_DAMAGED
team shop 1 shop
teams 0
topic 60000
posts Build: The build is red 1 false
attention true true
`

// adminToken makes a token of the host's with all scopes.
func adminToken(t *testing.T, host *client.Client) string {
	t.Helper()
	var made struct{ Token string }
	if err := host.Call(t.Context(), "create_token", map[string]any{"scopes": []string{"read", "ask", "answer", "admin"}}, &made); err != nil {
		t.Fatal(err)
	}
	return made.Token
}

// TestTypeScriptUsesFilesTeamsAndTopics sends a file, and uses teams, topics and what a reader sets.
func TestTypeScriptUsesFilesTeamsAndTopics(t *testing.T) {
	t.Setenv("NODE_OPTIONS", withWebSocket)
	h, host, _ := openTest(t)
	if got := startScript(t, "../test/groupware.mjs", h.url(), tokenOf(t, host), adminToken(t, host)).ends(t); got != groupware {
		t.Errorf("%s", got)
	}
}

// TestPythonUsesFilesTeamsAndTopics does the same with Python.
func TestPythonUsesFilesTeamsAndTopics(t *testing.T) {
	t.Parallel()
	h, host, _ := openTest(t)
	got := startPython(t, "tests/groupware.py", h.url(), tokenOf(t, host), adminToken(t, host)).ends(t)
	if got = strings.NewReplacer("True", "true", "False", "false").Replace(got); got != groupware {
		t.Errorf("%s", got)
	}
}
