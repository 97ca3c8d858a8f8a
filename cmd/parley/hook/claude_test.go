package hook

import (
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
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

// TestSettingsAllowWhatRuns has the input of a call name what a rule allows beside what Claude Code runs: it takes members by their very
// names.
func TestSettingsAllowWhatRuns(t *testing.T) {
	for _, test := range []struct{ rule, tool, input string }{
		{"Bash(npm run *)", "Bash", `{"command":"rm -rf ~","Command":"npm run build"}`},
		{"Bash(npm run *)", "Bash", `{"COMMAND":"npm run build"}`},
		{"WebFetch(domain:a.org)", "WebFetch", `{"url":"https://b.org","URL":"https://a.org"}`},
		{"Bash(npm run *)", "Bash", `{"command":["npm run build"]}`},
	} {
		if allowsCall(test.rule, toolCall{tool: test.tool, input: json.RawMessage(test.input)}) {
			t.Errorf("%s allows %s", test.rule, test.input)
		}
	}
}

// TestRulesAreReadAsClaudeCodeDoes has rules beside some that are none, and in places where Claude Code reads none.
func TestRulesAreReadAsClaudeCodeDoes(t *testing.T) {
	for text, want := range map[string][]string{
		`{"permissions":{"allow":["Bash",1,"Edit"]}}`:                        {"Bash", "Edit"},
		"\ufeff" + `{"permissions":{"allow":["Bash"]}}`:                      {"Bash"},
		`{"Permissions":{"allow":["Bash"]}}`:                                 nil,
		`{"permissions":{"Allow":["Bash"]}}`:                                 nil,
		`{"permissions":{"allow":[]},"Permissions":{"allow":["Bash"]}}`:      nil,
		`{"permissions":{"allow":"Bash"}}`:                                   nil,
		`{"permissions":{"allow":["Bash"]},"permissions":{"deny":["Edit"]}}`: nil,
		`{"permissions":{"allow":["Bash"]} /* a comment */}`:                 nil,
	} {
		folder := t.TempDir()
		if err := errors.Join(os.Mkdir(filepath.Join(folder, ".claude"), 0o700), os.WriteFile(filepath.Join(folder, ".claude", "settings.json"), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		if got := allowedBySettings(folder, func(string) (string, bool) { return "", false }); !slices.Equal(got, want) {
			t.Errorf("%s allows %q", text, got)
		}
	}
}

// TestAllowedToolsAreNamed has rules for whole tools, which the hook leaves to Claude Code.
func TestAllowedToolsAreNamed(t *testing.T) {
	home, folder := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		filepath.Join(home, ".claude", "settings.json"):         `{"permissions":{"allow":["Bash","Read","mcp__parley","Bash(make:*)","Edit(*)"]}}`,
		filepath.Join(folder, ".claude", "settings.json"):       `{"permissions":{"allow":["Bash(*)","mcp__*"]}}`,
		filepath.Join(folder, ".claude", "settings.local.json"): `{"permissions":{"allow":["Write","Bash"]}}`,
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := AllowedTools(folder, func(name string) (string, bool) { return home, name == "HOME" })
	if want := []string{"Bash(*)", "mcp__*", "Write", "Bash"}; !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
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
		{"Bash", "touch a", "plan", "cli", false}, // PermissionRequest does not follow where the automatic mode plans
		{"ExitPlanMode", "", "plan", "cli", true},
		{"ExitPlanMode", "", "plan", "sdk-cli", false},
		{"Bash", "touch a", "default", "cli", true}, // PermissionRequest follows
		{"Bash", "touch a", "default", "sdk-cli", false},
		{"Bash", "touch a", "", "", false},
		{"Bash", "make all", "auto", "sdk-cli", true},
		{"Read", "", "auto", "sdk-cli", true},
		{"NewTool", "", "auto", "sdk-cli", false},
		{"NewTool", "", "default", "cli", false},
		{"mcp__tracker__close", "", "default", "cli", true}, // PermissionRequest follows
		{"SendMessage", "", "default", "cli", false},        // and does not here
	} {
		call := toolCall{event: PreToolUse, tool: test.tool, mode: test.mode, input: []byte(`{"command":"` + test.command + `"}`)}
		env := map[string]string{"CLAUDE_CODE_ENTRYPOINT": test.entry, "CLAUDE_PROJECT_DIR": folder}
		got := ClaudeCode().leaves(call, func(name string) (string, bool) { v, ok := env[name]; return v, ok })
		if got != test.want {
			t.Errorf("%+v is left: %t", test, got)
		}
	}
	for _, tool := range ClaudeTools() {
		call := toolCall{event: PreToolUse, tool: tool.Name, mode: "bypassPermissions", input: []byte(`{"prompt":"do it"}`)}
		if needsNoQuestion(call, t.TempDir(), func(string) (string, bool) { return "", false }) == tool.Asked {
			t.Errorf("%s: it is asked: %t", tool.Name, !tool.Asked)
		}
	}
	if Codex().leaves(toolCall{event: PreToolUse, tool: "Read"}, func(string) (string, bool) { return "", false }) {
		t.Error("Codex is left a call")
	}
}

// TestSubagentsOfTheFolderAreAskedAbout starts subagents where a folder may define them, and with unusual inputs.
func TestSubagentsOfTheFolderAreAskedAbout(t *testing.T) {
	home := t.TempDir()
	plain, below := filepath.Join(home, "plain"), filepath.Join(home, "cloned", "src")
	for _, folder := range []string{plain, below, filepath.Join(home, "cloned", ".claude", "agents"), filepath.Join(home, ".claude", "agents")} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	env := func(name string) (string, bool) { return home, name == "HOME" }
	for _, test := range []struct {
		folder, input string
		free          bool
	}{
		{plain, `{"description":"d","prompt":"p","subagent_type":"general-purpose","run_in_background":false}`, true},
		{plain, `{"prompt":"p","isolation":"worktree"}`, false},
		{plain, `{"prompt":"p","isolation":"remote"}`, false},
		{plain, `{"prompt":"p","somethingNew":true}`, false},
		{plain, `no`, false},
		{below, `{"prompt":"p"}`, false},
		{filepath.Join(home, "cloned"), `{"prompt":"p"}`, false},
		{home, `{"prompt":"p"}`, true}, // those are the person's own
	} {
		for _, tool := range []string{"Agent", "Task"} {
			call := toolCall{tool: tool, input: []byte(test.input), folder: test.folder}
			if got := needsNoQuestion(call, plain, env); got != test.free {
				t.Errorf("%s %s in %s needs no question: %t", tool, test.input, test.folder, got)
			}
		}
	}
}

// TestThePlanIsWrittenWithoutQuestion writes the plan that the model was told of, and other files in its place.
func TestThePlanIsWrittenWithoutQuestion(t *testing.T) {
	home := t.TempDir()
	env := func(name string) (string, bool) { return home, name == "HOME" }
	plans := filepath.Join(home, ".claude", "plans")
	plan := filepath.Join(plans, "a.md")
	said := func(path string) string {
		return `{"type":"attachment","attachment":{"type":"plan_mode","planFilePath":"` + path + `"}}` + "\n"
	}
	kept := func(write func() error) func() { // what a link leads to
		return func() {
			err := os.WriteFile(filepath.Join(home, "kept"), nil, 0o600)
			if err == nil {
				err = write()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, test := range map[string]struct {
		call  toolCall // with the path as its input
		path  string
		lines string
		files func() // nil for none
		free  bool
	}{
		"written":                {call: toolCall{tool: "Write"}, free: true},
		"edited":                 {call: toolCall{tool: "Edit"}, free: true},
		"a subagent's":           {call: toolCall{tool: "Write", part: "7"}, path: filepath.Join(plans, "a-agent-7.md"), free: true},
		"of another subagent":    {call: toolCall{tool: "Write", part: "7"}, path: filepath.Join(plans, "a-agent-8.md")},
		"by a subagent":          {call: toolCall{tool: "Write", part: "7"}, path: plan},
		"in another mode":        {call: toolCall{tool: "Write", mode: "auto"}},
		"by a command":           {call: toolCall{tool: "Bash"}},
		"of another session":     {call: toolCall{tool: "Write"}, path: filepath.Join(plans, "b.md")},
		"by a way around":        {call: toolCall{tool: "Write"}, path: plans + "/../plans/a.md"},
		"nowhere":                {call: toolCall{tool: "Write"}, path: "-"},
		"elsewhere":              {call: toolCall{tool: "Write"}, path: filepath.Join(home, ".claude", "a.md"), lines: said(filepath.Join(home, ".claude", "a.md"))},
		"that is no text":        {call: toolCall{tool: "Write"}, path: filepath.Join(plans, "a.sh"), lines: said(filepath.Join(plans, "a.sh"))},
		"that nobody was told":   {call: toolCall{tool: "Write"}, lines: "{}\n"},
		"that a model has named": {call: toolCall{tool: "Write"}, lines: `{"type":"assistant","message":{"content":[{"planFilePath":"` + plan + `"}]}}` + "\n"},
		"that words have named":  {call: toolCall{tool: "Write"}, lines: `{"type":"user","Type":"attachment","Attachment":{"planFilePath":"` + plan + `"},"planFilePath":""}` + "\n"},
		"before another":         {call: toolCall{tool: "Write"}, lines: said(plan) + said(filepath.Join(plans, "b.md"))},
		"there already": {call: toolCall{tool: "Write"}, files: kept(func() error {
			return errors.Join(os.MkdirAll(plans, 0o700), os.WriteFile(plan, nil, 0o600))
		}), free: true},
		"a link": {call: toolCall{tool: "Write"}, files: kept(func() error {
			return errors.Join(os.MkdirAll(plans, 0o700), os.Symlink(filepath.Join(home, "kept"), plan))
		})},
		"a link to nothing": {call: toolCall{tool: "Write"}, files: kept(func() error {
			return errors.Join(os.MkdirAll(plans, 0o700), os.Symlink(filepath.Join(home, "new"), plan))
		})},
		"a second name": {call: toolCall{tool: "Edit"}, files: kept(func() error {
			return errors.Join(os.MkdirAll(plans, 0o700), os.Link(filepath.Join(home, "kept"), plan))
		})},
		"in a linked folder": {call: toolCall{tool: "Write"}, files: kept(func() error {
			return errors.Join(os.MkdirAll(filepath.Dir(plans), 0o700), os.Symlink(home, plans))
		})},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.RemoveAll(filepath.Dir(plans)); err != nil {
				t.Fatal(err)
			}
			if test.files != nil {
				test.files()
			}
			call := test.call
			call.mode, call.lines = cmp.Or(call.mode, "plan"), cmp.Or(test.lines, said(plan))
			var err error
			if call.input, err = json.Marshal(map[string]string{"file_path": cmp.Or(test.path, plan)}); err != nil {
				t.Fatal(err)
			}
			if got := needsNoQuestion(call, home, env); got != test.free {
				t.Errorf("it needs no question: %t", got)
			}
		})
	}
}

// TestWakeupThatRunsACommandIsAsked has a session go on with a prompt that is no words.
func TestWakeupThatRunsACommandIsAsked(t *testing.T) {
	for prompt, free := range map[string]bool{"go on": true, "": true, "see /evil": true, "/evil": false, " \n/evil": false, "\u200b/evil": false, "!touch x": false} {
		input, err := json.Marshal(map[string]any{"delaySeconds": 60, "prompt": prompt})
		if err != nil {
			t.Fatal(err)
		}
		if got := needsNoQuestion(toolCall{tool: "ScheduleWakeup", input: input}, t.TempDir(), func(string) (string, bool) { return "", false }); got != free {
			t.Errorf("%q: %t", prompt, got)
		}
	}
}

// TestMembersAreOfTheirVeryName reads a member beside one of the same name in other case, which a gate must not take for it.
func TestMembersAreOfTheirVeryName(t *testing.T) {
	for input, want := range map[string]string{
		`{"file_path":"a","FILE_PATH":"b"}`: "a", `{"FILE_PATH":"b"}`: "", `{"file_path":7}`: "", `{"file_path":"a","file_path":"c"}`: "c", `[]`: "",
	} {
		if got, ok := textMember([]byte(input), "file_path"); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %t", input, got, ok)
		}
	}
}
