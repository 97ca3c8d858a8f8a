package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"parley/cmd/parley/modeltest"
	"parley/internal/eventually"
)

// claudeModes are the permission modes of Claude Code.
var claudeModes = []string{"default", "auto", "acceptEdits", "bypassPermissions", "dontAsk", "plan"}

// everyMode has tests run Claude Code on a terminal in all of its modes, also in those that a terminal leaves alone.
var everyMode = flag.Bool("every-mode", false, "run Claude Code on a terminal in every mode")

// setUp enters Parley in the settings of a coding agent, with a node of its own, and returns the node's state folder.
func (c *coderTest) setUp(t *testing.T, agent string) string {
	t.Helper()
	state := nodeTest(t)
	c.setUpFor(t, agent, state)
	return state
}

// setUpFor enters Parley in the settings of a coding agent, with a node that runs.
func (c *coderTest) setUpFor(t *testing.T, agent, state string) {
	t.Helper()
	if out, err := c.parley(t, "setup", agent, "--state", state).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// attend follows the host's inbox until the test ends.
func attend(t *testing.T, state string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { // ends with ctx
		defer close(done)
		runTest(ctx, state, nil, "inbox", "--follow")
	}()
	t.Cleanup(func() { cancel(); <-done })
}

// awaitCall waits for an approval whose input has a text, and returns its number.
func awaitCall(t *testing.T, state, text string) string {
	t.Helper()
	number := ""
	eventually.Holds(t, "somebody asks for "+text, func() bool {
		out, _, _ := runTest(t.Context(), state, nil, "permit", "ls", "--json")
		var calls []pendingCall
		if err := json.Unmarshal([]byte(out), &calls); err != nil {
			return false
		}
		for _, call := range calls {
			if strings.Contains(string(call.Input), text) {
				number = strconv.FormatUint(call.Number, 10)
			}
		}
		return number != ""
	})
	return number
}

// decide runs "parley permit" with the arguments.
func decide(t *testing.T, state string, args ...string) {
	t.Helper()
	if _, errs, exit := runTest(t.Context(), state, nil, append([]string{"permit"}, args...)...); exit != 0 {
		t.Fatalf("%s: %s", args, errs)
	}
}

func bash(command string) modeltest.Call {
	return modeltest.Call{Tool: "Bash", Input: map[string]any{"command": command, "description": "Do " + command}}
}

func isThere(folder, name string) bool {
	_, err := os.Stat(filepath.Join(folder, name))
	return err == nil
}

// TestClaudeCodeAsksInEveryMode lets Claude Code make two files in each mode. The host allows one and denies the other.
func TestClaudeCodeAsksInEveryMode(t *testing.T) {
	t.Parallel()
	const prompt = "Make two files"
	type run struct{ agent, mode, way string }
	runs := []run{{olderClaude, "plan", "terminal"}, {olderClaude, "default", "terminal"}, {olderClaude, "auto", "print"}}
	for _, mode := range claudeModes {
		runs = append(runs, run{newestClaude, mode, "print"})
		if *everyMode || slices.Contains([]string{"default", "auto", "plan"}, mode) { // in the others the hook is called as without
			runs = append(runs, run{newestClaude, mode, "terminal"})
		}
	}
	for _, r := range runs {
		mode, way := r.mode, r.way
		t.Run(r.agent+"/"+mode+"/"+way, func(t *testing.T) {
			t.Parallel()
			c := newClaudeOf(t, r.agent, modeltest.Script{Prompt: prompt, Turns: []modeltest.Turn{
				{Calls: []modeltest.Call{bash("touch wanted.txt")}}, {Calls: []modeltest.Call{bash("touch unwanted.txt")}}, {Text: "I am ready"},
			}})
			state := c.setUp(t, "claude-code")
			attend(t, state)
			var end func()
			if way == "print" {
				end = c.background(t, "-p", prompt, "--permission-mode", mode)
			} else {
				terminal := inTerminal(t, c.command(t.Context(), prompt, "--permission-mode", mode))
				if mode == "auto" { // it has not fallen back to another mode
					terminal.expect(t, "auto mode on")
				}
				end = func() { terminal.expect(t, "I am ready") }
			}
			number := awaitCall(t, state, "touch wanted.txt")
			if isThere(c.project, "wanted.txt") {
				t.Error("the command has run before the decision")
			}
			if wanted := "wanted.txt"; way == "print" && mode == "default" { // the host has another file made
				edited := filepath.Join(t.TempDir(), "input.json")
				c.writeText(t, edited, `{"command":"touch edited.txt && touch `+wanted+`","description":"Make two"}`)
				decide(t, state, "allow", number, "--input", edited)
			} else {
				decide(t, state, "allow", number)
			}
			number = awaitCall(t, state, "touch unwanted.txt")
			if !isThere(c.project, "wanted.txt") {
				t.Error("the command has not run, though it was allowed")
			}
			if isThere(c.project, "edited.txt") != (way == "print" && mode == "default") {
				t.Error("the command that ran is not the one that was allowed")
			}
			decide(t, state, "deny", number, "--message", "one file is enough")
			end()
			results := c.model.Results(prompt)
			if len(results) != 2 || !strings.Contains(results[1].Text, "denied in Parley: one file is enough") {
				t.Errorf("the model has read %q", results)
			}
			if isThere(c.project, "unwanted.txt") {
				t.Error("the command has run, though it was denied")
			}
		})
	}
}

// awaitNoCall waits until nothing waits for permission.
func awaitNoCall(t *testing.T, state string) {
	t.Helper()
	eventually.Holds(t, "no approval is open", func() bool {
		out, _, exit := runTest(t.Context(), state, nil, "permit", "ls")
		return exit == 0 && out == ""
	})
}

// TestClaudeCodeWithdrawsWhatItNoLongerAsks decides at Claude Code's own prompt, interrupts it, and kills it. The host's
// "never" comes too late then.
func TestClaudeCodeWithdrawsWhatItNoLongerAsks(t *testing.T) {
	t.Parallel()
	const prompt = "Make a file"
	for name, test := range map[string]struct {
		mode string
		end  func(t *testing.T, s *terminalTest)
		runs bool
	}{
		"answered at the prompt": {mode: "default", runs: true, end: func(t *testing.T, s *terminalTest) {
			s.expect(t, "Do you want to proceed?")
			s.press(t, "1")
			s.expect(t, "I am ready")
		}},
		"denied at the prompt": {mode: "default", end: func(t *testing.T, s *terminalTest) {
			s.expect(t, "Do you want to proceed?")
			s.press(t, "\x1b")
		}},
		"interrupted": {mode: "auto", end: func(t *testing.T, s *terminalTest) {
			s.press(t, "\x1b")
		}},
		"killed":                   {mode: "default", end: func(t *testing.T, s *terminalTest) { s.kill(t) }},
		"killed in automatic mode": {mode: "auto", end: func(t *testing.T, s *terminalTest) { s.kill(t) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClaude(t, modeltest.Script{Prompt: prompt, Turns: []modeltest.Turn{{Calls: []modeltest.Call{bash("touch a.txt")}}, {Text: "I am ready"}}})
			state := c.setUp(t, "claude-code")
			attend(t, state)
			terminal := inTerminal(t, c.command(t.Context(), prompt, "--permission-mode", test.mode))
			number := awaitCall(t, state, "touch a.txt")
			test.end(t, terminal)
			awaitNoCall(t, state)
			if _, errs, exit := runTest(t.Context(), state, nil, "permit", "deny", number, "--always"); exit == 0 || !strings.Contains(errs, "ALREADY_CANCELLED") {
				t.Errorf("never is answered by %d, %s", exit, errs)
			}
			if isThere(c.project, "a.txt") != test.runs {
				t.Errorf("the command has run: %t", !test.runs)
			}
			if out, errs, _ := runTest(t.Context(), state, nil, "show", number); strings.Contains(out, "decided at the prompt of Claude Code") != test.runs || !strings.Contains(out, "cancelled by") {
				t.Errorf("it is said to have ended so: %s%s", out, errs)
			}
		})
	}
}

// awaitQuestion waits for an open form that has a text, and returns its number.
func awaitQuestion(t *testing.T, state, text string) string {
	t.Helper()
	number := ""
	eventually.Holds(t, "a form with "+text, func() bool {
		out, _, _ := runTest(t.Context(), state, nil, "inbox", "--pending")
		for line := range strings.Lines(out) {
			if strings.Contains(line, text) {
				number, _, _ = strings.Cut(line, ".")
			}
		}
		return number != ""
	})
	return number
}

// TestClaudeCodeIsAnsweredByForm has Claude Code ask questions, of which the host answers some in other words.
func TestClaudeCodeIsAnsweredByForm(t *testing.T) {
	t.Parallel()
	const prompt = "Paint it"
	ask := modeltest.Call{Tool: "AskUserQuestion", Input: map[string]any{"questions": []any{
		map[string]any{"question": "Which colour?", "header": "Colour", "multiSelect": false, "options": []any{
			map[string]any{"label": "Red, as fire", "description": "warm"}, map[string]any{"label": "Green", "description": "calm"},
		}},
		map[string]any{"question": "Which sizes?", "header": "Size", "multiSelect": true, "options": []any{
			map[string]any{"label": "Small", "description": "one"}, map[string]any{"label": "Large", "description": "two"}, map[string]any{"label": "Huge", "description": "three"},
		}},
		map[string]any{"question": "Which name?", "header": "Name", "multiSelect": false, "options": []any{
			map[string]any{"label": "Ann", "description": "a"}, map[string]any{"label": "Bob", "description": "b"},
		}},
	}}}
	comma := modeltest.Call{Tool: "AskUserQuestion", Input: map[string]any{"questions": []any{
		map[string]any{"question": "Which tools?", "header": "Tools", "multiSelect": true, "options": []any{
			map[string]any{"label": "Brush, small", "description": "one"}, map[string]any{"label": "Roller", "description": "two"},
		}},
	}}}
	for _, mode := range []string{"default", "auto"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			c := newClaude(t, modeltest.Script{Prompt: prompt, Turns: []modeltest.Turn{
				{Calls: []modeltest.Call{ask}}, {Calls: []modeltest.Call{ask}}, {Calls: []modeltest.Call{comma}}, {Text: "I am ready"},
			}})
			state := c.setUp(t, "claude-code")
			attend(t, state)
			terminal := inTerminal(t, c.command(t.Context(), prompt, "--permission-mode", mode))
			number := awaitQuestion(t, state, "Claude Code asks")
			if _, errs, exit := runTest(t.Context(), state, nil, "answer", number, "--value", "q1:Red, as fire", "--value", "q2:Small", "--value", "q2:Huge", "--value", "q3:Other", "--value", "q3_other:Cleo"); exit != 0 {
				t.Fatal(errs)
			}
			eventually.Holds(t, "the model reads the answers", func() bool { return len(c.model.Results(prompt)) == 1 })
			read := c.model.Results(prompt)[0].Text
			for _, want := range []string{`"Which colour?"="Red, as fire"`, `"Which sizes?"="Small, Huge"`, `"Which name?"="Cleo"`} {
				if !strings.Contains(read, want) {
					t.Errorf("the model has read %q, without %s", read, want)
				}
			}
			number = awaitQuestion(t, state, "Claude Code asks")
			if _, errs, exit := runTest(t.Context(), state, nil, "decline", number, "not today"); exit != 0 {
				t.Fatal(errs)
			}
			eventually.Holds(t, "the model reads the refusal", func() bool { return len(c.model.Results(prompt)) == 2 })
			if read := c.model.Results(prompt)[1].Text; !strings.Contains(read, "declined in Parley: not today") {
				t.Errorf("the model has read %q", read)
			}
			terminal.expect(t, "Brush, small") // its own question
		})
	}
}

// planPath matches what Claude Code tells the model about the file of its plan.
var planPath = regexp.MustCompile(`your plan at (/\S+\.md)`)

// TestClaudeCodeHasPlansApproved denies a plan, and allows another. The call that a plan waits for is asked about too.
func TestClaudeCodeHasPlansApproved(t *testing.T) {
	t.Parallel()
	const prompt = "Plan it"
	for name, variable := range map[string]string{"newest": newestClaude, "older": olderClaude} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			exit := modeltest.Turn{Calls: []modeltest.Call{{Tool: "ExitPlanMode", Input: map[string]any{}}}}
			c := newClaudeOf(t, variable, modeltest.Script{Prompt: prompt, Turns: []modeltest.Turn{
				{Calls: []modeltest.Call{bash("touch looked.txt")}}, exit, exit, {Text: "I am ready"},
			}})
			state := c.setUp(t, "claude-code")
			attend(t, state)
			terminal := inTerminal(t, c.command(t.Context(), prompt, "--permission-mode", "plan"))
			number := awaitCall(t, state, "touch looked.txt")
			told := planPath.FindStringSubmatch(c.model.Instructions(prompt))
			if told == nil {
				t.Fatal("the model is not told where the plan is")
			}
			c.writeText(t, told[1], "first burn it\n")
			decide(t, state, "allow", number)
			number = awaitCall(t, state, "first burn it")
			c.writeText(t, told[1], "first look at it\n")
			decide(t, state, "deny", number, "--message", "do not burn it")
			decide(t, state, "allow", awaitCall(t, state, "first look at it"))
			terminal.expect(t, "I am ready")
			results := c.model.Results(prompt)
			if len(results) != 3 || !strings.Contains(results[1].Text, "do not burn it") || !strings.Contains(results[2].Text, "approved") {
				t.Errorf("the model has read %q", results)
			}
		})
	}
}

// TestClaudeCodeWritesItsPlanAlone has Claude Code write its plan, which asks nobody, and other files in its place.
func TestClaudeCodeWritesItsPlanAlone(t *testing.T) {
	t.Parallel()
	const prompt, text = "Plan it", "first look at it"
	for _, agent := range []string{newestClaude, olderClaude} {
		for _, does := range []string{"its plan", "another plan", "a link"} {
			t.Run(agent+"/"+does, func(t *testing.T) {
				t.Parallel()
				var c *coderTest
				var written atomic.Pointer[string] // the path, once the model has named it
				c = newClaudeOf(t, agent, modeltest.Script{Prompt: prompt, React: func(seen modeltest.Seen) modeltest.Turn {
					if written.Load() != nil {
						return modeltest.Turn{Text: "I am ready"}
					}
					told := planPath.FindStringSubmatch(strings.Join(seen.News, "\n"))
					if told == nil {
						t.Error("the model is not told where the plan is")
						return modeltest.Turn{Text: "I am ready"}
					}
					plan := told[1]
					switch does {
					case "another plan":
						plan = filepath.Join(filepath.Dir(plan), "another.md")
					case "a link":
						if err := errors.Join(os.MkdirAll(filepath.Dir(plan), 0o700), os.Symlink(filepath.Join(c.home, "kept"), plan)); err != nil {
							t.Error(err)
						}
					}
					written.Store(&plan)
					return modeltest.Turn{Calls: []modeltest.Call{{Tool: "Write", Input: map[string]any{"file_path": plan, "content": text}}}}
				}})
				state := c.setUp(t, "claude-code")
				attend(t, state)
				end := c.background(t, "-p", prompt, "--permission-mode", "plan")
				if does != "its plan" {
					decide(t, state, "deny", awaitCall(t, state, text))
				}
				end()
				plan := *written.Load()
				got, err := os.ReadFile(plan)
				if (err == nil && string(got) == text) != (does == "its plan") || isThere(c.home, "kept") {
					t.Errorf("%s has %q, %v: %q", plan, got, err, c.model.Results(prompt))
				}
				if out, _, _ := runTest(t.Context(), state, nil, "inbox", "--all"); strings.Contains(out, text) != (does != "its plan") {
					t.Errorf("the host is asked: %s", out)
				}
			})
		}
	}
}

// TestClaudeCodesSubagentsAsk has a subagent make a file, in both ways.
func TestClaudeCodesSubagentsAsk(t *testing.T) {
	t.Parallel()
	const prompt, task = "Have it done", "Do the task of a subagent"
	for _, way := range []string{"print", "terminal"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			c := newClaude(
				t,
				modeltest.Script{Prompt: task, Turns: []modeltest.Turn{{Calls: []modeltest.Call{bash("touch sub.txt")}}, {Text: "The subagent is ready"}}},
				modeltest.Script{Prompt: prompt, Turns: []modeltest.Turn{
					{Calls: []modeltest.Call{{Tool: "Agent", Input: map[string]any{"description": "do it", "prompt": task, "subagent_type": "general-purpose", "run_in_background": false}}}},
					{Text: "I am ready"}, {Text: "I am told of its end"}, // in a terminal it works in the background
				}},
			)
			state := c.setUp(t, "claude-code")
			attend(t, state)
			var end func()
			if way == "print" {
				end = c.background(t, "-p", prompt)
			} else {
				terminal := inTerminal(t, c.command(t.Context(), prompt))
				end = func() { terminal.expect(t, "I am ready") }
			}
			decide(t, state, "allow", awaitCall(t, state, "touch sub.txt"))
			end()
			eventually.Holds(t, "the subagent's command has run", func() bool { return isThere(c.project, "sub.txt") })
		})
	}
}
