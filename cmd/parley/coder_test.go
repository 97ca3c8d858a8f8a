package main

import (
	"bytes"
	"context"
	"encoding/json"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley/cmd/parley/modeltest"
)

// coderTest is a coding agent that is really run: with a home folder, a project, and a model server of its own.
type coderTest struct {
	program string // path
	home    string
	project string
	model   *modeltest.Server
	env     []string
}

// newCoderTest prepares a run of the program that an environment variable names. Without it the test is skipped, and
// fails in CI.
func newCoderTest(t *testing.T, variable string, scripts ...modeltest.Script) *coderTest {
	t.Helper()
	program := os.Getenv(variable)
	if program == "" {
		if os.Getenv("CI") != "" {
			t.Fatalf("%s names no program, and the coding agent is not to go untested", variable)
		}
		t.Skipf("the coding agent is NOT tested: %s names no program", variable)
	}
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := &coderTest{program: program, home: filepath.Join(folder, "home"), project: filepath.Join(folder, "project"), model: modeltest.Serve(scripts...)}
	t.Cleanup(func() {
		c.model.Close()
		for _, wrong := range c.model.Wrong() {
			t.Error(wrong)
		}
	})
	for _, folder := range []string{c.home, c.project} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	c.env = []string{
		"HOME=" + c.home, "PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", "LANG=C.UTF-8", "GORACE=atexit_sleep_ms=0",
		"PARLEY_LISTEN=off", "TMPDIR=" + folder,
	}
	return c
}

// The coding agents that are tested. The older ones run a part of the tests.
const (
	newestClaude, olderClaude = "PARLEY_CLAUDE", "PARLEY_CLAUDE_OLDER"
	newestCodex, olderCodex   = "PARLEY_CODEX", "PARLEY_CODEX_OLDER"
)

// byDay returns the cases that a run has, each of which starts a coding agent: seconds of a processor. The first n are in each run: every
// kind of call, mode, way and failure is among them, with the newest program. Each of the others has a day of the week. At night
// (PARLEY_NIGHTLY) all of them run. The day is PARLEY_DAY, which .ci/run prints, or today: days since 1970.
func byDay[T any](t *testing.T, n int, cases ...T) []T {
	t.Helper()
	if nightly(0, 1) == 1 {
		return cases
	}
	day := dayOfRun(t)
	chosen := casesOfDay(t.Name(), day, n, cases)
	t.Logf("of %d cases, day %d has %d", len(cases), day, len(chosen))
	return chosen
}

// inTurns returns one of the cases: each day the next. They are programs of several makers, of which no version is the newest of all. At night
// all of them run.
func inTurns[T any](t *testing.T, cases ...T) []T {
	t.Helper()
	if nightly(0, 1) == 1 {
		return cases
	}
	i := int(dayOfRun(t) % int64(len(cases)))
	t.Logf("of %d cases, day %d has the one at %d", len(cases), dayOfRun(t), i)
	return cases[i : i+1]
}

// dayOfRun returns the day by which the cases of a run are chosen.
func dayOfRun(t *testing.T) int64 {
	t.Helper()
	set := os.Getenv("PARLEY_DAY")
	if set == "" {
		return time.Now().Unix() / (24 * 60 * 60)
	}
	day, err := strconv.ParseInt(set, 10, 64)
	if err != nil || day < 0 {
		t.Fatalf("PARLEY_DAY is %q, and no number of days since 1970", set)
	}
	return day
}

// casesOfDay returns the first n cases of a test, and those of the others whose day it is. The days of a test begin by its name: so all days
// have about as many.
func casesOfDay[T any](name string, day int64, n int, cases []T) []T {
	chosen := slices.Clone(cases[:n])
	for i, c := range cases[n:] {
		if (int64(crc32.ChecksumIEEE([]byte(name)))+int64(i)+day)%7 == 0 {
			chosen = append(chosen, c)
		}
	}
	return chosen
}

// TestEachCaseHasADayOfTheWeek has the cases of a test be chosen for a week.
func TestEachCaseHasADayOfTheWeek(t *testing.T) {
	t.Parallel()
	cases := []string{"always", "a", "b", "c", "d", "e", "f", "g", "h"}
	for _, week := range []int64{0, 20786} {
		times := map[string]int{}
		for day := range int64(7) {
			for _, c := range casesOfDay(t.Name(), week+day, 1, cases) {
				times[c]++
			}
		}
		for _, c := range cases {
			if want := map[bool]int{true: 7, false: 1}[c == "always"]; times[c] != want {
				t.Errorf("from day %d %s is chosen %d times", week, c, times[c])
			}
		}
	}
}

// newClaude prepares a run of the newest Claude Code.
func newClaude(t *testing.T, scripts ...modeltest.Script) *coderTest {
	t.Helper()
	return newClaudeOf(t, newestClaude, scripts...)
}

// newClaudeOf prepares a run of Claude Code. Its first questions, about colours, the key and the folder, are answered.
func newClaudeOf(t *testing.T, variable string, scripts ...modeltest.Script) *coderTest {
	t.Helper()
	c := newCoderTest(t, variable, scripts...)
	c.env = append(
		c.env, "ANTHROPIC_BASE_URL="+c.model.URL, "ANTHROPIC_API_KEY=a-key", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_TERMINAL_TITLE=1",
		"IS_SANDBOX=1", // root may then bypass permissions
	)
	c.write(t, filepath.Join(c.home, ".claude.json"), map[string]any{
		"hasCompletedOnboarding": true, "theme": "dark", "bypassPermissionsModeAccepted": true,
		"customApiKeyResponses": map[string]any{"approved": []string{"a-key"}},
		"projects":              map[string]any{c.project: map[string]any{"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true}},
	})
	return c
}

// newCodex prepares a run of the newest Codex.
func newCodex(t *testing.T, scripts ...modeltest.Script) *coderTest {
	t.Helper()
	return newCodexOf(t, newestCodex, scripts...)
}

// newCodexOf prepares a run of Codex, with the model server as its provider and the project trusted.
func newCodexOf(t *testing.T, variable string, scripts ...modeltest.Script) *coderTest {
	t.Helper()
	c := newCoderTest(t, variable, scripts...)
	c.env = append(c.env, "CODEX_HOME="+filepath.Join(c.home, ".codex"), "PARLEY_TEST_KEY=a-key")
	// By default Codex leaves out the tools of a server that takes over a second to start.
	config := "mcp_optional_startup_grace_ms = 0\nmodel = \"gpt-5.4\"\nmodel_provider = \"test\"\ncheck_for_update_on_startup = false\n" +
		"[model_providers.test]\nname = \"test\"\nbase_url = \"" + c.model.URL + "/v1\"\nwire_api = \"responses\"\nenv_key = \"PARLEY_TEST_KEY\"\n" +
		"[projects.\"" + c.project + "\"]\ntrust_level = \"trusted\"\n"
	c.writeText(t, filepath.Join(c.home, ".codex", "config.toml"), config)
	return c
}

func (c *coderTest) write(t *testing.T, path string, value any) {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	c.writeText(t, path, string(text))
}

func (c *coderTest) writeText(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// command returns the program in its project, with the arguments.
func (c *coderTest) command(ctx context.Context, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, c.program, args...)
	command.Dir, command.Env = c.project, c.env
	return command
}

// parley returns this program in the project, with the coding agent's environment.
func (c *coderTest) parley(t *testing.T, args ...string) *exec.Cmd {
	command := exec.CommandContext(t.Context(), "parley", args...)
	command.Dir, command.Env = c.project, c.env
	return command
}

// background runs the program without a terminal. The function that it returns waits for its end.
func (c *coderTest) background(t *testing.T, args ...string) (end func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { // ends with the program, which the test's context ends
		defer close(done)
		c.print(t, args...)
	}()
	t.Cleanup(func() { <-done })
	return func() { <-done }
}

// print runs the program without a terminal, and returns its output.
func (c *coderTest) print(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	command := c.command(t.Context(), args...)
	command.Stdout, command.Stderr = &out, &errs
	if err := command.Run(); err != nil {
		t.Errorf("%s: %v\n%s\n%s", filepath.Base(c.program), err, out.String(), errs.String())
	}
	return out.String()
}

// TestCodingAgentsSpeakToTheModelServer runs both programs, and has each call a tool where it needs no permission.
func TestCodingAgentsSpeakToTheModelServer(t *testing.T) {
	t.Parallel()
	const prompt = "What does this folder hold?"
	for name, test := range map[string]struct {
		make func(*testing.T, string, ...modeltest.Script) *coderTest
		kind string
		args []string
		call modeltest.Call
	}{
		"claude-code": {
			newClaudeOf, newestClaude, []string{"-p", prompt},
			modeltest.Call{Tool: "Bash", Input: map[string]any{"command": "ls", "description": "List it"}},
		},
		"older codex": {
			newCodexOf, olderCodex, []string{"exec", "--skip-git-repo-check", "--sandbox", "danger-full-access", prompt},
			modeltest.Call{Tool: "exec_command", Input: map[string]any{"cmd": "ls"}},
		},
		"codex": {
			newCodexOf, newestCodex, []string{"exec", "--skip-git-repo-check", "--sandbox", "danger-full-access", prompt},
			modeltest.Call{Tool: "exec_command", Input: map[string]any{"cmd": "ls"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := test.make(t, test.kind, modeltest.Script{Prompt: prompt, Turns: []modeltest.Turn{
				{Text: "I look", Calls: []modeltest.Call{test.call}}, {Text: "One file, as it seems"},
			}})
			c.writeText(t, filepath.Join(c.project, "the-file.txt"), "")
			if out := c.print(t, test.args...); !strings.Contains(out, "One file, as it seems") {
				t.Errorf("it says %q", out)
			}
			results := c.model.Results(prompt)
			if len(results) != 1 || results[0].Tool != test.call.Tool || !strings.Contains(results[0].Text, "the-file.txt") {
				t.Errorf("the model has read %q", results)
			}
		})
	}
}
