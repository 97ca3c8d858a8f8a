package hook

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// TestSubagentsThatLoadSkillsAreAskedAbout has definitions of a person's own name skills, which run their commands as the subagent starts and
// may be a repository's.
func TestSubagentsThatLoadSkillsAreAskedAbout(t *testing.T) {
	const loads, plain = "---\nname: helper\ndescription: helps\nskills: neat\n---\nYou help.\n", "---\nname: helper\ndescription: has skills\n---\nskills: none\n"
	for name, test := range map[string]struct {
		files map[string]string // below the person's folder
		kind  string
		free  bool
	}{
		"none":                    {nil, "general-purpose", true},
		"no kind":                 {map[string]string{"agents/a.md": loads}, "", true},
		"its own":                 {map[string]string{"agents/a.md": loads}, "helper", false},
		"another of the person's": {map[string]string{"agents/a.md": loads, "agents/b.md": plain}, "other", false},
		"Claude Code's":           {map[string]string{"agents/a.md": loads}, "general-purpose", true},
		"in place of that":        {map[string]string{"agents/a.md": "---\nname: general-purpose\n\"skills\": [neat]\n---\n"}, "general-purpose", false},
		"plain":                   {map[string]string{"agents/a.md": plain}, "helper", true},
		"in a folder":             {map[string]string{"agents/b/c/a.md": loads}, "helper", false},
		"a plugin's":              {nil, "x:helper", false}, // which may be in the repository
		"another than a plugin's": {map[string]string{"plugins/cache/x/agents/a.md": loads}, "helper", true},
	} {
		t.Run(name, func(t *testing.T) {
			home, folder := t.TempDir(), t.TempDir()
			for path, text := range test.files {
				path = filepath.Join(home, ".claude", path)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			input := map[string]string{"description": "do it", "prompt": "do it"}
			if test.kind != "" {
				input["subagent_type"] = test.kind
			}
			text, err := json.Marshal(input)
			if err != nil {
				t.Fatal(err)
			}
			env := func(name string) (string, bool) { return home, name == "HOME" }
			if got := needsNoQuestion(toolCall{tool: "Agent", input: text, folder: folder}, folder, env); got != test.free {
				t.Errorf("needs no question: %t", got)
			}
		})
	}
}

// TestWorktreesTakeDefinitionsOfTheMainOne has the main worktree of a repository define subagents, which Claude Code takes in the others.
func TestWorktreesTakeDefinitionsOfTheMainOne(t *testing.T) {
	root := t.TempDir()
	main := filepath.Join(root, "main")
	git := func(args ...string) {
		t.Helper()
		c := exec.Command("git", append([]string{"-C", main, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if err := os.Mkdir(main, 0o700); err != nil {
		t.Fatal(err)
	}
	git("init", "-q")
	git("commit", "-q", "--allow-empty", "-m", "begin")
	linked := filepath.Join(root, "linked")
	git("worktree", "add", "-q", linked)
	env := func(name string) (string, bool) { return filepath.Join(root, "home"), name == "HOME" }
	call := toolCall{tool: "Agent", input: json.RawMessage(`{"description":"do it","prompt":"do it","subagent_type":"helper"}`), folder: linked}
	if !needsNoQuestion(call, linked, env) {
		t.Error("it is asked about where nothing defines a subagent")
	}
	if err := os.MkdirAll(filepath.Join(main, ".claude", "agents"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{linked, filepath.Join(linked, "below"), main} {
		if needsNoQuestion(call, folder, env) {
			t.Errorf("it is not asked about in %s", folder)
		}
	}
}

// TestAddedFoldersDefineSubagents has the command line add folders. One defines subagents.
func TestAddedFoldersDefineSubagents(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the command line is read in /proc")
	}
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "other", ".claude", "agents"), 0o700); err != nil {
		t.Fatal(err)
	}
	call := toolCall{tool: "Agent", input: json.RawMessage(`{"description":"do it","prompt":"do it","subagent_type":"helper"}`), folder: filepath.Join(root, "project")}
	for _, test := range []struct {
		words []string
		free  bool
	}{
		{nil, true},
		{[]string{"--add-dir", "third"}, true},
		{[]string{"--add-dir", "other"}, false},
		{[]string{"--add-dir=" + filepath.Join(root, "other")}, false},
		{[]string{"--add-dir", "third", "other", "--model", "x"}, false},
		{[]string{"--add-dir=third", "other"}, false},
		{[]string{"--add-dir", "third", "--model", "other"}, true},
	} {
		env, end := coderWith(t, root, test.words...)
		if got := needsNoQuestion(call, call.folder, env); got != test.free {
			t.Errorf("%q needs no question: %t", test.words, got)
		}
		end()
	}
}

// TestFoldersAddedLaterDefineSubagents adds folders to a session that runs, as a person does with /add-dir. One defines subagents. What was
// noted of an earlier process of the same ID is forgotten as a session starts, and what cannot be read counts as such a folder.
func TestFoldersAddedLaterDefineSubagents(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "other", ".claude", "agents"), 0o700); err != nil {
		t.Fatal(err)
	}
	noNode := func(context.Context) (net.Conn, error) { return nil, fs.ErrNotExist }
	o := Options{Added: filepath.Join(root, "state", AddedFolder), Dial: noNode, Env: func(name string) (string, bool) {
		set := map[string]string{"CLAUDE_PID": strconv.Itoa(os.Getpid()), "CLAUDE_PROJECT_DIR": filepath.Join(root, "project"), "HOME": root}[name]
		return set, set != ""
	}}
	run := func(format string, values ...any) Decision {
		t.Helper()
		_, d, err := ClaudeCode().Run(t.Context(), strings.NewReader(fmt.Sprintf(format, values...)), o)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	check := func(when string, free bool) {
		t.Helper()
		d := run(`{"hook_event_name":"PreToolUse","session_id":"s","tool_use_id":"t","cwd":%q,"permission_mode":"auto","tool_name":"Agent",`+
			`"tool_input":{"description":"do it","prompt":"do it","subagent_type":"helper"}}`, filepath.Join(root, "project"))
		if (d == left) != free {
			t.Errorf("%s: %+v", when, d)
		}
	}
	check("nothing was added", true)
	run(`{"hook_event_name":"DirectoryAdded","session_id":"s","directory":%q,"source":"slash_command"}`, filepath.Join(root, "third"))
	check("one without subagents", true)
	run(`{"hook_event_name":"DirectoryAdded","session_id":"s","directory":%q,"source":"slash_command"}`, filepath.Join(root, "other"))
	check("one with subagents", false)
	run(`{"hook_event_name":"SessionStart","session_id":"t","source":"clear"}`)
	check("cleared", false)
	run(`{"hook_event_name":"SessionStart","session_id":"u","source":"startup"}`)
	check("another process", true)
	if err := os.WriteFile(o.Added, nil, 0o600); err == nil {
		t.Fatal("it is a folder")
	}
	if err := os.Mkdir(filepath.Join(o.Added, strconv.Itoa(os.Getpid())+"-x"), 0o700); err != nil {
		t.Fatal(err)
	}
	check("a note that cannot be read", false)
}
