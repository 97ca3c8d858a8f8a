package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"parley/cmd/parley/hook"
	"parley/cmd/parley/modeltest"
)

// askUser is a call of the MCP server's ask_user, by the tool's name.
func askUser(tool, message string) modeltest.Call {
	return modeltest.Call{Tool: tool, Input: map[string]any{
		"title": "Colour", "message": message, "fields": []any{map[string]any{"name": "colour", "label": "Colour", "type": "text"}},
	}}
}

// answerColour answers a form with a colour.
func answerColour(t *testing.T, state, number, colour string) {
	t.Helper()
	if _, errs, exit := runTest(t.Context(), state, nil, "answer", number, "--value", "colour:"+colour); exit != 0 {
		t.Fatal(errs)
	}
}

// senderOf returns the name of the sender of a message in the inbox that has a text.
func senderOf(t *testing.T, state, text string) string {
	t.Helper()
	out, errs, exit := runTest(t.Context(), state, nil, "inbox", "--all")
	for line := range strings.Lines(out) {
		if strings.Contains(line, text) {
			_, rest, _ := strings.Cut(line, `"`)
			name, _, _ := strings.Cut(rest, `"`)
			return name
		}
	}
	t.Fatalf("no message with %s: %d %s\n%s", text, exit, errs, out)
	return ""
}

// isSessionOf reports whether a name is that of a session of an address.
func isSessionOf(name, address string) bool {
	number, ok := strings.CutPrefix(name, address+"-")
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}

// TestCodexAsksByTool has Codex read its instructions, and ask through the MCP server, where no hook asks.
func TestCodexAsksByTool(t *testing.T) {
	t.Parallel()
	const prompt = "Paint it"
	c := newCodex(t, modeltest.Script{Prompt: prompt, Turns: []modeltest.Turn{
		{Calls: []modeltest.Call{askUser("mcp__parley.ask_user", "Which colour does Codex take?")}}, {Text: "I am ready"},
	}})
	state := c.setUp(t, "codex")
	end := c.background(t, "exec", "--skip-git-repo-check", prompt)
	answerColour(t, state, awaitQuestion(t, state, "Which colour does Codex take?"), "mauve")
	end()
	if results := c.model.Results(prompt); len(results) != 1 || !strings.Contains(results[0].Text, "mauve") {
		t.Errorf("the model has read %q", results)
	}
	if words := c.model.Instructions(prompt); !strings.Contains(words, "call the tool `ask_user` of the MCP server `parley`") {
		t.Errorf("the instructions do not name ask_user: %s", words)
	}
}

// TestCodexAsksInTerminal has Codex leave its sandbox twice. The host allows one call and denies the other. Its MCP server
// acts for the same guest.
func TestCodexAsksInTerminal(t *testing.T) {
	t.Parallel()
	for _, variable := range byDay(t, 1, newestCodex, olderCodex) {
		t.Run(variable, func(t *testing.T) { t.Parallel(); codexAsksInTerminal(t, variable) })
	}
}

func codexAsksInTerminal(t *testing.T, variable string) {
	const prompt = "Make two files"
	leave := func(line string) modeltest.Call {
		return modeltest.Call{Tool: "exec_command", Input: map[string]any{"cmd": line, "sandbox_permissions": "require_escalated", "justification": "May I?"}}
	}
	c := newCodexOf(t, variable, modeltest.Script{Prompt: prompt, Turns: []modeltest.Turn{
		{Calls: []modeltest.Call{leave("touch wanted.txt")}}, {Calls: []modeltest.Call{leave("touch unwanted.txt")}},
		{Calls: []modeltest.Call{askUser("mcp__parley.ask_user", "Which colour does Codex take?")}}, {Text: "I am ready"},
	}})
	state := c.setUp(t, "codex")
	attend(t, state)
	terminal := inTerminal(t, c.command(t.Context(), "--no-alt-screen", "--no-daemon", "--dangerously-bypass-hook-trust", "-a", "on-request", "-s", "workspace-write", prompt))
	decide(t, state, "allow", awaitCall(t, state, "touch wanted.txt"))
	number := awaitCall(t, state, "touch unwanted.txt")
	if !isThere(c.project, "wanted.txt") {
		t.Error("the command has not run, though it was allowed")
	}
	decide(t, state, "deny", number, "--message", "one file is enough")
	answerColour(t, state, awaitQuestion(t, state, "Which colour does Codex take?"), "mauve")
	terminal.expect(t, "I am ready")
	results := c.model.Results(prompt)
	if len(results) != 3 || !strings.Contains(results[1].Text, "one file is enough") || !strings.Contains(results[2].Text, "mauve") {
		t.Errorf("the model has read %q", results)
	}
	if isThere(c.project, "unwanted.txt") {
		t.Error("the command has run, though it was denied")
	}
	if hook, tool := senderOf(t, state, "touch wanted.txt"), senderOf(t, state, "Which colour does Codex take?"); !isSessionOf(tool, hook) || !strings.HasPrefix(hook, "codex-project-") {
		t.Errorf("the hook asks as %s, and the tool as %s", hook, tool)
	}
}

// TestCodexAsksAboutOtherServers has Codex call two tools of another MCP server, without Parley and with it. What a server calls read-only it
// calls without a question.
func TestCodexAsksAboutOtherServers(t *testing.T) {
	t.Parallel()
	const prompt = "Paint it"
	call := func(tool string) modeltest.Turn {
		return modeltest.Turn{Calls: []modeltest.Call{{Tool: "mcp__painter." + tool, Input: map[string]any{}}}}
	}
	for _, with := range []bool{false, true} {
		t.Run(fmt.Sprintf("with Parley: %t", with), func(t *testing.T) {
			t.Parallel()
			c := newCodex(t, modeltest.Script{Prompt: prompt, Turns: []modeltest.Turn{call("look"), call("paint"), {Text: "I am ready"}}})
			config := filepath.Join(c.home, ".codex", "config.toml")
			text, err := os.ReadFile(config)
			if err != nil {
				t.Fatal(err)
			}
			c.writeText(t, config, string(text)+"[mcp_servers.painter]\ncommand = \""+elicitor+"\"\n")
			want := "requires approval, but approval policy is never"
			if with {
				state := c.setUp(t, "codex")
				attend(t, state)
				want = "denied in Parley: nobody has looked at it"
				end := c.background(t, "exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", prompt)
				decide(t, state, "deny", awaitCall(t, state, "{}"), "--message", "nobody has looked at it")
				end()
			} else {
				c.print(t, "exec", "--skip-git-repo-check", prompt)
			}
			results := c.model.Results(prompt)
			if len(results) != 2 || !strings.Contains(results[0].Text, "it is white") || !strings.Contains(results[1].Text, want) {
				t.Errorf("the model has read %q", results)
			}
		})
	}
}

// TestCodexAloneDenies has Codex leave its sandbox where it has no prompt: no hook asks.
func TestCodexAloneDenies(t *testing.T) {
	t.Parallel()
	const prompt = "Make a file"
	c := newCodex(t, modeltest.Script{Prompt: prompt, Turns: []modeltest.Turn{
		{Calls: []modeltest.Call{{Tool: "exec_command", Input: map[string]any{"cmd": "touch a.txt", "sandbox_permissions": "require_escalated", "justification": "May I?"}}}},
		{Text: "I am ready"},
	}})
	attend(t, c.setUp(t, "codex"))
	c.print(t, "exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", prompt)
	if results := c.model.Results(prompt); isThere(c.project, "a.txt") || len(results) != 1 {
		t.Errorf("the command has run: %q", results)
	}
}

// TestCodexWithdrawsWhatItNoLongerAsks interrupts Codex, and kills it, while its hook asks. The host's "never" comes too
// late then.
func TestCodexWithdrawsWhatItNoLongerAsks(t *testing.T) {
	t.Parallel()
	const prompt = "Make a file"
	for name, end := range map[string]func(t *testing.T, s *terminalTest, state string){
		"interrupted": func(t *testing.T, s *terminalTest, state string) { s.interrupt(t, state) },
		"killed":      func(t *testing.T, s *terminalTest, _ string) { s.kill(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCodex(t, modeltest.Script{Prompt: prompt, Turns: []modeltest.Turn{
				{Calls: []modeltest.Call{{Tool: "exec_command", Input: map[string]any{"cmd": "touch a.txt", "sandbox_permissions": "require_escalated", "justification": "May I?"}}}},
				{Text: "I am ready"},
			}})
			state := c.setUp(t, "codex")
			attend(t, state)
			terminal := inTerminal(t, c.command(t.Context(), "--no-alt-screen", "--no-daemon", "--dangerously-bypass-hook-trust", "-a", "on-request", "-s", "workspace-write", prompt))
			number := awaitCall(t, state, "touch a.txt")
			end(t, terminal, state)
			awaitNoCall(t, state)
			if _, errs, exit := runTest(t.Context(), state, nil, "permit", "deny", number, "--always"); exit == 0 || !strings.Contains(errs, "ALREADY_CANCELLED") {
				t.Errorf("never is answered by %d, %s", exit, errs)
			}
			if isThere(c.project, "a.txt") {
				t.Error("the command has run")
			}
		})
	}
}

// TestCodexBlocksWhereTheHookFails has a hook of others allow each call, kills Parley's while its approval is open, and takes its
// program away. The next call is allowed in Parley.
func TestCodexBlocksWhereTheHookFails(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the hook's process is found in /proc")
	}
	const (
		prompt = "Make two files"
		allows = `echo '{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}'`
	)
	leave := func(line string) modeltest.Turn {
		return modeltest.Turn{Calls: []modeltest.Call{{Tool: "exec_command", Input: map[string]any{"cmd": line, "sandbox_permissions": "require_escalated", "justification": "May I?"}}}}
	}
	for _, test := range byDay(t, 2, []struct{ agent, fault string }{{newestCodex, "killed"}, {newestCodex, "gone"}, {olderCodex, "killed"}, {olderCodex, "gone"}}...) {
		t.Run(test.agent+"/"+test.fault, func(t *testing.T) {
			t.Parallel()
			turns := []modeltest.Turn{leave("touch unwanted.txt"), leave("touch wanted.txt"), {Text: "I am ready"}}
			if test.fault == "gone" {
				turns = slices.Delete(turns, 1, 2)
			}
			c := newCodexOf(t, test.agent, modeltest.Script{Prompt: prompt, Turns: turns})
			c.write(t, filepath.Join(c.project, ".codex", "hooks.json"), map[string]any{"hooks": map[string]any{
				hook.PermissionRequest: []any{map[string]any{"hooks": []any{map[string]any{"type": "command", "command": allows}}}},
			}})
			state := c.setUp(t, "codex")
			attend(t, state)
			if test.fault == "gone" {
				c.loseProgram(t, filepath.Join(c.home, ".codex", "hooks.json"), "codex")
			}
			terminal := inTerminal(t, c.command(t.Context(), "--no-alt-screen", "--no-daemon", "--dangerously-bypass-hook-trust", "-a", "on-request", "-s", "workspace-write", prompt))
			if test.fault == "killed" {
				awaitCall(t, state, "touch unwanted.txt")
				process, _ := hookProcess(t, state)
				kill(t, process)
				decide(t, state, "allow", awaitCall(t, state, "touch wanted.txt"))
			}
			terminal.expect(t, "I am ready")
			results := c.model.Results(prompt)
			if isThere(c.project, "unwanted.txt") || len(results) != len(turns)-1 || !strings.Contains(results[0].Text, "parley setup codex --remove") {
				t.Errorf("the command has run: %q", results)
			}
			if test.fault == "killed" && !isThere(c.project, "wanted.txt") {
				t.Errorf("the command that was allowed has not run: %q", results)
			}
		})
	}
}

// TestCodexWhereTheHookDiesWithItsShell kills the hook and the shell that ends for it. Codex asks at its own prompt then, and runs a call
// that a hook of others allows.
func TestCodexWhereTheHookDiesWithItsShell(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the hook's process is found in /proc")
	}
	const (
		prompt = "Make a file"
		allows = `echo '{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}'`
	)
	for _, test := range byDay(t, 2, []struct {
		agent  string
		others bool
	}{{newestCodex, true}, {newestCodex, false}, {olderCodex, true}, {olderCodex, false}}...) {
		t.Run(fmt.Sprintf("%s/others=%t", test.agent, test.others), func(t *testing.T) {
			t.Parallel()
			c := newCodexOf(t, test.agent, modeltest.Script{Prompt: prompt, Turns: []modeltest.Turn{
				{Calls: []modeltest.Call{{Tool: "exec_command", Input: map[string]any{"cmd": "touch a.txt", "sandbox_permissions": "require_escalated", "justification": "May I?"}}}},
				{Text: "I am ready"},
			}})
			if test.others {
				c.write(t, filepath.Join(c.project, ".codex", "hooks.json"), map[string]any{"hooks": map[string]any{
					hook.PermissionRequest: []any{map[string]any{"hooks": []any{map[string]any{"type": "command", "command": allows}}}},
				}})
			}
			state := c.setUp(t, "codex")
			attend(t, state)
			terminal := inTerminal(t, c.command(t.Context(), "--no-alt-screen", "--no-daemon", "--dangerously-bypass-hook-trust", "-a", "on-request", "-s", "workspace-write", prompt))
			awaitCall(t, state, "touch a.txt")
			process, shell := hookProcess(t, state)
			kill(t, shell)
			kill(t, process)
			if test.others {
				terminal.expect(t, "I am ready")
			} else {
				terminal.expect(t, "Would you like to run the following command?")
			}
			if isThere(c.project, "a.txt") != test.others {
				t.Errorf("the call has run: %t", !test.others)
			}
			awaitNoCall(t, state)
		})
	}
}

// TestCodexAsksBesideHooksThatAllow has a hook of others allow a call that the host denies.
func TestCodexAsksBesideHooksThatAllow(t *testing.T) {
	t.Parallel()
	const (
		prompt = "Make a file"
		allows = `echo '{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}'`
	)
	for _, agent := range byDay(t, 1, newestCodex, olderCodex) {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			c := newCodexOf(t, agent, modeltest.Script{Prompt: prompt, Turns: []modeltest.Turn{
				{Calls: []modeltest.Call{{Tool: "exec_command", Input: map[string]any{"cmd": "touch a.txt", "sandbox_permissions": "require_escalated", "justification": "May I?"}}}},
				{Text: "I am ready"},
			}})
			c.write(t, filepath.Join(c.project, ".codex", "hooks.json"), map[string]any{"hooks": map[string]any{
				hook.PermissionRequest: []any{map[string]any{"hooks": []any{map[string]any{"type": "command", "command": allows}}}},
			}})
			state := c.setUp(t, "codex")
			attend(t, state)
			terminal := inTerminal(t, c.command(t.Context(), "--no-alt-screen", "--no-daemon", "--dangerously-bypass-hook-trust", "-a", "on-request", "-s", "workspace-write", prompt))
			decide(t, state, "deny", awaitCall(t, state, "touch a.txt"), "--message", "not that")
			terminal.expect(t, "I am ready")
			if results := c.model.Results(prompt); isThere(c.project, "a.txt") || len(results) != 1 || !strings.Contains(results[0].Text, "not that") {
				t.Errorf("the command has run: %q", results)
			}
		})
	}
}

// TestClaudeCodeIsOneGuest has Claude Code ask through its hook and through its MCP server.
func TestClaudeCodeIsOneGuest(t *testing.T) {
	t.Parallel()
	const prompt = "Paint it"
	c := newClaude(t, modeltest.Script{Prompt: prompt, Turns: []modeltest.Turn{
		{Calls: []modeltest.Call{bash("touch paint.txt")}}, {Calls: []modeltest.Call{askUser("mcp__parley__ask_user", "Which colour does Claude take?")}}, {Text: "I am ready"},
	}})
	state := c.setUp(t, "claude-code")
	attend(t, state)
	end := c.background(t, "-p", prompt)
	decide(t, state, "allow", awaitCall(t, state, "touch paint.txt"))
	answerColour(t, state, awaitQuestion(t, state, "Which colour does Claude take?"), "mauve")
	end()
	if results := c.model.Results(prompt); len(results) != 2 || !strings.Contains(results[1].Text, "mauve") {
		t.Errorf("the model has read %q", results)
	}
	if hook, tool := senderOf(t, state, "touch paint.txt"), senderOf(t, state, "Which colour does Claude take?"); !isSessionOf(tool, hook) || !strings.HasPrefix(hook, "claude-code-project-") {
		t.Errorf("the hook asks as %s, and the tool as %s", hook, tool)
	}
}
