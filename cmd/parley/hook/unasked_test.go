package hook

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestFilesThatAreAskedAbout has files of a folder told from those that Claude Code may write without a question.
func TestFilesThatAreAskedAbout(t *testing.T) {
	folder, other := t.TempDir(), t.TempDir()
	own := map[string]string{"CLAUDE_CONFIG_DIR": filepath.Join(folder, "own"), "TMPDIR": filepath.Join(folder, "temporary")}
	env := func(name string) (string, bool) { set, ok := own[name]; return set, ok }
	for _, err := range []error{
		os.Mkdir(filepath.Join(folder, "src"), 0o700), os.Symlink(other, filepath.Join(folder, "out")),
		os.Symlink(filepath.Join(other, "not-there"), filepath.Join(folder, "nowhere.txt")), os.Symlink(folder, filepath.Join(other, "in")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for path, plain := range map[string]bool{
		filepath.Join(folder, "a.txt"):                                                  true,
		filepath.Join(folder, "src", "new", "deep", "a"):                                true,
		filepath.Join(other, "in", "src", "a.txt"):                                      true,
		filepath.Join(folder, "..claude", "a.txt"):                                      true,
		filepath.Join(folder, ".claude", "launch.json"):                                 false,
		filepath.Join(folder, "src", ".CLAUDE", "a.json"):                               false,
		folder + "/src/../.claude/launch.json":                                          false,
		filepath.Join(folder, "out", "a.md"):                                            false,
		filepath.Join(folder, "nowhere.txt"):                                            false,
		filepath.Join(other, "a.txt"):                                                   false,
		folder + "-beside/a.txt":                                                        false,
		"a.txt":                                                                         false,
		filepath.Join(folder, "own", "projects", "a.md"):                                false,
		filepath.Join(folder, "owned", "a.md"):                                          true,
		filepath.Join(folder, "temporary", "a.md"):                                      true,
		filepath.Join(folder, "temporary", "claude-0", "project", "scratchpad", "a.md"): false,
	} {
		for _, member := range []string{"file_path", "notebook_path"} {
			input, err := json.Marshal(map[string]string{member: path})
			if err != nil {
				t.Fatal(err)
			}
			if got := isPlainFile(toolCall{tool: "Write", input: input}, folder, env); got != plain {
				t.Errorf("%s of %s: %t", member, path, got)
			}
		}
	}
}

// TestRulesOfSkillsAreSeen has the conversation say whether a skill or a command has brought rules.
func TestRulesOfSkillsAreSeen(t *testing.T) {
	const brought, untold = "a skill or a command has brought rules", "Claude Code has not written down"
	const call = `{"type":"assistant","message":{"content":[{"type":"tool_use","id":"toolu_1","name":"Bash"}]}}` + "\n"
	rules := func(rules string) string {
		return `{"type":"attachment","attachment":{"type":"command_permissions","allowedTools":` + rules + `}}` + "\n"
	}
	folder := t.TempDir()
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(folder, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		main, own string
		part      string
		files     map[string]string // beside the conversation of a subagent
		want      string            // what the reason begins with
	}{
		"none":                            {main: call},
		"empty":                           {main: rules("[]") + call},
		"some":                            {main: rules(`["Bash"]`) + call, want: brought},
		"unreadable":                      {main: `{"attachment":{"type":"command_permissions","allowedTools":"Bash"}}` + "\n" + call, want: brought},
		"a person's words":                {main: `{"type":"user","message":{"content":"what is command_permissions?"}}` + "\n" + call},
		"the call is not there yet":       {main: `{"type":"user"}` + "\n", want: untold},
		"no conversation":                 {want: untold},
		"a subagent's":                    {main: "{}\n", own: call, part: "a1", files: map[string]string{"a1.meta.json": "{}"}},
		"a subagent's skill":              {main: "{}\n", own: rules(`["Bash"]`) + call, part: "a1", files: map[string]string{"a1.meta.json": "{}"}, want: brought},
		"a subagent's, elsewhere":         {main: call, part: "a2", want: untold},
		"a subagent of nobody knows whom": {main: "{}\n", own: call, part: "a1", want: untold},
		"a skill's subagent":              {main: "{}\n", own: call, part: "a1", files: map[string]string{"a1.meta.json": "{}", "a1.forked-skill.json": `{"skillName":"neat"}`}, want: brought},
		"a subagent's subagent":           {main: "{}\n", own: call, part: "a1", files: map[string]string{"a1.meta.json": `{"parentAgentId":"a0"}`, "a0.meta.json": "{}", "a0.jsonl": "{}\n"}},
		"below a subagent's skill":        {main: "{}\n", own: call, part: "a1", files: map[string]string{"a1.meta.json": `{"parentAgentId":"a0"}`, "a0.meta.json": "{}", "a0.jsonl": rules(`["Bash"]`)}, want: brought},
		"below a skill's subagent":        {main: "{}\n", own: call, part: "a1", files: map[string]string{"a1.meta.json": `{"parentAgentId":"a0"}`, "a0.meta.json": "{}", "a0.forked-skill.json": "{}"}, want: brought},
		"in a circle":                     {main: "{}\n", own: call, part: "a1", files: map[string]string{"a1.meta.json": `{"parentAgentId":"a1"}`}, want: brought},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			write(name+".jsonl", test.main)
			if test.own != "" {
				write(filepath.Join(name, "subagents", "agent-"+test.part+".jsonl"), test.own)
			}
			for file, text := range test.files {
				write(filepath.Join(name, "subagents", "agent-"+file), text)
			}
			if got := broughtRules(toolCall{id: "toolu_1", part: test.part, transcript: filepath.Join(folder, name+".jsonl")}); (got == "") != (test.want == "") || !strings.HasPrefix(got, test.want) {
				t.Errorf("%q", got)
			}
		})
	}
}

// TestVariablesOfAProjectAreSeen has the settings of a project, and the person's own, set variables. Those of the project by which a command
// that only reads may run another program have Claude Code ask. The tests of coding agents run such a command.
func TestVariablesOfAProjectAreSeen(t *testing.T) {
	for text, want := range map[string]string{
		`{"env":{"GIT_CONFIG_COUNT":"1"}}`:                          "GIT_CONFIG_COUNT",
		`{"env":{"EDITOR":"ed","HOME":"."}}`:                        "HOME",
		"\ufeff" + `{"env":{"RIPGREP_CONFIG_PATH":"rc"}}`:           "RIPGREP_CONFIG_PATH",
		`{"env":{"PATH":"."},"permissions":{"allow":["Read"]}}`:     "PATH",
		`{"env":{"GIT_AUTHOR_NAME":"a","GIT_TERMINAL_PROMPT":"0"}}`: "",
		`{"env":{"DATABASE_URL":"a"}}`:                              "",
		`{"env":[]}`:                                                "",
		`{"Env":{"PATH":"."}}`:                                      "",
	} {
		for _, path := range []string{"project/.claude/settings.json", "project/.claude/settings.local.json", "home/.claude/settings.json"} {
			root := t.TempDir()
			conversation := filepath.Join(root, "c.jsonl")
			writeBelow(t, filepath.Join(root, path), text)
			writeBelow(t, conversation, `{"id":"toolu_1"}`)
			env := func(name string) (string, bool) {
				return map[string]string{"HOME": filepath.Join(root, "home"), "CLAUDE_CODE_ENTRYPOINT": "cli"}[name], true
			}
			call := toolCall{event: PreToolUse, id: "toolu_1", tool: "Bash", mode: "default", input: json.RawMessage(`{"command":"git status"}`), transcript: conversation}
			why := unaskedByClaudeCode(call, filepath.Join(root, "project"), env)
			if seen := want != "" && strings.HasPrefix(path, "project"); strings.Contains(why, "set "+want+", by which") != seen || !seen && why != "" {
				t.Errorf("%s in %s: %q", text, path, why)
			}
		}
	}
}

// TestSandboxIsSeen has settings switch on a sandbox in each way that Claude Code takes, and in none.
func TestSandboxIsSeen(t *testing.T) {
	const on = "the settings have Claude Code run commands in a sandbox without a question"
	for text, seen := range map[string]bool{
		`{"sandbox":{"enabled":true}}`:                                true,
		"\ufeff" + `{"sandbox":{"enabled":true}}`:                     true,
		`{"sandbox":{"enabled":true,"Enabled":false}}`:                true,
		`{"sandbox":{"enabled":true},"Sandbox":{"enabled":false}}`:    true,
		`{"sandbox":{"enabled":true},"permissions":{"allow":[1]}}`:    true,
		`{"permissions":{"allow":"Read"},"sandbox":{"enabled":true}}`: true,
		`{"permissions":[],"sandbox":{"enabled":true}}`:               true,
		`{"sandbox":{"enabled":false},"sandbox":{"enabled":true}}`:    true,
		`{"sandbox":{"enabled":"true"}}`:                              true, // in doubt
		`{"sandbox":[]}`:                                              true,
		`{"sandbox":{"enabled":true}, /* a comment */ "model":"x"}`:   true,
		`{"sandbox":{"enabled":false}}`:                               false,
		`{"sandbox":{"Enabled":true}}`:                                false,
		`{"sandbox":{"network":{}}}`:                                  false,
		`{"sandbox":null,"permissions":{"allow":["Read"]}}`:           false,
		`{}`: false,
		"":   false,
	} {
		for _, path := range []string{"project/.claude/settings.json", "project/.claude/settings.local.json", "home/.claude/settings.json", "home/.claude/remote-settings.json"} {
			root := t.TempDir()
			path = filepath.Join(root, path)
			conversation := filepath.Join(root, "c.jsonl")
			for path, text := range map[string]string{path: text, conversation: `{"id":"toolu_1"}`} {
				writeBelow(t, path, text)
			}
			env := func(name string) (string, bool) {
				return map[string]string{"HOME": filepath.Join(root, "home"), "CLAUDE_CODE_ENTRYPOINT": "cli"}[name], true
			}
			call := toolCall{event: PreToolUse, id: "toolu_1", tool: "Bash", mode: "default", input: json.RawMessage(`{"command":"make"}`), transcript: conversation}
			if why := unaskedByClaudeCode(call, filepath.Join(root, "project"), env); (why == on) != seen {
				t.Errorf("%s in %s: %q", text, path, why)
			}
		}
	}
}

// writeBelow writes a file, and the folders that it is in.
func writeBelow(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestFolderOfNotesIsSeen has settings name a folder for Claude Code's notes, which it writes without a question, wherever that is.
func TestFolderOfNotesIsSeen(t *testing.T) {
	for text, seen := range map[string]bool{
		`{"autoMemoryDirectory":"~/shop"}`:                               true,
		`{"autoMemoryDirectory":"/proc/self/cwd","sandbox":null}`:        true,
		`{"autoMemoryDirectory":null,"autoMemoryDirectory":"~/shop"}`:    true,
		`{"permissions":[],"autoMemoryDirectory":"~/shop"}`:              true,
		`{"plansDirectory":"./docs"}`:                                    true,
		`{"autoMemoryDirectory":null,"plansDirectory":null}`:             false,
		`{"AutoMemoryDirectory":"~/shop","autoMemoryEnabled":true}`:      false,
		`{"permissions":{"allow":["Write(docs/**)"]},"sandbox":{"a":1}}`: false,
	} {
		for _, name := range []string{"settings.json", "settings.local.json"} {
			root := t.TempDir()
			conversation, settings := filepath.Join(root, "c.jsonl"), filepath.Join(root, ".claude", name)
			for path, text := range map[string]string{settings: text, conversation: `{"id":"toolu_1"}`} {
				writeBelow(t, path, text)
			}
			env := func(name string) (string, bool) {
				return map[string]string{"HOME": filepath.Join(root, "home"), "CLAUDE_CODE_ENTRYPOINT": "cli"}[name], true
			}
			input, err := json.Marshal(map[string]string{"file_path": filepath.Join(root, "README.md")})
			if err != nil {
				t.Fatal(err)
			}
			call := toolCall{event: PreToolUse, id: "toolu_1", tool: "Write", mode: "default", input: input, transcript: conversation}
			if why := unaskedByClaudeCode(call, root, env); (why != "") != seen {
				t.Errorf("%s in %s: %q", text, name, why)
			}
			call.tool, call.input = "Bash", json.RawMessage(`{"command":"make"}`)
			if why := unaskedByClaudeCode(call, root, env); why != "" {
				t.Errorf("a command with %s: %q", text, why)
			}
		}
	}
}

// TestSettingsOfTheCommandLine has a process with the flag of Claude Code for settings, which switch on a sandbox and allow a call.
func TestSettingsOfTheCommandLine(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("command lines are read from /proc")
	}
	const on = `{"sandbox":{"enabled":true},"permissions":{"allow":["Bash"]}}`
	home := t.TempDir()
	for name, text := range map[string]string{"on.json": on, "off.json": `{"model":"x","permissions":{"allow":["Bash"]}}`} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		words []string
		want  bool
	}{
		"none":                {[]string{"-p", "on.json"}, false},
		"none in a file":      {[]string{settingsFlag, "off.json"}, false},
		"in a file":           {[]string{settingsFlag, "on.json"}, true},
		"in a file as a word": {[]string{settingsFlag + "=" + filepath.Join(home, "on.json")}, true},
		"as text":             {[]string{"a prompt", settingsFlag, " " + on}, true},
		"one of two":          {[]string{settingsFlag, "off.json", settingsFlag, "on.json"}, true},
		"a file that is gone": {[]string{settingsFlag, "/dev/fd/63"}, true}, // in doubt
		"no value":            {[]string{settingsFlag}, true},               // sh ends its words with an empty one: in doubt
	} {
		t.Run(name, func(t *testing.T) {
			env, end := coderWith(t, home, test.words...)
			defer end()
			settings := settingsFor(home, env)
			if got := slices.ContainsFunc(settings, func(s claudeSettings) bool { return s.sandbox }); got != test.want {
				t.Errorf("a sandbox: %t", got)
			}
			if rules := allowedBySettings(home, env); len(rules) > 0 {
				t.Errorf("rules of the command line allow calls: %q", rules)
			}
		})
	}
}
