package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/cmd/parley/hook"
	"parley/cmd/parley/modeltest"
	"parley/internal/eventually"
)

// What a call does, in the words of the guide.
const (
	runsAlone  = "runs without a question"
	asksAlone  = "asks at its prompt"
	denies     = "denies"
	asksParley = "asks in Parley"
	asksBoth   = "asks in Parley and at its prompt; the first answer counts"
	allowsIt   = "asks in Parley; an allow runs it"
)

// claudeRows are the rows of the guide about the modes of Claude Code: what it does without Parley, and with it.
var claudeRows = []struct {
	label         string
	mode          string
	ways          []string
	without, with string
}{
	{"`default`, in a terminal", "default", []string{"terminal"}, asksAlone, asksBoth},
	{"`default`, with `-p`", "default", []string{"print"}, denies, allowsIt},
	{"`plan`, in a terminal or with `-p`", "plan", []string{"terminal", "print"}, runsAlone, asksParley},
	{"`auto`, in a terminal or with `-p`", "auto", []string{"terminal", "print"}, runsAlone, asksParley},
	{"`acceptEdits`, in a terminal or with `-p`", "acceptEdits", []string{"terminal", "print"}, runsAlone, asksParley},
	{"`bypassPermissions`, in a terminal or with `-p`", "bypassPermissions", []string{"terminal", "print"}, runsAlone, asksParley},
	{"`dontAsk`, in a terminal or with `-p`", "dontAsk", []string{"terminal", "print"}, denies, allowsIt},
}

// claudeWaysAround are the rows of the guide about calls that reach nobody, though Parley is set up: flags, and settings
// of the project or the person.
var claudeWaysAround = []struct {
	label, reason     string
	flags             []string
	project, personal string // settings
}{
	{"`--bare`", "no hook runs", []string{"--bare"}, "", ""},
	{"`disableAllHooks` in the person's or the project's settings, or in `--settings`", "no hook runs", []string{"--settings", `{"disableAllHooks":true}`}, "", ""},
	{"a rule in `permissions.allow` of any settings that Parley understands", "the call is left to Claude Code", nil, "", `{"permissions":{"allow":["Bash(touch a.txt)"]}}`},
	{"`--safe-mode`", "no hook runs", []string{"--safe-mode"}, "", ""},
	{"`--setting-sources` without the settings that have the hooks", "no hook runs", []string{"--setting-sources", "project"}, "", ""},
	{"", "", nil, `{"disableAllHooks":true}`, ""},
	{"", "", nil, `{"permissions":{"allow":["Bash(touch *)"]}}`, ""},
}

// codersGuide returns the text of the guide.
func codersGuide(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "coding-agents.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// outcome has Claude Code make a file in a mode, and returns what became of the call.
func outcome(t *testing.T, c *coderTest, prompt, way string, args ...string) string {
	t.Helper()
	if way == "print" {
		c.print(t, append([]string{"-p", prompt}, args...)...)
	} else {
		terminal := inTerminal(t, c.command(t.Context(), append([]string{prompt}, args...)...))
		asked := false
		eventually.Holds(t, "the call runs, is denied or asked about", func() bool {
			shown := terminal.shown()
			asked = strings.Contains(shown, "Doyouwanttoproceed?")
			return asked || strings.Contains(shown, "Iamready")
		})
		if asked {
			return asksAlone
		}
	}
	if isThere(c.project, "a.txt") {
		return runsAlone
	}
	return denies
}

// TestGuideSaysWhatClaudeCodeDoes runs Claude Code without Parley, and checks the rows of the guide. What it does with
// Parley is in TestClaudeCodeAsksInEveryMode.
func TestGuideSaysWhatClaudeCodeDoes(t *testing.T) {
	t.Parallel()
	const prompt = "Make a file"
	text := codersGuide(t)
	var printed, terminals []string // modes
	without := map[string]string{}  // by mode and way
	for _, row := range claudeRows {
		if line := "| " + row.label + " | " + row.without + " | " + row.with + " |"; !strings.Contains(text, line) {
			t.Errorf("the guide does not say %s", line)
		}
		if slices.Contains(row.ways, "print") {
			printed = append(printed, row.mode)
		}
		if slices.Contains(row.ways, "terminal") {
			terminals = append(terminals, row.mode)
		}
		for _, way := range row.ways {
			without[row.mode+"/"+way] = row.without
		}
	}
	t.Run("print", func(t *testing.T) { // in one session
		t.Parallel()
		var turns []modeltest.Turn
		for _, mode := range printed {
			turns = append(turns, modeltest.Turn{Calls: []modeltest.Call{bash("touch " + mode + ".txt")}}, modeltest.Turn{Text: "I am ready"})
		}
		c := newClaude(t, modeltest.Script{Prompt: prompt, Turns: turns})
		stream := c.inStream(t, "--permission-mode", "bypassPermissions")
		for _, mode := range printed {
			stream.setMode(t, mode)
			stream.prompt(t, prompt)()
			if got := map[bool]string{true: runsAlone, false: denies}[isThere(c.project, mode+".txt")]; got != without[mode+"/print"] {
				t.Errorf("in the mode %s it %s", mode, got)
			}
		}
	})
	for _, mode := range byDay(t, 1, terminals...) {
		t.Run(mode+"/terminal", func(t *testing.T) {
			t.Parallel()
			c := newClaude(t, modeltest.Script{Prompt: prompt, Turns: []modeltest.Turn{{Calls: []modeltest.Call{bash("touch a.txt")}}, {Text: "I am ready"}}})
			if got := outcome(t, c, prompt, "terminal", "--permission-mode", mode); got != without[mode+"/terminal"] {
				t.Errorf("it %s", got)
			}
		})
	}
	for _, line := range toolRows() {
		if !strings.Contains(text, line) {
			t.Errorf("the guide does not say\n%s", line)
		}
	}
}

// toolRows returns the rows of the guide about the tools of Claude Code: one for each reason.
func toolRows() (lines []string) {
	type reason struct{ asked, why string }
	var order []reason
	names := map[reason][]string{}
	for _, tool := range hook.ClaudeTools() {
		r := reason{"no", tool.Why}
		switch {
		case tool.Asked:
			r.asked = "yes"
		case tool.Depends():
			r.asked = "depends"
		}
		if names[r] == nil {
			order = append(order, r)
		}
		names[r] = append(names[r], "`"+tool.Name+"`")
	}
	for _, r := range order {
		lines = append(lines, "| "+strings.Join(names[r], ", ")+" | "+r.asked+" | "+r.why+" |")
	}
	return lines
}

// TestGuideSaysWhereHooksOfAProjectHold runs Claude Code below a project, and in a worktree of it, where its hooks hold once they are
// committed, and has it serve its tools to another program.
func TestGuideSaysWhereHooksOfAProjectHold(t *testing.T) {
	t.Parallel()
	const prompt = "Make a file"
	text := codersGuide(t)
	for _, row := range []string{
		"| hooks for a project, where Claude Code is started below its folder, or in a worktree (`--worktree`) whose commit does not have them | no hook runs |",
		"| `claude mcp serve` | no hook runs: another program calls its tools |",
	} {
		if !strings.Contains(text, row) {
			t.Errorf("the guide does not say %s", row)
		}
	}
	for _, test := range []struct {
		way  string
		runs bool
	}{{"below", true}, {"worktree", true}, {"worktree of a commit", false}, {"served", true}} {
		t.Run(test.way, func(t *testing.T) {
			t.Parallel()
			c := newClaude(t, modeltest.Script{Prompt: prompt, Turns: []modeltest.Turn{{Calls: []modeltest.Call{bash("touch a.txt")}}, {Text: "I am ready"}}})
			git := func(args ...string) {
				t.Helper()
				command := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
				command.Dir, command.Env = c.project, c.env
				if out, err := command.CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			git("init", "-q")
			git("commit", "-q", "--allow-empty", "-m", "first")
			state := c.setUp(t, "claude-code") // in a repository it is for the project
			attend(t, state)
			worktree := filepath.Join(c.project, ".claude", "worktrees", "other")
			args := []string{"--permission-mode", "bypassPermissions"}
			switch test.way {
			case "below":
				c.project = filepath.Join(c.project, "below")
				if err := os.Mkdir(c.project, 0o700); err != nil {
					t.Fatal(err)
				}
			case "worktree of a commit":
				git("add", ".claude/settings.json")
				git("commit", "-q", "-m", "second")
				fallthrough
			case "worktree":
				args = append(args, "--worktree", "other")
			}
			if test.way == "served" {
				client := sdk.NewClient(&sdk.Implementation{Name: "another", Version: "1"}, nil)
				session, err := client.Connect(t.Context(), &sdk.CommandTransport{Command: c.command(t.Context(), "mcp", "serve")}, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer session.Close()
				if _, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "Bash", Arguments: map[string]any{"command": "touch a.txt", "description": "x"}}); err != nil {
					t.Fatal(err)
				}
			} else {
				end := c.background(t, append([]string{"-p", prompt}, args...)...)
				if !test.runs {
					decide(t, state, "deny", awaitCall(t, state, "touch a.txt"))
				}
				end()
			}
			if got := isThere(c.project, "a.txt") || isThere(worktree, "a.txt"); got != test.runs {
				t.Errorf("the call has run: %t", got)
			}
		})
	}
}

// TestGuideSaysWhatPasses makes calls in ways that reach nobody.
func TestGuideSaysWhatPasses(t *testing.T) {
	t.Parallel()
	const prompt = "Make a file"
	text := codersGuide(t)
	for _, row := range claudeWaysAround {
		if line := "| " + row.label + " | " + row.reason; row.label != "" && !strings.Contains(text, line) {
			t.Errorf("the guide does not say %s", line)
		}
	}
	for _, row := range byDay(t, 3, claudeWaysAround...) {
		t.Run(strings.Join(row.flags, " ")+row.project+row.personal, func(t *testing.T) {
			t.Parallel()
			c := newClaude(t, modeltest.Script{Prompt: prompt, Turns: []modeltest.Turn{{Calls: []modeltest.Call{bash("touch a.txt")}}, {Text: "I am ready"}}})
			if row.personal != "" {
				c.writeText(t, filepath.Join(c.home, ".claude", "settings.json"), row.personal)
			}
			if row.project != "" {
				c.writeText(t, filepath.Join(c.project, ".claude", "settings.json"), row.project)
			}
			attend(t, c.setUp(t, "claude-code"))
			if got := outcome(t, c, prompt, "print", append([]string{"--permission-mode", "bypassPermissions"}, row.flags...)...); got != runsAlone {
				t.Errorf("it %s: the way around is closed, and the guide has it", got)
			}
		})
	}
}
