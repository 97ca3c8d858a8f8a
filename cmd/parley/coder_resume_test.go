package main

import (
	"strings"
	"testing"

	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/modeltest"
	"parley/gateway/people"
	"parley/internal/eventually"
)

// TestResumeGoesOnWithACallThatWasPutOff has Claude Code end as nobody decides on its call. "parley resume" continues that session: the call is
// asked about again, and made once it is allowed. It runs in the session's folder, wherever the command is entered.
func TestResumeGoesOnWithACallThatWasPutOff(t *testing.T) {
	t.Parallel()
	const prompt = "Make a file"
	for _, variable := range byDay(t, 1, newestClaude, olderClaude) {
		t.Run(variable, func(t *testing.T) {
			t.Parallel()
			c := newClaudeOf(t, variable, modeltest.Script{Prompt: prompt, Turns: []modeltest.Turn{{Calls: []modeltest.Call{bash("touch a.txt")}}, {Text: "It is made"}}})
			state := nodeTest(t)
			if out, err := c.parley(t, "setup", "claude-code", "--state", state, "--when-away", "defer").CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			c.print(t, "-p", prompt, "--permission-mode", "bypassPermissions")
			name := ""
			eventually.Holds(t, "the session has ended", func() bool {
				for _, a := range agentsOf(t, state, "--all") {
					if !a.Of.IsZero() && a.Ended {
						name = a.Name
					}
				}
				return name != ""
			})
			attend(t, state)
			resume := c.parley(t, "resume", name, "--print", "--program", c.program, "--flag=--permission-mode", "--flag=bypassPermissions", "--state", state)
			resume.Dir = t.TempDir()
			out := make(chan string, 1)
			go func() { // ends with the program, which the test's context ends
				text, err := resume.CombinedOutput()
				if err != nil {
					text = append(text, err.Error()...)
				}
				out <- string(text)
			}()
			decide(t, state, "allow", awaitCall(t, state, "touch a.txt"))
			if text := <-out; !strings.Contains(text, "It is made") || !isThere(c.project, "a.txt") {
				t.Errorf("resumed, it says %s", text)
			}
			if _, errs, exit := runTest(t.Context(), state, nil, "resume", "HOST"); exit == 0 || !strings.Contains(errs, "is no session of a coding agent") {
				t.Errorf("the host is resumed: %d %s", exit, errs)
			}
		})
	}
}

// TestOnlyEndedSessionsAreResumed resumes what may not be, among it a session whose ID is a flag.
func TestOnlyEndedSessionsAreResumed(t *testing.T) {
	t.Parallel()
	state := nodeTest(t)
	session := agentsOf(t, state)[0]
	session.Of, session.Ended, session.Session = session.ID, true, "0b1c-2"
	session.Labels = map[string]string{people.LabelFolder: t.TempDir(), people.LabelProgram: "claude-code"}
	program, args, err := resumption(session, true, []string{"go on"}, []string{"--model", "x"})
	if err != nil || program != "claude" || strings.Join(args, " ") != "-p --resume 0b1c-2 --model x go on" {
		t.Errorf("%s %q, %v", program, args, err)
	}
	session.Labels[people.LabelProgram] = "codex"
	if program, args, err = resumption(session, true, []string{"go on"}, nil); err != nil || program != "codex" || strings.Join(args, " ") != "exec resume 0b1c-2 go on" {
		t.Errorf("%s %q, %v", program, args, err)
	}
	for name, change := range map[string]func(a *view.AgentStatus){
		"no program": func(a *view.AgentStatus) { a.Labels = map[string]string{people.LabelFolder: t.TempDir()} },
		"no folder": func(a *view.AgentStatus) {
			a.Labels = map[string]string{people.LabelProgram: "codex", people.LabelFolder: "/nowhere/at/all"}
		},
		"a digest": func(a *view.AgentStatus) {
			a.Labels = map[string]string{people.LabelProgram: "codex", people.LabelFolder: "sha256"}
		},
		"a flag":           func(a *view.AgentStatus) { a.Session = "--dangerously-skip-permissions" },
		"several words":    func(a *view.AgentStatus) { a.Session = "a b" },
		"no ID":            func(a *view.AgentStatus) { a.Session = "" },
		"it lives":         func(a *view.AgentStatus) { a.Ended = false },
		"it is archived":   func(a *view.AgentStatus) { a.Ended, a.Status = false, "closed" },
		"it is no session": func(a *view.AgentStatus) { a.Of = capabilities.ID{} },
	} {
		other := session
		change(&other)
		if _, args, err := resumption(other, true, nil, nil); err == nil {
			t.Errorf("%s: %q", name, args)
		}
	}
}
