package setup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/cmd/parley/hook"
)

// person returns options for a person whose home folder is new, and the folder.
func person(t *testing.T) (Options, string) {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	project := filepath.Join(home, "project")
	if err := os.Mkdir(project, 0o700); err != nil {
		t.Fatal(err)
	}
	return Options{
		Folder: project, Home: home, State: "/state", Default: "/default", Managed: filepath.Join(home, "managed"),
		Env: func(string) (string, bool) { return "", false }, Version: testVersion,
	}, home
}

func writeText(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func enter(t *testing.T, agent hook.Agent, o Options) error {
	t.Helper()
	files, err := Files(t.Context(), agent, o)
	if err != nil {
		return err
	}
	return Write(files)
}

// TestSetupTakesOutWhatItEntered enters everything in files of all kinds, and takes it out: to the byte, and where others
// changed the file meanwhile, all but their words.
func TestSetupTakesOutWhatItEntered(t *testing.T) {
	claude, codex := hook.ClaudeCode(), hook.Codex()
	for name, test := range map[string]struct {
		agent       hook.Agent
		file        string
		text        string              // "" for no file
		meanwhile   func(string) string // changes the file by hand
		want        string
		wantMissing bool
	}{
		"nothing there":  {agent: claude, file: ".claude/settings.json", wantMissing: true},
		"in one line":    {agent: claude, file: ".claude/settings.json", text: `{"n":1.0,"hooks":{}}`, want: `{"n":1.0,"hooks":{}}`},
		"empty":          {agent: claude, file: ".claude/settings.json", text: "{}\n", want: "{}\n"},
		"byte order":     {agent: claude, file: ".claude/settings.json", text: "\ufeff{\"model\":\"opus\"}\r\n", want: "\ufeff{\"model\":\"opus\"}\r\n"},
		"other hooks":    {agent: claude, file: ".claude/settings.json", text: "{\n\t\"hooks\": {\"PreToolUse\": [{\"matcher\": \"Bash\",   \"hooks\": [ {\"type\": \"command\", \"command\": \"mine\"} ]}]}\n}", want: "{\n\t\"hooks\": {\"PreToolUse\": [{\"matcher\": \"Bash\",   \"hooks\": [ {\"type\": \"command\", \"command\": \"mine\"} ]}]}\n}"},
		"changed since":  {agent: claude, file: ".claude/settings.json", text: "{\r\n    \"model\": \"opus\"\r\n}\r\n", meanwhile: replacing("\"opus\"", "\"haiku\", \"x\": 1e2"), want: "{\r\n    \"model\": \"haiku\", \"x\": 1e2\r\n}\r\n"},
		"added since":    {agent: claude, file: ".claude/settings.json", meanwhile: replacing("{\n  \"hooks\"", "{\n  \"theme\": \"dark\",\n  \"hooks\""), want: "{\n  \"theme\": \"dark\"\n}\n"},
		"hooks since":    {agent: claude, file: ".claude/settings.json", meanwhile: replacing("\"PreToolUse\": [", "\"PreToolUse\": [\n      {\"hooks\": []},"), want: "{\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\"hooks\": []}\n    ]\n  }\n}\n"},
		"servers":        {agent: claude, file: ".claude.json", text: "{\"numStartups\": 7,\n\"mcpServers\": {\"gh\": {\"url\": \"u\"}}}", meanwhile: replacing("7", "8"), want: "{\"numStartups\": 8,\n\"mcpServers\": {\"gh\": {\"url\": \"u\"}}}"},
		"another server": {agent: claude, file: ".claude.json", meanwhile: replacing(`"command"`, `"url": "u", "command_"`), want: ""},
		"toml":           {agent: codex, file: ".codex/config.toml", text: "# mine\na = 1", want: "# mine\na = 1"},
		"toml since":     {agent: codex, file: ".codex/config.toml", text: "a = 1\r\n", meanwhile: adding("\r\n[features]\r\nx = true\r\n"), want: "a = 1\r\n\r\n[features]\r\nx = true\r\n"},
		"toml within": {agent: codex, file: ".codex/config.toml", text: "a = 1\n", meanwhile: func(text string) string {
			return strings.Replace(text, blockEnd, "\n[mcp_servers.parley.tools.ask_user]\napproval_mode = \"approve\"\n\n[hooks.state]\n\n[hooks.state.\"x\"]\ntrusted_hash = \"y\"\n"+blockEnd, 1)
		}, want: "a = 1\n\n[hooks.state]\n\n[hooks.state.\"x\"]\ntrusted_hash = \"y\"\n"},
		"toml of ours": {agent: codex, file: ".codex/config.toml", wantMissing: true},
		"words":        {agent: codex, file: ".codex/AGENTS.md", text: "# House\n\n", want: "# House\n\n"},
		"words since":  {agent: codex, file: ".codex/AGENTS.md", meanwhile: adding("\nBe brief.\n"), want: "\nBe brief.\n"},
		"codex hooks":  {agent: codex, file: ".codex/hooks.json", text: "{\"hooks\": {\"Stop\": []}}", want: "{\"hooks\": {\"Stop\": []}}"},
	} {
		t.Run(name, func(t *testing.T) {
			o, home := person(t)
			path := filepath.Join(home, test.file)
			if test.text != "" {
				writeText(t, path, test.text)
			}
			if err := enter(t, test.agent, o); err != nil {
				t.Fatal(err)
			}
			if entered := readText(t, path); entered == test.text {
				t.Fatalf("entered is %q", entered)
			}
			if test.meanwhile != nil {
				writeText(t, path, test.meanwhile(readText(t, path)))
			}
			changed := readText(t, path)
			o.Remove = true
			if err := enter(t, test.agent, o); err != nil {
				t.Fatal(err)
			}
			_, err := os.Stat(path)
			if os.IsNotExist(err) != test.wantMissing {
				t.Fatalf("the file is gone: %t", os.IsNotExist(err))
			}
			if test.wantMissing {
				if _, err := os.Stat(filepath.Dir(path)); err == nil && filepath.Dir(path) != home {
					t.Error("the folder that setup has made is still there")
				}
				return
			}
			want := test.want
			if name == "another server" {
				want = changed // it is not Parley's any more
			}
			if is := readText(t, path); is != want {
				t.Errorf("it became %q, want %q", is, want)
			}
			if _, err := os.Stat(path + BackupSuffix); err == nil && test.meanwhile == nil {
				t.Error("the copy is still there, though it is the file itself")
			}
		})
	}
}

func replacing(old, with string) func(string) string {
	return func(text string) string { return strings.Replace(text, old, with, 1) }
}

func adding(more string) func(string) string { return func(text string) string { return text + more } }

// TestSetupReplacesEarlierEntries brings entries of earlier setups to the present form, and keeps the file from before all.
func TestSetupReplacesEarlierEntries(t *testing.T) {
	o, home := person(t)
	path := filepath.Join(home, ".claude", "settings.json")
	earlier := `{"hooks": {"Notification": [{"hooks": [{"type": "command", "command": "parley hook claude-code"}]}],
"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "'/opt/my tools/parley' hook claude-code --as fae", "timeout": 600}, {"type": "command", "command": "mine"}]},
{"matcher": "*", "hooks": [{"type": "command", "command": "PARLEY_STATE=/x /opt/parley hook claude-code", "timeout": 600}]}]}}`
	writeText(t, path, earlier)
	o.Away = "deny"
	if err := enter(t, hook.ClaudeCode(), o); err != nil {
		t.Fatal(err)
	}
	d, ok := readDocument([]byte(readText(t, path)))
	if !ok {
		t.Fatal("it is no JSON")
	}
	own := d.own("claude-code")
	if len(own) != 13 {
		t.Errorf("%d hooks of its own: %+v", len(own), own)
	}
	for _, h := range own {
		shut := h.event == hook.PreToolUse || h.event == hook.PermissionRequest
		asks := shut || h.event == hook.Elicitation
		if h.matcher != "" || h.isShut("claude-code") != shut || (h.Timeout == 86400) != asks || strings.Contains(h.Command, "--when-away deny") != asks || (h.Failure == "block") != shut {
			t.Errorf("%s for %q has %+v", h.event, h.matcher, h.hookHandler)
		}
	}
	if !strings.Contains(string(d.text), `"command": "mine"`) || strings.Contains(string(d.text), "Notification") {
		t.Errorf("it became %s", d.text)
	}
	if _, err := os.Stat(path + BackupSuffix); err == nil {
		t.Error("a file that had entries was kept as the one before them")
	}
}

// TestProjectStaysInProject has links lead out of a project: nothing is written there.
func TestProjectStaysInProject(t *testing.T) {
	for link, agent := range map[string]hook.Agent{
		".claude": hook.ClaudeCode(), ".claude/settings.json": hook.ClaudeCode(), ".mcp.json": hook.ClaudeCode(),
		".codex": hook.Codex(), ".codex/config.toml": hook.Codex(), ".codex/hooks.json": hook.Codex(), "AGENTS.md": hook.Codex(),
	} {
		for _, there := range []bool{true, false} { // the file that the link leads to
			o, home := person(t)
			o.Project = true
			outside := filepath.Join(home, "outside", filepath.Base(link))
			if folder := !strings.Contains(filepath.Base(link)[1:], "."); folder {
				if err := os.MkdirAll(outside, 0o700); err != nil {
					t.Fatal(err)
				}
			} else if there {
				writeText(t, outside, "")
			}
			from := filepath.Join(o.Folder, link)
			if err := os.MkdirAll(filepath.Dir(from), 0o700); err != nil {
				t.Fatal(err)
			}
			to, err := filepath.Rel(filepath.Dir(from), outside)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(to, from); err != nil {
				t.Fatal(err)
			}
			if err := enter(t, agent, o); err == nil || !strings.Contains(err.Error(), "leads out of this project") {
				t.Errorf("%s: %v", link, err)
			}
			if text, err := os.ReadFile(outside); err == nil && len(text) > 0 {
				t.Errorf("%s: outside is %q", link, text)
			}
			if inside, err := os.ReadDir(outside); err == nil && len(inside) > 0 {
				t.Errorf("%s: outside has %v", link, inside)
			}
		}
	}
}

// TestProjectKeepsLinksInside follows a link within the project, and does not follow one in the place of the kept copy.
func TestProjectKeepsLinksInside(t *testing.T) {
	o, home := person(t)
	o.Project = true
	writeText(t, filepath.Join(o.Folder, "dotfiles", "settings.json"), "{}")
	writeText(t, filepath.Join(home, "mine"), "mine")
	if err := os.Symlink("dotfiles", filepath.Join(o.Folder, ".claude")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(home, "mine"), filepath.Join(o.Folder, "dotfiles", "settings.json"+BackupSuffix)); err != nil {
		t.Fatal(err)
	}
	if err := enter(t, hook.ClaudeCode(), o); err != nil {
		t.Fatal(err)
	}
	if text := readText(t, filepath.Join(o.Folder, "dotfiles", "settings.json")); !strings.Contains(text, "hook claude-code") {
		t.Errorf("it became %s", text)
	}
	if text := readText(t, filepath.Join(home, "mine")); text != "mine" {
		t.Errorf("the link in the place of the copy led to %q", text)
	}
}

// TestSetupKeepsWhatOthersWriteMeanwhile changes a file after it was read, up to the last moment.
func TestSetupKeepsWhatOthersWriteMeanwhile(t *testing.T) {
	o, home := person(t)
	path := filepath.Join(home, ".claude.json")
	for name, change := range map[string]func(){
		"changed": func() { writeText(t, path, `{"numStartups": 8}`) },
		"made":    func() { writeText(t, path, `{}`) },
		"removed": func() { _ = os.Remove(path) },
	} {
		_ = os.Remove(path)
		if name != "made" {
			writeText(t, path, `{"numStartups": 7}`)
		}
		files, err := Files(t.Context(), hook.ClaudeCode(), o)
		if err != nil {
			t.Fatal(err)
		}
		change()
		want, _ := os.ReadFile(path)
		if err := Write(files[1:]); err == nil || !strings.Contains(err.Error(), "changed by somebody else") {
			t.Errorf("%s: %v", name, err)
		}
		if is, _ := os.ReadFile(path); string(is) != string(want) {
			t.Errorf("%s: it became %s", name, is)
		}
	}
	left, err := filepath.Glob(filepath.Join(home, ".parley-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// TestSetupAgainKeepsTrust enters the MCP server of Codex a second time, after Codex has written within the block.
func TestSetupAgainKeepsTrust(t *testing.T) {
	o, home := person(t)
	if err := enter(t, hook.Codex(), o); err != nil {
		t.Fatal(err)
	}
	const trust = "\n[hooks.state.\"x\"]\ntrusted_hash = \"y\"\n"
	path := filepath.Join(home, ".codex", "config.toml")
	entered := readText(t, path)
	writeText(t, path, strings.Replace(entered, blockEnd, trust+blockEnd, 1))
	if err := enter(t, hook.Codex(), o); err != nil {
		t.Fatal(err)
	}
	if got := readText(t, path); got != entered+trust {
		t.Errorf("entered again: %q", got)
	}
}

// TestRemoveGoesOnAndKeepsOthersHooks has a file that cannot be changed, and a hook of a tool with a similar name.
func TestRemoveGoesOnAndKeepsOthersHooks(t *testing.T) {
	o, home := person(t)
	const other = `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"parley-lint hook claude-code"}]}]}}`
	settings := filepath.Join(home, ".claude", "settings.json")
	writeText(t, settings, other)
	if err := enter(t, hook.ClaudeCode(), o); err != nil {
		t.Fatal(err)
	}
	if text := readText(t, settings); !strings.Contains(text, "parley-lint") {
		t.Errorf("another tool's hook is gone: %s", text)
	}
	servers := readText(t, filepath.Join(home, ".claude.json"))
	o.Remove = true
	entered := readText(t, settings)
	writeText(t, settings, "// mine\n"+entered)
	files, err := Files(t.Context(), hook.ClaudeCode(), o)
	if err != nil {
		t.Fatal(err)
	}
	done, failed := TakeOut(files, false)
	if len(done) != 1 || len(failed) != 1 || !strings.Contains(servers, `"parley"`) {
		t.Fatalf("changed %+v, failed %v", done, failed)
	}
	if _, err := os.Stat(filepath.Join(home, ".claude.json")); err == nil {
		t.Error("the MCP server is still entered")
	}
	writeText(t, settings, entered)
	if files, err = Files(t.Context(), hook.ClaudeCode(), o); err != nil {
		t.Fatal(err)
	}
	TakeOut(files, false)
	if text := readText(t, settings); !strings.Contains(text, "parley-lint") || strings.Contains(text, "hook claude-code --") {
		t.Errorf("after the removal: %s", text)
	}
}

// TestRemoveGoesOnPastAFileThatCannotBeRead has a folder in the place of the first file, and a link out of the project.
func TestRemoveGoesOnPastAFileThatCannotBeRead(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, path, home string){
		"a folder": func(t *testing.T, path, _ string) {
			if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
				t.Fatal(err)
			}
		},
		"a link": func(t *testing.T, path, home string) {
			writeText(t, filepath.Join(home, "mine"), "mine")
			if err := errors.Join(os.Remove(path), os.Symlink(filepath.Join(home, "mine"), path)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, home := person(t)
			o.Project = true
			if err := enter(t, hook.ClaudeCode(), o); err != nil {
				t.Fatal(err)
			}
			spoil(t, filepath.Join(o.Folder, ".claude", "settings.json"), home)
			o.Remove = true
			files, err := Files(t.Context(), hook.ClaudeCode(), o)
			if err != nil {
				t.Fatal(err)
			}
			if _, failed := TakeOut(files, true); len(failed) != 1 {
				t.Errorf("only looked at, %v fail", failed)
			}
			done, failed := TakeOut(files, false)
			if len(failed) != 1 || len(done) == 0 {
				t.Errorf("taken out of %+v, failed %v", done, failed)
			}
			if _, err := os.Stat(filepath.Join(o.Folder, ".mcp.json")); err == nil {
				t.Error("the MCP server is still entered")
			}
		})
	}
}

// TestPluginIsOneFile enters the plugin of OpenCode, again, and takes it out. Another file in its place is left alone, and what
// the file runs is what setup enters.
func TestPluginIsOneFile(t *testing.T) {
	o, home := person(t)
	path := filepath.Join(home, ".config", "opencode", "plugins", "parley.js")
	files, err := Files(t.Context(), hook.OpenCode(), o)
	if err != nil || len(files) != 1 || files[0].Path != path || !files[0].Changed {
		t.Fatalf("%+v, %v", files, err)
	}
	if err := Write(files); err != nil {
		t.Fatal(err)
	}
	text := readText(t, path)
	command := pluginCommand([]byte(text))
	if len(command) < 3 || command[1] != "hook" || command[2] != "opencode" || strings.Contains(text, "= HOOK") || strings.Contains(text, "= SERVER") {
		t.Errorf("the plugin runs %q", command)
	}
	if files, err := Files(t.Context(), hook.OpenCode(), o); err != nil || files[0].Changed {
		t.Errorf("it is entered again: %+v, %v", files, err)
	}
	if nodes := Nodes(hook.OpenCode(), files, o); len(nodes) != 0 { // nothing was there before
		t.Errorf("the nodes are %q", nodes)
	}
	out := o
	out.Remove = true
	files, err = Files(t.Context(), hook.OpenCode(), out)
	if err != nil || !files[0].Gone {
		t.Fatalf("%+v, %v", files, err)
	}
	if done, failed := TakeOut(files, false); len(done) != 1 || len(failed) > 0 {
		t.Fatal(done, failed)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the plugin is left: %v", err)
	}
	writeText(t, path, "export const Mine = async () => ({});\n")
	if err := enter(t, hook.OpenCode(), o); err == nil || !strings.Contains(err.Error(), "it is not Parley's") {
		t.Errorf("another plugin of the name: %v", err)
	}
	if files, err := Files(t.Context(), hook.OpenCode(), out); err != nil || files[0].Changed {
		t.Errorf("another plugin is taken out: %+v, %v", files, err)
	}
}
