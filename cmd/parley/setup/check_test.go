package setup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/cmd/parley/hook"
)

// TestCheckFindsWhatDoesNotAsk sets up a coding agent, and changes one thing: a switch in any of the files that take
// effect, or a hook. "" is all well.
func TestCheckFindsWhatDoesNotAsk(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // no coding agent is there
	const off = `{"disableAllHooks": true}`
	claude, codex := hook.ClaudeCode(), hook.Codex()
	const own, project, local = ".claude/settings.json", "project/.claude/settings.json", "project/.claude/settings.local.json"
	for name, test := range map[string]struct {
		agent   hook.Agent
		files   map[string]string              // by path below the home folder
		changed map[string]func(string) string // of the files that setup has written
		options func(*Options)
		want    string // in what is said, which is a warning
		says    string // in what is said, which is none
	}{
		"as entered":              {agent: claude},
		"off for the project":     {agent: claude, files: map[string]string{project: off}, want: "project/.claude/settings.json has disableAllHooks"},
		"off for the local":       {agent: claude, files: map[string]string{local: off}, want: "settings.local.json has disableAllHooks"},
		"on again in the project": {agent: claude, files: map[string]string{local: off, "managed/managed-settings.json": `{"disableAllHooks": false}`}},
		"off, and on for local":   {agent: claude, files: map[string]string{project: off, local: `{"disableAllHooks": false}`}},
		"off is no boolean":       {agent: claude, files: map[string]string{local: `{"disableAllHooks": "true"}`}},
		"off by administrator":    {agent: claude, files: map[string]string{"managed/managed-settings.json": off, local: `{"disableAllHooks": false}`}, want: "managed-settings.json has disableAllHooks"},
		"off by a piece":          {agent: claude, files: map[string]string{"managed/managed-settings.d/10.json": off, "managed/managed-settings.json": `{"disableAllHooks": false}`}, want: "10.json has disableAllHooks"},
		"only managed hooks":      {agent: claude, files: map[string]string{"managed/managed-settings.json": `{"allowManagedHooksOnly": true}`}, want: "allowManagedHooksOnly"},
		"only plugins' hooks":     {agent: claude, files: map[string]string{"managed/managed-settings.json": `{"strictPluginOnlyCustomization": ["skills", "hooks"]}`}, want: "strictPluginOnlyCustomization"},
		"not the administrator's": {agent: claude, files: map[string]string{project: `{"allowManagedHooksOnly": true}`}},
		"local has comments":      {agent: claude, files: map[string]string{local: "{} // mine"}, want: "settings.local.json is no JSON object"},
		"plain mode": {agent: claude, options: func(o *Options) {
			o.Env = func(name string) (string, bool) { return "1", name == "CLAUDE_CODE_SIMPLE" }
		}, want: "the environment has CLAUDE_CODE_SIMPLE"},
		"some tools":       {agent: claude, changed: map[string]func(string) string{own: replacing(`"hooks": [`+"\n"+`          {`, `"matcher": "Bash", "hooks": [`+"\n"+`          {`)}, want: "from an earlier setup, or changed"},
		"some arguments":   {agent: claude, changed: map[string]func(string) string{own: replacing(`"timeout"`, `"if": "Bash(git *)", "timeout"`)}, want: "hooks on PreToolUse in"},
		"in background":    {agent: claude, changed: map[string]func(string) string{own: replacing(`"timeout"`, `"async": true, "timeout"`)}, want: "hooks on PreToolUse in"},
		"gives up":         {agent: claude, changed: map[string]func(string) string{own: replacing(`86400`, `600`)}, want: "hooks on PreToolUse in"},
		"lets failures by": {agent: claude, changed: map[string]func(string) string{own: replacing(`exit 2`, `exit 1`)}, want: "hooks on PreToolUse in"},
		"hides failures":   {agent: claude, changed: map[string]func(string) string{own: replacing(` || {`, ` || true || {`)}, want: "not as setup enters it"},
		"hides them, too":  {agent: claude, changed: map[string]func(string) string{own: replacing(` || {`, ` --skip-asked; true || {`)}, want: "not as setup enters it"},
		"in the quotes":    {agent: claude, changed: map[string]func(string) string{own: replacing(`.claude/settings.json, or`, `'; exit 0; echo ', or`)}, want: "not as setup enters it"},
		"detaches":         {agent: claude, changed: map[string]func(string) string{own: replacing(` || {`, ` & true || {`)}, want: "not as setup enters it"},
		"is wrapped":       {agent: claude, changed: map[string]func(string) string{own: replacing(`"command": "`, `"command": "env A=1 `)}, want: "not as setup enters it"},
		"another program":  {agent: claude, files: map[string]string{project: `{"env": {"CLAUDE_CODE_SHELL_PREFIX": "true", "EDITOR": "ed"}}`}, want: "settings.json sets CLAUDE_CODE_SHELL_PREFIX, which may have another program run in place of the hook"},
		"another command":  {agent: claude, files: map[string]string{project: `{"env": {"GIT_CONFIG_COUNT": "1", "GIT_AUTHOR_NAME": "me"}}`}, want: "settings.json sets GIT_CONFIG_COUNT, by which a command that was allowed"},
		"another path":     {agent: claude, files: map[string]string{local: `{"env": {"PATH": ".", "LD_PRELOAD": "x.so"}}`}, want: "sets LD_PRELOAD, PATH, which"},
		"own path":         {agent: claude, changed: map[string]func(string) string{own: replacing(`{`, `{"env": {"PATH": "/bin"},`)}},
		"some events":      {agent: claude, changed: map[string]func(string) string{own: replacing(`"PermissionRequest"`, `"Permission"`)}, want: "no hook on PermissionRequest"},
		"no such program":  {agent: claude, changed: map[string]func(string) string{own: programGone}, want: "/nonexistent/parley, does not run"},
		"no such client": {agent: claude, changed: map[string]func(string) string{own: func(text string) string {
			return strings.ReplaceAll(programGone(text), "/nonexistent/parley hook", "/nonexistent/parley-client hook")
		}}, want: "/nonexistent/parley-client, does not run"},
		"another version": {agent: claude, changed: map[string]func(string) string{own: otherVersion(t)}, want: "is of version \"v1.2.2\", and this program of v1.2.3: parley setup claude-code --user enters this one"},
		"no such server":  {agent: claude, changed: map[string]func(string) string{".claude.json": otherServer("/nonexistent/parley-client")}, want: "/nonexistent/parley-client, does not run"},
		"another server's": {agent: claude, changed: map[string]func(string) string{
			".claude.json": otherServer(fakeParley(t, clientName, "v1.2.4")),
		}, want: "is of version \"v1.2.4\""},
		"another node": {agent: claude, options: func(o *Options) { o.State = "/elsewhere" }, want: "ask another node, that of /state"},
		"another by default": {agent: claude, options: func(o *Options) {
			o.Env = func(name string) (string, bool) { return "/state", name == "PARLEY_STATE" }
			o.Default = "/elsewhere"
		}, changed: map[string]func(string) string{own: func(text string) string { return strings.ReplaceAll(text, " --state /state", "") }}, want: "that of /elsewhere"},

		"nobody there, as the mode": {agent: claude, changed: map[string]func(string) string{own: replacing(" --state /state", " --state /state --when-away mode")}, want: "no node runs, so a call runs unasked if"},
		"nobody there, denied":      {agent: claude, changed: map[string]func(string) string{own: replacing(" --state /state", " --state /state --when-away=deny")}},
		"the mode, and a node runs": {agent: claude, changed: map[string]func(string) string{own: replacing(" --state /state", " --state /state --when-away mode")}, options: func(o *Options) { o.Running = true }},
		"others, own":               {agent: claude, changed: map[string]func(string) string{own: replacing(`"PreToolUse": [`, `"PreToolUse": [{"matcher": "", "hooks": [{"type": "command", "command": "echo yes"}]},`)}, want: `hooks of others may allow calls unasked in the mode default in a terminal, and change what was allowed in any mode, of which you are told once it has run: "echo yes" on PreToolUse in `},
		"others, project":           {agent: claude, files: map[string]string{project: othersOn("PermissionRequest")}, want: `"echo \n yes" on PermissionRequest in `},
		"others, local":             {agent: claude, files: map[string]string{local: othersOn("PreToolUse")}, want: "project/.claude/settings.local.json"},
		"others, managed":           {agent: claude, files: map[string]string{"managed/managed-settings.json": othersOn("PreToolUse")}, want: "managed/managed-settings.json"},
		"others, elsewhere":         {agent: claude, files: map[string]string{project: othersOn("PostToolUse")}},
		"others, address":           {agent: claude, files: map[string]string{project: `{"hooks": {"PreToolUse": [{"hooks": [{"type": "http", "url": "http://127.0.0.1/yes"}]}]}}`}, want: `"http://127.0.0.1/yes" on PreToolUse`},
		"others, a plugin": {agent: claude, files: map[string]string{
			".claude/plugins/installed_plugins.json": `{"version": 2, "plugins": {"p@m": [{"scope": "user", "installPath": "HOME/plugin"}]}}`, local: `{"enabledPlugins": {"p@m": true}}`,
			"plugin/hooks/hooks.json": othersOn("PreToolUse"),
		}, want: "/plugin/hooks/hooks.json"},
		"others, a manifest": {agent: claude, files: map[string]string{
			".claude/plugins/installed_plugins.json": `{"version": 2, "plugins": {"p@m": [{"scope": "user", "installPath": "HOME/plugin"}]}}`, local: `{"enabledPlugins": {"p@m": true}}`,
			"plugin/.claude-plugin/plugin.json": `{"name": "p", "hooks": ["./more.json"]}`, "plugin/more.json": othersOn("PreToolUse"),
		}, want: "/plugin/more.json"},
		"others, a plugin that is off": {agent: claude, files: map[string]string{
			".claude/plugins/installed_plugins.json": `{"version": 2, "plugins": {"p@m": [{"scope": "user", "installPath": "HOME/plugin"}]}}`, project: `{"enabledPlugins": {"p@m": true}}`, local: `{"enabledPlugins": {"p@m": false}}`,
			"plugin/hooks/hooks.json": othersOn("PreToolUse"),
		}},
		"others, a skill":        {agent: claude, files: map[string]string{"project/.claude/skills/a/SKILL.md": frontMatter("PreToolUse")}, want: `"echo yes" on PreToolUse in `},
		"others, one's own":      {agent: claude, files: map[string]string{".claude/skills/a/SKILL.md": frontMatter("PreToolUse")}, want: ".claude/skills/a/SKILL.md"},
		"others, a subagent":     {agent: claude, files: map[string]string{"project/.claude/agents/b/a.md": frontMatter("PermissionRequest")}, want: `"echo yes" on PermissionRequest in `},
		"others, a command":      {agent: claude, files: map[string]string{"project/.claude/commands/a.md": frontMatter("PreToolUse")}, want: ".claude/commands/a.md"},
		"others, above":          {agent: claude, files: map[string]string{"project/.claude/agents/a.md": frontMatter("PreToolUse")}, options: func(o *Options) { o.Folder = filepath.Join(o.Folder, "below") }, want: "project/.claude/agents/a.md"},
		"others, far below":      {agent: claude, files: map[string]string{"project/a/b/.claude/skills/a/SKILL.md": frontMatter("PreToolUse")}, want: "project/a/b/.claude/skills/a/SKILL.md"},
		"others, managed skills": {agent: claude, files: map[string]string{"managed/.claude/skills/a/SKILL.md": frontMatter("PreToolUse")}, want: "managed/.claude/skills/a/SKILL.md"},
		"others, in a flow":      {agent: claude, files: map[string]string{"project/.claude/agents/a.md": "---\nname: a\n\"hooks\": {\"PreToolUse\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"echo yes\"}]}]}\n---\n"}, want: " on PreToolUse in "},
		"others, in words":       {agent: claude, files: map[string]string{"project/.claude/skills/a/SKILL.md": "---\nname: a\ndescription: about hooks on PreToolUse\n---\nhooks:\n  PreToolUse:\n"}},
		"others, after a call":   {agent: claude, files: map[string]string{"project/.claude/skills/a/SKILL.md": frontMatter("PostToolUse")}},
		"others, a plugin among the project's skills": {agent: claude, files: map[string]string{
			"project/.claude/skills/p/.claude-plugin/plugin.json": `{"name": "p"}`, "project/.claude/skills/p/hooks/hooks.json": othersOn("PreToolUse"),
		}, want: "/project/.claude/skills/p/hooks/hooks.json"},
		"others, a plugin among the person's skills": {agent: claude, files: map[string]string{
			".claude/skills/p/.claude-plugin/plugin.json": `{"name": "p", "hooks": "./more.json"}`, ".claude/skills/p/more.json": othersOn("PreToolUse"),
		}, want: "/.claude/skills/p/more.json"},
		"others, a plugin that the project brings": {agent: claude, files: map[string]string{
			project: `{"extraKnownMarketplaces": {"m": {"source": {"source": "directory", "path": "./m"}}}, "enabledPlugins": {"p@m": true}}`,
		}, want: `the plugin "p@m" that`},
		"programs of the project": {agent: claude, files: map[string]string{
			project: `{"apiKeyHelper": "x", "statusLine": null, "enableAllProjectMcpServers": true, "hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "x"}]}]}}`,
		}, says: `nobody is asked about: apiKeyHelper in HOME/project/.claude/settings.json, enableAllProjectMcpServers in HOME/project/.claude/settings.json, hooks on "SessionStart" in`},
		"others, a plugin's skill": {agent: claude, files: map[string]string{
			".claude/plugins/installed_plugins.json": `{"version": 2, "plugins": {"p@m": [{"scope": "user", "installPath": "HOME/plugin"}]}}`, local: `{"enabledPlugins": {"p@m": true}}`,
			"plugin/skills/a/SKILL.md": frontMatter("PreToolUse"),
		}, want: "/plugin/skills/a/SKILL.md"},

		"codex as entered":   {agent: codex},
		"codex, hides":       {agent: codex, changed: map[string]func(string) string{".codex/hooks.json": replacing(` || {`, ` || true || {`)}, want: "hooks on PermissionRequest in"},
		"codex, lets by":     {agent: codex, changed: map[string]func(string) string{".codex/hooks.json": replacing("exit 2", "exit 1")}, want: "hooks on PermissionRequest in"},
		"codex, others":      {agent: codex, files: map[string]string{"project/.codex/hooks.json": othersOn("PermissionRequest")}, want: `hooks of others may allow calls where nobody decides in Parley: "echo \n yes" on PermissionRequest in `},
		"codex, others' own": {agent: codex, changed: map[string]func(string) string{".codex/config.toml": adding("\n[[hooks.PermissionRequest]]\n[[hooks.PermissionRequest.hooks]]\ntype = \"command\"\ncommand = \"echo yes\"\n")}, want: ".codex/config.toml"},
		"codex without":      {agent: codex, changed: map[string]func(string) string{".codex/config.toml": adding("\n[features]\nhooks = false\n")}, want: "hooks = false"},
		"codex, old name":    {agent: codex, changed: map[string]func(string) string{".codex/config.toml": adding("\n[features]\ncodex_hooks = false\n")}, want: "codex_hooks = false"},
		"codex, dotted":      {agent: codex, changed: map[string]func(string) string{".codex/config.toml": func(text string) string { return "features.hooks = false\n" + text }}, want: "hooks = false"},
		"codex, project":     {agent: codex, files: map[string]string{"project/.codex/config.toml": "approval_policy = \"never\""}, want: `approval_policy = "never"`},
		"codex, repository":  {agent: codex, files: map[string]string{"project/.git/HEAD": "", "project/.codex/config.toml": "approval_policy = \"never\""}, options: func(o *Options) { o.Folder = filepath.Join(o.Folder, "below") }, want: `approval_policy = "never"`},
		"codex, overruled":   {agent: codex, files: map[string]string{"project/.codex/config.toml": "approval_policy = \"on-request\""}, changed: map[string]func(string) string{".codex/config.toml": func(text string) string { return "approval_policy = \"never\"\n" + text }}},
		"codex, no sandbox":  {agent: codex, changed: map[string]func(string) string{".codex/config.toml": func(text string) string { return "sandbox_mode = \"danger-full-access\"\n" + text }}, want: "danger-full-access"},
		"codex, no server":   {agent: codex, changed: map[string]func(string) string{".codex/config.toml": func(string) string { return "" }}, want: "no MCP server"},
		"codex, no TOML":     {agent: codex, changed: map[string]func(string) string{".codex/config.toml": adding("[")}, want: "is no TOML"},
		"codex, version":     {agent: codex, changed: map[string]func(string) string{".codex/hooks.json": otherVersion(t)}, want: "is of version \"v1.2.2\""},
		"codex, its server":  {agent: codex, changed: map[string]func(string) string{".codex/config.toml": otherServer("/nonexistent/parley-client")}, want: "/nonexistent/parley-client, does not run"},
		"codex, other state": {agent: codex, options: func(o *Options) { o.State = "/elsewhere" }, want: "ask another node"},
	} {
		t.Run(name, func(t *testing.T) {
			o, home := person(t)
			if err := enter(t, test.agent, o); err != nil {
				t.Fatal(err)
			}
			// the program of the entries is this test, which says no version
			for _, path := range []string{own, ".claude.json", ".codex/hooks.json", ".codex/config.toml"} {
				if text, err := os.ReadFile(filepath.Join(home, path)); err == nil {
					writeText(t, filepath.Join(home, path), strings.ReplaceAll(string(text), os.Args[0], fakeParley(t, "parley", testVersion)))
				}
			}
			for path, change := range test.changed {
				writeText(t, filepath.Join(home, path), change(readText(t, filepath.Join(home, path))))
			}
			for path, text := range test.files {
				writeText(t, filepath.Join(home, path), strings.ReplaceAll(text, "HOME", home))
			}
			if test.options != nil {
				test.options(&o)
			}
			words, good := Check(t.Context(), test.agent, o)
			if good != (test.want == "") || !strings.Contains(words, test.want) || !strings.Contains(words, strings.ReplaceAll(test.says, "HOME", home)) || good && (!strings.HasPrefix(words, "asks ") || !strings.Contains(words, ". Where no node runs, or nobody follows the inbox: ")) {
				t.Errorf("%t: %s", good, words)
			}
		})
	}
}

// TestCheckSaysWhereHooksOfAProjectHold enters the hooks for a project alone, and then for the person too. Claude Code reads a project's
// settings in the folder that it is started in alone, and a worktree has those that are committed.
func TestCheckSaysWhereHooksOfAProjectHold(t *testing.T) {
	const limit = "in a worktree of it (--worktree) once its .claude/settings.json is committed"
	o, home := person(t)
	program := fakeParley(t, "parley", testVersion) // that of the entries is this test
	for _, project := range []bool{true, false} {
		o.Project = project
		if err := enter(t, hook.ClaudeCode(), o); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(home, "project", ".mcp.json")); project && err != nil { // it has this test as Parley's server
			t.Fatal(err)
		}
		for _, path := range []string{"project/.claude/settings.json", ".claude/settings.json", ".claude.json"} {
			if text, err := os.ReadFile(filepath.Join(home, path)); err == nil {
				writeText(t, filepath.Join(home, path), strings.ReplaceAll(string(text), os.Args[0], program))
			}
		}
		if words, _ := Check(t.Context(), hook.ClaudeCode(), o); strings.Contains(words, limit) != project {
			t.Errorf("for the project alone %t: %s", project, words)
		}
	}
}

// othersOn returns settings with a hook of others on an event.
func othersOn(event string) string {
	return `{"hooks": {"` + event + `": [{"matcher": "", "hooks": [{"type": "command", "command": "echo \n yes"}]}]}}`
}

// frontMatter returns a Markdown file with a hook on an event.
func frontMatter(event string) string {
	return "---\nname: a\ndescription: does it\nhooks:\n  " + event + ":\n    - matcher: Bash\n      hooks:\n        - type: command\n          command: echo yes\n---\nDo it.\n"
}

func programGone(text string) string {
	at := strings.Index(text, `/parley hook`)
	begin := strings.LastIndexByte(text[:at], '"') + 1
	return strings.ReplaceAll(text, text[begin:at], "/nonexistent")
}

// otherVersion has the hooks run a client of another version.
func otherVersion(t *testing.T) func(string) string {
	t.Helper()
	client := fakeParley(t, clientName, "v1.2.2")
	return func(text string) string {
		return strings.ReplaceAll(programGone(text), "/nonexistent/parley hook", client+" hook")
	}
}

// otherServer has another program be the MCP server.
func otherServer(program string) func(string) string {
	return func(text string) string {
		at := strings.Index(text, `/parley"`)
		begin := strings.LastIndexByte(text[:at], '"') + 1
		return text[:begin] + program + text[at+len("/parley"):]
	}
}

// testVersion is the version of the program that these tests are.
const testVersion = "v1.2.3"

// fakeParley returns a program that says a version.
func fakeParley(t *testing.T, name, version string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho "+version+"\n"), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	return path
}

// TestCheckIsSilentWithoutAgents finds nothing where neither settings nor programs are, and does not wait for a pipe.
func TestCheckIsSilentWithoutAgents(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	o, home := person(t)
	for _, agent := range hook.Agents() {
		if words, good := Check(t.Context(), agent, o); words != "" || !good {
			t.Errorf("%s: %s", agent.Name, words)
		}
	}
	if err := os.MkdirAll(filepath.Join(home, "project", ".claude", "settings.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	if words, good := Check(t.Context(), hook.ClaudeCode(), o); good || !strings.Contains(words, "it is no file") {
		t.Errorf("a folder in the place of settings: %s", words)
	}
}
