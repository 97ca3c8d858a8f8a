package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/cmd/parley/hook"
	"parley/cmd/parley/setup"
)

// onPath puts the coding agent on the path of the commands of a test, under the name that it is found by.
func (c *coderTest) onPath(t *testing.T, name string) {
	t.Helper()
	folder := t.TempDir()
	if err := os.Symlink(c.program, filepath.Join(folder, name)); err != nil {
		t.Fatal(err)
	}
	for i, variable := range c.env {
		if path, ok := strings.CutPrefix(variable, "PATH="); ok {
			c.env[i] = "PATH=" + folder + string(filepath.ListSeparator) + path
		}
	}
}

// filesIn returns the files below a folder, with their contents.
func filesIn(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		all[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// doctor returns what the doctor says of a coding agent.
func (c *coderTest) doctor(t *testing.T, agent, state string) string {
	t.Helper()
	out, err := c.parley(t, "doctor", "--state", state).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, agent+"  ") {
			return line
		}
	}
	t.Fatalf("nothing about %s: %s", agent, out)
	return ""
}

// TestDoctorTriesClaudeCode has the doctor make a call through Claude Code, with hooks that are called and with such that
// are not, though no file switches them off. It changes nothing, and asks nobody.
func TestDoctorTriesClaudeCode(t *testing.T) {
	t.Parallel()
	c := newClaude(t)
	c.onPath(t, "claude")
	state := nodeTest(t)
	foreign := filepath.Join(c.home, "foreign-hook-ran")
	c.write(t, filepath.Join(c.home, ".claude", "settings.json"), map[string]any{
		"permissions": map[string]any{"allow": []string{"Bash"}, "defaultMode": "acceptEdits"},
		"hooks":       map[string]any{"SessionStart": []any{map[string]any{"hooks": []any{map[string]any{"type": "command", "command": "touch " + foreign}}}}},
	})
	out, err := c.parley(t, "setup", "claude-code", "--state", state).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "note: Claude Code asks in every mode, but for what permissions.allow allows: Bash, version ") || !strings.Contains(string(out), "a call was tried, and refused") {
		t.Fatalf("%v: %s", err, out)
	}
	before := filesIn(t, c.home)
	doctor := func() string { return c.doctor(t, "claude code", state) }
	if line := doctor(); !strings.HasPrefix(line, "ok    claude code   asks in every mode, but for what permissions.allow allows: Bash, version ") {
		t.Error(line)
	}
	for path, text := range filesIn(t, c.home) {
		if before[path] != text {
			t.Errorf("%s was %q, and is %q", path, before[path], text)
		}
	}
	if out, _, _ := runTest(t.Context(), state, nil, "permit", "ls"); out != "" {
		t.Errorf("the call that is tried was raised: %s", out)
	}
	own := filepath.Join(c.home, ".claude", "settings.json")
	c.writeText(t, own, strings.Replace(before[own], "{", `{"env": {"CLAUDE_CODE_SIMPLE": "1"},`, 1))
	if line := doctor(); !strings.Contains(line, "warn  claude code   version ") || !strings.Contains(line, "the hook was not called") {
		t.Error(line)
	}
	for name, test := range map[string]struct{ was, is, says string }{
		"a failure that is hidden": {" || {", " || true || {", "where a hook fails the call runs"},
		"a wrapper":                {`"command": "`, `"command": "env A=1 `, "asks in every mode"},
	} {
		text := before[own]
		for _, event := range []string{"PreToolUse", "PermissionRequest"} {
			begin, at, _ := strings.Cut(text, `"`+event+`"`)
			text = begin + `"` + event + `"` + strings.Replace(at, test.was, test.is, 1)
		}
		c.writeText(t, own, text)
		if line := doctor(); !strings.Contains(line, test.says) {
			t.Errorf("%s: %s", name, line)
		}
	}
	c.writeText(t, own, strings.Replace(strings.ReplaceAll(before[own], " --state "+state, ""), "{", `{"env": {"XDG_STATE_HOME": "/elsewhere"},`, 1))
	command := c.parley(t, "doctor")
	if out, err := command.CombinedOutput(); err != nil || !strings.Contains(string(out), "the hook that is called asks another node") {
		t.Errorf("the person's own variables: %v: %s", err, out)
	}
	c.writeText(t, own, before[own])
	c.writeText(t, filepath.Join(c.project, ".claude", "settings.json"), `{"env": {"PARLEY_STATE": "/elsewhere", "XDG_STATE_HOME": "/elsewhere"}}`)
	if line := doctor(); !strings.Contains(line, "asks in every mode") {
		t.Errorf("variables of the repository: %s", line)
	}
	c.writeText(t, filepath.Join(c.project, ".claude", "settings.json"), `{"env": {"CLAUDE_CODE_SHELL_PREFIX": "/bin/true"}}`)
	if line := doctor(); !strings.Contains(line, ".claude/settings.json sets CLAUDE_CODE_SHELL_PREFIX") {
		t.Errorf("a shell of the repository: %s", line)
	}
}

// TestSetupAsksOnTerminal has setup ask what happens where nobody can be asked: Enter takes the default, and keys another.
func TestSetupAsksOnTerminal(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		keys  string
		count int // of hooks with the choice
	}{
		"the default": {keys: "\r"},
		"another":     {keys: "\x1b[B\x1b[B\r", count: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			command := exec.CommandContext(t.Context(), "parley", "setup", "claude-code", "--user", "--state", filepath.Join(home, "state"))
			command.Dir = home
			command.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", "GORACE=atexit_sleep_ms=0"}
			s := inTerminal(t, command)
			s.expect(t, "nobody follows the inbox")
			s.expect(t, "can be resumed")
			s.press(t, test.keys)
			s.expect(t, "--when-away changes it")
			text, err := os.ReadFile(filepath.Join(home, ".claude", "settings.json"))
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(text), " --when-away deny"); n != test.count {
				t.Errorf("%d hooks have it: %s", n, text)
			}
		})
	}
}

// trustHooks trusts the hooks of Codex, as /hooks does, and returns how many there are.
func (c *coderTest) trustHooks(t *testing.T) int {
	t.Helper()
	server := c.command(t.Context(), "app-server")
	in, err := server.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	requests := `{"id":1,"method":"initialize","params":{"clientInfo":{"name":"test","version":"1"}}}
{"method":"initialized"}
{"id":2,"method":"hooks/list","params":{"cwds":["` + c.project + `"]}}
`
	if _, err := io.WriteString(in, requests); err != nil {
		t.Fatal(err)
	}
	var answer struct {
		ID     int
		Result struct {
			Data []struct {
				Hooks []struct{ Key, CurrentHash string }
			}
		}
	}
	for messages := json.NewDecoder(out); answer.ID != 2; {
		if err := messages.Decode(&answer); err != nil {
			t.Fatal(err)
		}
	}
	_ = in.Close() // which ends it
	if err := server.Wait(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(c.home, ".codex", "config.toml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range answer.Result.Data[0].Hooks {
		text = fmt.Appendf(text, "[hooks.state.%q]\ntrusted_hash = %q\n", h.Key, h.CurrentHash)
	}
	c.writeText(t, path, string(text))
	return len(answer.Result.Data[0].Hooks)
}

// TestDoctorTriesCodex has the doctor make a call through Codex, with hooks that are called, and with such that are not.
// It changes nothing, and asks nobody.
func TestDoctorTriesCodex(t *testing.T) {
	t.Parallel()
	for _, variable := range byDay(t, 1, newestCodex, olderCodex) {
		t.Run(variable, func(t *testing.T) { t.Parallel(); doctorTriesCodex(t, variable) })
	}
}

func doctorTriesCodex(t *testing.T, variable string) {
	c := newCodexOf(t, variable)
	c.onPath(t, "codex")
	scratch := t.TempDir()
	c.env = append(c.env, "TMPDIR="+scratch)
	state := nodeTest(t)
	foreign := filepath.Join(c.home, "foreign-hook-ran")
	config, hooks := filepath.Join(c.home, ".codex", "config.toml"), filepath.Join(c.home, ".codex", "hooks.json")
	c.write(t, hooks, map[string]any{
		"hooks": map[string]any{"UserPromptSubmit": []any{map[string]any{"hooks": []any{map[string]any{"type": "command", "command": "touch " + foreign}}}}},
	})
	out, err := c.parley(t, "setup", "codex", "--state", state).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "you have not trusted the hooks on PreToolUse, PermissionRequest, PostToolUse, SessionStart, SessionEnd, UserPromptSubmit, Stop in "+hooks) {
		t.Fatalf("%v: %s", err, out)
	}
	if n := c.trustHooks(t); n != 8 {
		t.Fatalf("%d hooks", n)
	}
	sound := filesIn(t, c.home)
	inConfig := func(line string) map[string]string { return map[string]string{config: line + "\n" + sound[config]} }
	project := filepath.Join(c.project, ".codex", "config.toml")
	for _, row := range []struct {
		name  string
		files map[string]string
		state string // of another node
		want  string
	}{
		{name: "gated", want: ": a call was tried, and refused. Where no node runs, or nobody follows the inbox: Codex asks at its own prompt. codex exec "},
		{name: "hooks are off", files: inConfig("features.hooks = false"), want: "has hooks = false among its features"},
		{name: "untrusted", files: map[string]string{config: strings.ReplaceAll(sound[config], "trusted_hash", "# trusted_hash")}, want: "you have not trusted the hooks on PreToolUse, PermissionRequest, "},
		{name: "changed since", files: map[string]string{hooks: strings.ReplaceAll(sound[hooks], `"timeout": 86400`, `"timeout": 90000`)}, want: "you have not trusted the hooks on PermissionRequest in "},
		{name: "switched off", files: map[string]string{config: strings.ReplaceAll(sound[config], "trusted_hash", "enabled = false\ntrusted_hash")}, want: "are switched off: type /hooks in Codex"},
		{name: "an unknown member", files: map[string]string{hooks: strings.Replace(sound[hooks], "{", `{"more": 1,`, 1)}, want: "Codex does not take the hooks in " + hooks},
		{name: "no such program", files: map[string]string{hooks: strings.ReplaceAll(sound[hooks], "parley hook", "/nonexistent/parley hook")}, want: "does not run"},
		{name: "another node", state: nodeTest(t), want: "ask another node, that of " + state},
		{name: "never", files: inConfig(`approval_policy = "never"`), want: `has approval_policy = "never"`},
		{name: "never about the sandbox", files: inConfig("approval_policy = {granular = {sandbox_approval = false, rules = true, mcp_elicitations = true}}"), want: "no hook was called, and the call ended so: "},
		{name: "permissions for all", files: inConfig(`default_permissions = ":danger-full-access"`), want: "Codex RAN the call, and asked nobody"},
		{name: "permissions of the project", files: map[string]string{project: `default_permissions = ":danger-full-access"`}, want: "Codex RAN the call, and asked nobody"},
		{name: "no longer supported", files: inConfig(`approval_policy = "untrusted"`), want: "the call could not be tried: it has ended: exit status 1: approval_policy"},
	} {
		for path, text := range row.files {
			c.writeText(t, path, text)
		}
		before := filesIn(t, c.home)
		line, begin := c.doctor(t, "codex", cmp.Or(row.state, state)), "warn"
		if row.name == "gated" {
			begin = "ok  "
		}
		if !strings.HasPrefix(line, begin+"  codex ") || !strings.Contains(line, row.want) {
			t.Errorf("%s: %s", row.name, line)
		}
		if after := filesIn(t, c.home); !maps.Equal(before, after) {
			t.Errorf("%s: the doctor has changed files of %d", row.name, len(before))
		}
		for path := range row.files {
			c.writeText(t, path, sound[path])
		}
	}
	if left := filesIn(t, scratch); len(left) > 0 {
		t.Errorf("left behind: %v", slices.Collect(maps.Keys(left)))
	}
	if isThere(c.home, filepath.Base(foreign)) {
		t.Error("a hook of others was run")
	}
	if out, _, _ := runTest(t.Context(), state, nil, "permit", "ls"); out != "" {
		t.Errorf("the call that is tried was raised: %s", out)
	}
}

// TestEachChoiceOfSetupIsInWords checks that the question of setup describes each thing that the hook can do, and none as
// another.
func TestEachChoiceOfSetupIsInWords(t *testing.T) {
	said := map[string]hook.Away{}
	for _, a := range append([]hook.Away{""}, hook.ClaudeCode().Aways...) {
		words := setup.WhenAway(hook.ClaudeCode(), a)
		if other, twice := said[words]; twice {
			t.Errorf("%q is described as %q is", a, other)
		}
		said[words] = a
	}
}
