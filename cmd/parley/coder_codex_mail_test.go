package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/cmd/parley/modeltest"
	"parley/internal/eventually"
)

// readMailCodex is the call by which a model of Codex reads mail.
var readMailCodex = modeltest.Call{Tool: "mcp__parley.read_mail", Input: map[string]any{}}

// waitCodex is a call of Codex that makes a file and waits for another.
func waitCodex(began, until string) modeltest.Call {
	return modeltest.Call{Tool: "exec_command", Input: map[string]any{"cmd": "touch " + began + "; until [ -e " + until + " ]; do sleep 0.1; done", "yield_time_ms": 30_000}}
}

// The flags with which Codex is run: without a terminal, and in one.
var (
	codexAlone      = []string{"exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", "--sandbox", "danger-full-access"}
	codexInTerminal = []string{"--no-alt-screen", "--no-daemon", "--dangerously-bypass-hook-trust", "-a", "on-request", "-s", "workspace-write"}
)

// rollouts returns the files in which Codex keeps its threads.
func (c *coderTest) rollouts(t *testing.T) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(c.home, ".codex", "sessions"), func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".jsonl") {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return paths
}

// threadID returns the ID of the thread in a file.
func threadID(path string) string {
	name := strings.TrimSuffix(filepath.Base(path), ".jsonl")
	return name[max(0, len(name)-36):]
}

// awaitIdleCodex waits until Codex writes no more.
func (c *coderTest) awaitIdleCodex(t *testing.T) {
	t.Helper()
	eventually.Holds(t, "Codex is idle", func() bool {
		paths := c.rollouts(t)
		for _, path := range paths {
			if info, err := os.Stat(path); err != nil || time.Since(info.ModTime()) < idleFor {
				return false
			}
		}
		return len(paths) > 0
	})
}

// awaitOffered waits until a session was told of a message.
func awaitOffered(t *testing.T, state, message string) {
	t.Helper()
	if out, errs, exit := runTest(t.Context(), state, nil, "await", message, "--until", "offered", "--timeout", "60s"); exit != 0 {
		t.Errorf("message %s is not known to be offered: %s%s", message, out, errs)
	}
}

// expectOnce fails unless each text is in a conversation once.
func expectOnce(t *testing.T, conversation string, texts ...string) {
	t.Helper()
	for _, words := range texts {
		if n := strings.Count(conversation, words); n != 1 {
			t.Errorf("%q is %d times in the conversation", words, n)
		}
	}
	if t.Failed() {
		t.Logf("%s", conversation[max(0, len(conversation)-6000):])
	}
}

// TestMailReachesCodex sends mail to the folder, and to a session of it, of Codex without a terminal: at the start, between two
// calls, and as it stops. A mark that a command prints shows nothing.
func TestMailReachesCodex(t *testing.T) {
	t.Parallel()
	for _, variable := range byDay(t, 1, newestCodex, olderCodex) {
		t.Run(variable, func(t *testing.T) {
			t.Parallel()
			const first, second = "Say hello", "Do the work"
			c := newCodexOf(t, variable,
				modeltest.Script{Prompt: first, Turns: []modeltest.Turn{{Text: "Hello"}}},
				modeltest.Script{Prompt: second, Turns: []modeltest.Turn{
					{Calls: []modeltest.Call{readMailCodex}},
					{Calls: []modeltest.Call{waitCodex("began", "go")}},
					{Calls: []modeltest.Call{readMailCodex}},
					{Text: "I am done"},
					{Calls: []modeltest.Call{readMailCodex}},
					{Text: "That was all"},
				}},
			)
			state := c.setUp(t, "codex")
			c.print(t, append(slices.Clone(codexAlone), first)...)
			messages := []string{sendAs(t, state, "Codex · project", "the first words")}
			end := c.background(t, append(slices.Clone(codexAlone), second)...)
			eventually.Holds(t, "the call runs", func() bool { return isThere(c.project, "began") })
			messages = append(messages, sendAs(t, state, "Codex · project · 2", "the urgent words", "--priority", "urgent"))
			messages = append(messages, sendAs(t, state, "Codex · project · 2", "the normal words"))
			c.writeText(t, filepath.Join(c.project, "go"), "")
			end()
			expectOnce(t, c.lastOf(second), "the first words", "the urgent words", "the normal words")
			for _, message := range messages {
				awaitShown(t, state, message)
			}
		})
	}
}

// TestMailWakesCodex sends mail to an idle session in a terminal, which a queued prompt wakes.
func TestMailWakesCodex(t *testing.T) {
	t.Parallel()
	for _, variable := range byDay(t, 1, newestCodex, olderCodex) {
		t.Run(variable, func(t *testing.T) {
			t.Parallel()
			const prompt = "Wait for mail"
			turns := []modeltest.Turn{{Text: "I am ready"}}
			for i := range *mailWakes {
				turns = append(turns, modeltest.Turn{Calls: []modeltest.Call{readMailCodex}}, modeltest.Turn{Text: fmt.Sprintf("That was mail %d.", i)})
			}
			c := newCodexOf(t, variable, modeltest.Script{Prompt: prompt, Turns: turns})
			state := c.setUp(t, "codex")
			terminal := inTerminal(t, c.command(t.Context(), append(slices.Clone(codexInTerminal), prompt)...))
			terminal.expect(t, "I am ready")
			var took []time.Duration
			for i := range *mailWakes {
				c.awaitIdleCodex(t)
				before := len(c.model.Requests(prompt))
				at := time.Now()
				message := sendAs(t, state, "Codex · project · 1", fmt.Sprintf("these are words %d!", i))
				eventually.Holds(t, "the session is woken", func() bool { return len(c.model.Requests(prompt)) > before })
				took = append(took, c.model.Requests(prompt)[before].At.Sub(at))
				terminal.expect(t, fmt.Sprintf("That was mail %d.", i))
				awaitShown(t, state, message)
			}
			for i := range *mailWakes {
				expectOnce(t, c.lastOf(prompt), fmt.Sprintf("these are words %d!", i))
			}
			slices.Sort(took)
			t.Logf("from idle to the request: median %s, 99th percentile %s, most %s, of %d", took[len(took)/2], took[len(took)*99/100], took[len(took)-1], len(took))
		})
	}
}

// TestMailSurvivesCodex kills Codex once a notice was offered to it, and resumes the thread.
func TestMailSurvivesCodex(t *testing.T) {
	t.Parallel()
	for _, variable := range byDay(t, 1, newestCodex, olderCodex) {
		t.Run(variable, func(t *testing.T) {
			t.Parallel()
			const first = "Say hello"
			c := newCodexOf(t, variable, modeltest.Script{Prompt: first, Turns: []modeltest.Turn{
				{Text: "Hello"}, {Calls: []modeltest.Call{readMailCodex}}, {Text: "I have read it"}, {Text: "And again"}, {Text: "And again"},
			}})
			state := c.setUp(t, "codex")
			c.print(t, append(slices.Clone(codexAlone), first)...)
			paths := c.rollouts(t)
			if len(paths) != 1 {
				t.Fatal(paths)
			}
			message := sendAs(t, state, "Codex · project · 1", "the lost words")
			resumed := append(slices.Clone(codexAlone), "resume", threadID(paths[0]), "Go on")
			killed := c.command(t.Context(), resumed...)
			killed.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the program is below a script
			if err := killed.Start(); err != nil {
				t.Fatal(err)
			}
			awaitOffered(t, state, message)
			_ = syscall.Kill(-killed.Process.Pid, syscall.SIGKILL)
			_ = killed.Wait()
			c.print(t, resumed...)
			expectOnce(t, c.lastOf(first), "the lost words")
			awaitShown(t, state, message)
			if n := len(agentsOf(t, state)); n != 2 { // the session has ended
				t.Errorf("there are %d agents", n)
			}
		})
	}
}
