package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/cmd/parley/modeltest"
	"parley/internal/eventually"
)

// oneFileCoder is a coding agent that has hooks and MCP servers in one file.
type oneFileCoder struct {
	variable, agent, title, settings string
	shell, read                      string // tools
	auth                             string
	args                             []string
	env                              func(url string) []string
}

// oneFileCoders are Gemini CLI and Qwen Code, in their modes that ask nothing.
var oneFileCoders = []oneFileCoder{
	{
		"PARLEY_GEMINI", "gemini", "Gemini CLI", ".gemini/settings.json", "run_shell_command", "mcp_parley_read_mail", "gemini-api-key",
		[]string{"--model", "gemini-2.5-pro", "--approval-mode", "yolo", "-p"}, func(url string) []string {
			return []string{"GEMINI_API_KEY=a-key", "GOOGLE_GEMINI_BASE_URL=" + url, "GEMINI_CLI_TRUST_WORKSPACE=true"}
		},
	},
	{
		"PARLEY_QWEN", "qwen", "Qwen Code", ".qwen/settings.json", "run_shell_command", "mcp__parley__read_mail", "anthropic",
		[]string{"--auth-type", "anthropic", "--model", "claude-test", "--approval-mode", "yolo", "-p"}, func(url string) []string {
			return []string{"ANTHROPIC_API_KEY=a-key", "ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_MODEL=claude-test"}
		},
	},
}

// newOneFileCoder prepares a run of such a program, with settings of its own.
func newOneFileCoder(t *testing.T, of oneFileCoder, scripts ...modeltest.Script) (c *coderTest, settings string) {
	t.Helper()
	if os.Getenv(of.variable) == "" {
		t.Skipf("the coding agent is NOT tested: %s names no program", of.variable)
	}
	c = newCoderTest(t, of.variable, scripts...)
	c.env = append(c.env, of.env(c.model.URL)...)
	settings = filepath.Join(c.home, of.settings)
	c.write(t, settings, map[string]any{"security": map[string]any{"auth": map[string]any{"selectedType": of.auth}}})
	return c, settings
}

// answering answers each request with the next turn, and the last one again and again: Qwen Code begins a conversation with an answer that
// no model gave.
func answering(prompt string, turns ...modeltest.Turn) modeltest.Script {
	asked := 0
	return modeltest.Script{Prompt: prompt, React: func(modeltest.Seen) modeltest.Turn {
		asked++
		return turns[min(asked, len(turns))-1]
	}}
}

// TestGeminiAndQwenAskAndReadMail enters Parley in the settings of Gemini CLI and Qwen Code. In the mode that asks nothing a call is asked about:
// an allow runs it, a deny does not, with the reason for the model, nor does one that names what is leased. Mail for the folder is told of
// at the start, and read. The doctor has the hook refuse a call. Without a node nothing runs. What was entered is taken out.
func TestGeminiAndQwenAskAndReadMail(t *testing.T) {
	t.Parallel()
	const first, second, third = "Say hello", "Do the work", "Work alone"
	for _, of := range oneFileCoders {
		t.Run(of.agent, func(t *testing.T) {
			t.Parallel()
			call := func(tool string, input map[string]any) modeltest.Turn {
				return modeltest.Turn{Calls: []modeltest.Call{{Tool: tool, Input: input}}}
			}
			shell := func(line string) modeltest.Turn {
				return call(of.shell, map[string]any{"command": line, "is_background": false})
			}
			done := modeltest.Turn{Text: "I am done"}
			c, settings := newOneFileCoder(t, of, answering(first, done),
				answering(second, call(of.read, map[string]any{}), shell("touch one"), shell("touch two"), shell("touch held"), done),
				answering(third, shell("touch three"), done))
			c.onPath(t, of.agent)
			before, err := os.ReadFile(settings)
			if err != nil {
				t.Fatal(err)
			}
			state := c.setUp(t, of.agent)
			attend(t, state)
			if said := c.doctor(t, of.agent, state); !strings.HasPrefix(said, "ok") || !strings.Contains(said, "the hook was run, and refused a call") {
				t.Errorf("the doctor says %s", said)
			}
			run := func(prompt string) { c.print(t, append(append([]string{}, of.args...), prompt)...) }
			run(first)
			message := sendAs(t, state, of.title+" · project", "the first words")
			for _, args := range [][]string{{"mkguest", "bob"}, {"lease", filepath.Join(c.project, "held"), "--as", "bob"}} {
				if _, errs, exit := runTest(t.Context(), state, nil, args...); exit != 0 {
					t.Fatal(errs)
				}
			}
			end := c.background(t, append(append([]string{}, of.args...), second)...)
			decide(t, state, "allow", awaitCall(t, state, "touch one"))
			number := awaitCall(t, state, "touch two")
			if _, errs, exit := runTest(t.Context(), state, nil, "deny", number, "not now"); exit != 0 {
				t.Error(errs)
			}
			end()
			for name, want := range map[string]bool{"one": true, "two": false, "held": false} {
				if isThere(c.project, name) != want {
					t.Errorf("%s is there: %t", name, !want)
				}
			}
			last := c.lastOf(second)
			for words, want := range map[string]int{"the first words": 1, "1 new message": 1, "not now": 1, "is leased by bob until": 1} {
				if n := strings.Count(last, words); n < want || words == "the first words" && n != want {
					t.Errorf("%q is %d times in the conversation", words, n)
				}
			}
			if t.Failed() {
				for _, r := range c.model.Results(second) {
					t.Logf("%s: %.1500s", r.Tool, r.Text)
				}
			}
			if out, errs, exit := runTest(t.Context(), state, nil, "await", message, "--until", "offered", "--timeout", "30s"); exit != 0 {
				t.Errorf("the message is not known to be offered: %s%s", out, errs)
			}
			if _, errs, exit := runTest(t.Context(), state, nil, "stop"); exit != 0 {
				t.Log(errs)
			}
			if out, err := c.parley(t, "setup", of.agent, "--remove", "--state", state).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			after, err := os.ReadFile(settings)
			if err != nil {
				t.Fatal(err)
			}
			var is, was map[string]any
			if err := errors.Join(json.Unmarshal(after, &is), json.Unmarshal(before, &was)); err != nil {
				t.Fatal(err)
			}
			if delete(is, "$version"); !reflect.DeepEqual(is, was) { // Qwen Code numbers its settings
				t.Errorf("after it was taken out the settings are %s", after)
			}
		})
	}
}

// TestGeminiAndQwenRunNothingAlone has a call be made where no node runs: it is denied, and the model reads why.
func TestGeminiAndQwenRunNothingAlone(t *testing.T) {
	t.Parallel()
	const prompt = "Work alone"
	for _, of := range inTurns(t, oneFileCoders...) {
		t.Run(of.agent, func(t *testing.T) {
			t.Parallel()
			c, _ := newOneFileCoder(t, of, answering(prompt, modeltest.Turn{Calls: []modeltest.Call{{Tool: of.shell, Input: map[string]any{"command": "touch three", "is_background": false}}}}, modeltest.Turn{Text: "I am done"}))
			c.setUpFor(t, of.agent, filepath.Join(t.TempDir(), "none"))
			c.print(t, append(append([]string{}, of.args...), prompt)...)
			if isThere(c.project, "three") || !strings.Contains(c.lastOf(prompt), "no node runs") {
				t.Errorf("it has run, or the model was not told: %s", c.lastOf(prompt))
			}
		})
	}
}

// TestGeminiAndQwenAskInATerminal runs the programs in a terminal, in the mode that asks nothing and the one that asks: calls are asked about
// in Parley, and in the latter at the program's own prompt too.
func TestGeminiAndQwenAskInATerminal(t *testing.T) {
	t.Parallel()
	const prompt = "Do the work"
	for _, of := range inTurns(t, oneFileCoders...) {
		for _, mode := range byDay(t, 1, "default", "yolo") {
			t.Run(of.agent+"/"+mode, func(t *testing.T) {
				t.Parallel()
				shell := func(line string) modeltest.Turn {
					return modeltest.Turn{Calls: []modeltest.Call{{Tool: of.shell, Input: map[string]any{"command": line, "is_background": false}}}}
				}
				c, _ := newOneFileCoder(t, of, answering(prompt, shell("touch one"), shell("touch two"), modeltest.Turn{Text: "I am done"}))
				state := c.setUp(t, of.agent)
				attend(t, state)
				args := slices.Clone(of.args[:len(of.args)-1])
				args[slices.Index(args, "yolo")] = mode
				terminal := inTerminal(t, c.command(t.Context(), append(args, "-i", prompt)...))
				isAsked := func(of string) bool {
					out, _, exit := runTest(t.Context(), state, nil, "permit", "ls")
					return exit == 0 && strings.Contains(out, of)
				}
				// Gemini CLI runs its hook before its own prompt, and Qwen Code behind it.
				if mode == "default" && of.agent == "qwen" {
					terminal.expect(t, "Allow execution of")
					terminal.enter(t, "", "the call is asked about in Parley", func() bool { return isAsked("touch one") })
				}
				decide(t, state, "allow", awaitCall(t, state, "touch one"))
				if mode == "default" && of.agent == "gemini" {
					terminal.expect(t, "Allow execution of")
					if isThere(c.project, "one") {
						t.Error("it ran before it was allowed at the prompt")
					}
					terminal.enter(t, "", "the call has run", func() bool { return isThere(c.project, "one") })
				}
				eventually.Holds(t, "the call has run", func() bool { return isThere(c.project, "one") })
				if mode == "default" && of.agent == "qwen" {
					terminal.enter(t, "", "the call is asked about in Parley", func() bool { return isAsked("touch two") })
				}
				if _, errs, exit := runTest(t.Context(), state, nil, "deny", awaitCall(t, state, "touch two"), "not now"); exit != 0 {
					t.Error(errs)
				}
				terminal.expect(t, "I am done")
				if last := c.lastOf(prompt); isThere(c.project, "two") || !strings.Contains(last, "not now") {
					t.Errorf("what was denied is there: %t; the model has %s", isThere(c.project, "two"), last)
				}
			})
		}
	}
}

// TestSetupOfGeminiStaysInTheProject has the project's settings be a link out of it: nothing is written.
func TestSetupOfGeminiStaysInTheProject(t *testing.T) {
	t.Parallel()
	for _, of := range oneFileCoders {
		home, project := t.TempDir(), t.TempDir()
		outside := filepath.Join(home, "outside.json")
		c := &coderTest{home: home, project: project, env: []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}}
		c.writeText(t, outside, "{}\n")
		settings := filepath.Join(project, of.settings)
		if err := os.MkdirAll(filepath.Dir(settings), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(outside, settings); err != nil {
			t.Fatal(err)
		}
		out, err := c.parley(t, "setup", of.agent, "--project", "--state", filepath.Join(home, "state")).CombinedOutput()
		if text, _ := os.ReadFile(outside); err == nil || string(text) != "{}\n" {
			t.Errorf("%s: %v, %s; outside is %s", of.agent, err, out, text)
		}
	}
}
