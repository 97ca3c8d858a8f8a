package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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
	attendFor(t, state)
}

// attendFor follows the host's inbox until the function that it returns is called, or the test ends.
func attendFor(t *testing.T, state string) (leave func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { // ends with ctx
		defer close(done)
		runTest(ctx, state, nil, "inbox", "--follow")
	}()
	leave = func() { cancel(); <-done }
	t.Cleanup(leave)
	return leave
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
	type run struct {
		agent, way string
		modes      []string // of one session
	}
	runs := []run{
		{newestClaude, "print", claudeModes}, {newestClaude, "terminal", []string{"default"}}, {olderClaude, "terminal", []string{"default"}},
		{newestClaude, "terminal", []string{"auto"}}, {newestClaude, "terminal", []string{"plan"}}, // in the others the hook is called as without
		{olderClaude, "terminal", []string{"plan"}}, {olderClaude, "print", claudeModes},
	}
	if runs = byDay(t, 3, runs...); *everyMode {
		for _, mode := range claudeModes {
			runs = append(runs, run{newestClaude, "terminal", []string{mode}})
		}
	}
	for _, r := range runs {
		t.Run(r.agent+"/"+r.way+"/"+strings.Join(r.modes, ","), func(t *testing.T) {
			t.Parallel()
			var turns []modeltest.Turn
			for _, mode := range r.modes {
				turns = append(turns, modeltest.Turn{Calls: []modeltest.Call{bash("touch " + mode + "-wanted.txt")}}, modeltest.Turn{Calls: []modeltest.Call{bash("touch " + mode + "-unwanted.txt")}},
					modeltest.Turn{Text: "I am ready"})
			}
			c := newClaudeOf(t, r.agent, modeltest.Script{Prompt: prompt, Turns: turns})
			state := c.setUp(t, "claude-code")
			attend(t, state)
			var stream *streamTest
			if r.way == "print" {
				stream = c.inStream(t, "--permission-mode", "bypassPermissions") // from which it changes to each of the others
			}
			for i, mode := range r.modes {
				var end func()
				if r.way == "print" {
					stream.setMode(t, mode)
					end = stream.prompt(t, prompt+" in "+mode)
				} else {
					terminal := inTerminal(t, c.command(t.Context(), prompt, "--permission-mode", mode))
					if mode == "auto" { // it has not fallen back to another mode
						terminal.expect(t, "auto mode on")
					}
					end = func() { terminal.expect(t, "I am ready") }
				}
				wanted, unwanted := mode+"-wanted.txt", mode+"-unwanted.txt"
				number := awaitCall(t, state, "touch "+wanted)
				if isThere(c.project, wanted) {
					t.Errorf("%s: the command has run before the decision", mode)
				}
				isEdited := r.way == "print" && mode == "default"
				if isEdited { // the host has another file made
					edited := filepath.Join(t.TempDir(), "input.json")
					c.writeText(t, edited, `{"command":"touch edited.txt && touch `+wanted+`","description":"Make two"}`)
					decide(t, state, "allow", number, "--input", edited)
				} else {
					decide(t, state, "allow", number)
				}
				number = awaitCall(t, state, "touch "+unwanted)
				if !isThere(c.project, wanted) {
					t.Errorf("%s: the command has not run, though it was allowed", mode)
				}
				if isThere(c.project, "edited.txt") != (r.way == "print") { // the mode default is the first
					t.Errorf("%s: the command that ran is not the one that was allowed", mode)
				}
				decide(t, state, "deny", number, "--message", "one file is enough")
				end()
				results := c.model.Results(prompt)
				if len(results) != 2*(i+1) || !strings.Contains(results[2*i+1].Text, "denied in Parley: one file is enough") {
					t.Errorf("%s: the model has read %q", mode, results)
				}
				if isThere(c.project, unwanted) {
					t.Errorf("%s: the command has run, though it was denied", mode)
				}
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
	const prompt, question = "Make a file", "Do you want to proceed?"
	type end struct {
		name string
		end  func(t *testing.T, s *terminalTest, drawn int) // drawn is how often a prompt was shown before
		runs bool
	}
	for mode, ends := range map[string][]end{ // a prompt of one session each
		"default": {
			{name: "answered at the prompt", runs: true, end: func(t *testing.T, s *terminalTest, drawn int) {
				s.expectAgain(t, drawn, question)
				s.press(t, "1")
				s.expect(t, "I am ready 0")
			}},
			{name: "denied at the prompt", end: func(t *testing.T, s *terminalTest, drawn int) {
				s.expectAgain(t, drawn, question)
				s.press(t, "\x1b")
			}},
			{name: "killed", end: func(t *testing.T, s *terminalTest, _ int) { s.kill(t) }},
		},
		"auto": {
			{name: "interrupted", end: func(t *testing.T, s *terminalTest, _ int) { s.press(t, "\x1b") }},
			{name: "killed in automatic mode", end: func(t *testing.T, s *terminalTest, _ int) { s.kill(t) }},
		},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			calls := 0
			asks := false // a call was made in this prompt
			c := newClaude(t, modeltest.Script{Prompt: prompt, React: func(seen modeltest.Seen) modeltest.Turn {
				if asks = !asks || strings.Contains(strings.Join(seen.News, "\n"), prompt); asks {
					calls++
					return modeltest.Turn{Calls: []modeltest.Call{bash(fmt.Sprintf("touch %d.txt", calls-1))}}
				}
				return modeltest.Turn{Text: fmt.Sprintf("I am ready %d", calls-1)}
			}})
			state := c.setUp(t, "claude-code")
			attend(t, state)
			terminal := inTerminal(t, c.command(t.Context(), prompt+" 0", "--permission-mode", mode))
			for i, test := range ends {
				file, drawn := fmt.Sprintf("%d.txt", i), terminal.times(question)
				if i > 0 {
					terminal.enter(t, fmt.Sprintf("%s %d", prompt, i), "the next call is made", func() bool {
						return strings.Contains(c.lastOf(prompt), fmt.Sprintf("%s %d", prompt, i))
					})
				}
				number := awaitCall(t, state, "touch "+file)
				test.end(t, terminal, drawn)
				awaitNoCall(t, state)
				if _, errs, exit := runTest(t.Context(), state, nil, "permit", "deny", number, "--always"); exit == 0 || !strings.Contains(errs, "ALREADY_CANCELLED") {
					t.Errorf("%s: never is answered by %d, %s", test.name, exit, errs)
				}
				if isThere(c.project, file) != test.runs {
					t.Errorf("%s: the command has run: %t", test.name, !test.runs)
				}
				if out, errs, _ := runTest(t.Context(), state, nil, "show", number); strings.Contains(out, "decided at the prompt of Claude Code") != test.runs || !strings.Contains(out, "cancelled by") {
					t.Errorf("%s: it is said to have ended so: %s%s", test.name, out, errs)
				}
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
	for _, mode := range byDay(t, 1, "default", "auto") {
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
	for _, variable := range byDay(t, 1, newestClaude, olderClaude) {
		t.Run(variable, func(t *testing.T) {
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

// TestClaudeCodeWritesItsPlanAlone has Claude Code write other files in place of its plan, and its plan, which asks nobody.
func TestClaudeCodeWritesItsPlanAlone(t *testing.T) {
	t.Parallel()
	const prompt, text = "Plan it", "first look at it"
	for _, agent := range byDay(t, 1, newestClaude, olderClaude) {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			var c *coderTest
			var plan atomic.Pointer[string] // the path, once the model has named it
			writes := func(path, words string) modeltest.Turn {
				return modeltest.Turn{Calls: []modeltest.Call{{Tool: "Write", Input: map[string]any{"file_path": path, "content": text + ", " + words}}}}
			}
			turns := 0
			c = newClaudeOf(t, agent, modeltest.Script{Prompt: prompt, React: func(seen modeltest.Seen) modeltest.Turn {
				if plan.Load() == nil {
					told := planPath.FindStringSubmatch(strings.Join(seen.News, "\n"))
					if told == nil {
						t.Error("the model is not told where the plan is")
						return modeltest.Turn{Text: "I am ready"}
					}
					plan.Store(&told[1])
				}
				path := *plan.Load()
				switch turns++; turns {
				case 1:
					return writes(filepath.Join(filepath.Dir(path), "another.md"), "another plan")
				case 2:
					if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.Symlink(filepath.Join(c.home, "kept"), path)); err != nil {
						t.Error(err)
					}
					return writes(path, "by a link")
				case 3:
					if err := os.Remove(path); err != nil {
						t.Error(err)
					}
					return writes(path, "its plan")
				}
				return modeltest.Turn{Text: "I am ready"}
			}})
			state := c.setUp(t, "claude-code")
			attend(t, state)
			end := c.background(t, "-p", prompt, "--permission-mode", "plan")
			for _, words := range []string{"another plan", "by a link"} {
				decide(t, state, "deny", awaitCall(t, state, text+", "+words))
			}
			end()
			path := *plan.Load()
			if got, err := os.ReadFile(path); err != nil || string(got) != text+", its plan" {
				t.Errorf("%s has %q, %v: %q", path, got, err, c.model.Results(prompt))
			}
			if isThere(filepath.Dir(path), "another.md") || isThere(c.home, "kept") {
				t.Error("what was denied is written")
			}
			out, _, _ := runTest(t.Context(), state, nil, "inbox", "--all")
			for words, asked := range map[string]bool{"another plan": true, "by a link": true, "its plan": false} {
				if strings.Contains(out, text+", "+words) != asked {
					t.Errorf("the host is asked about %s: %t, %s", words, !asked, out)
				}
			}
		})
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
