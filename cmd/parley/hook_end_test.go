package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"parley/gateway/api"
	"parley/internal/eventually"
)

// hookTest is a hook that waits for a decision.
type hookTest struct {
	command *exec.Cmd
	out     bytes.Buffer
}

// startHook starts a hook on an event of a session, for a command line.
func startHook(t *testing.T, state, event, session, line string) *hookTest {
	t.Helper()
	return startHookOn(t, state, hookInput(event, session, line))
}

// startHookOn starts a hook on a request.
func startHookOn(t *testing.T, state, request string) *hookTest {
	t.Helper()
	h := &hookTest{command: exec.CommandContext(t.Context(), "parley", "hook", "claude-code", "--wait-anyway", "--state", state)}
	h.command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GORACE=atexit_sleep_ms=0"}
	h.command.Stdin = strings.NewReader(request)
	h.command.Stdout = &h.out
	if err := h.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = h.command.Process.Kill()
		_ = h.command.Wait()
	})
	return h
}

func hookInput(event, session, line string) string {
	return fmt.Sprintf(`{"session_id":%q,"cwd":"/home/fae/app","hook_event_name":%q,"tool_name":"Bash","tool_input":{"command":%q}}`, session, event, line)
}

// endWith runs a hook that does not ask.
func endWith(t *testing.T, state, input string) {
	t.Helper()
	if out, errs, exit := runTest(t.Context(), state, strings.NewReader(input), "hook", "claude-code"); exit != 0 || out != "" || errs != "" {
		t.Errorf("%s: %d, %s %s", input, exit, out, errs)
	}
}

// TestApprovalsEndWithTheirAsker ends hooks, calls and sessions. The host's "never" comes too late then, and makes no rule.
func TestApprovalsEndWithTheirAsker(t *testing.T) {
	t.Parallel()
	state := nodeTest(t)
	for name, test := range map[string]struct {
		end   func(*testing.T, *hookTest)
		reads string // in the response
	}{
		"killed": {end: func(t *testing.T, h *hookTest) {
			if err := h.command.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}},
		"PostToolUse": {
			end: func(t *testing.T, _ *hookTest) {
				endWith(t, state, hookInput("PostToolUse", "PostToolUse", "make PostToolUse"))
			},
			reads: "the question was cancelled",
		},
		"Stop": {
			end: func(t *testing.T, _ *hookTest) {
				endWith(t, state, `{"session_id":"Stop","cwd":"/home/fae/app","hook_event_name":"Stop"}`)
			},
			reads: "the question was cancelled",
		},
		"SessionEnd": {
			end: func(t *testing.T, _ *hookTest) {
				endWith(t, state, `{"session_id":"SessionEnd","cwd":"/home/fae/app","hook_event_name":"SessionEnd","reason":"other"}`)
			},
			reads: "the question was cancelled",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := startHook(t, state, "PermissionRequest", name, "make "+name)
			number := awaitCall(t, state, `"make `+name+`"`)
			// Neither another call of the session nor another session ends it.
			endWith(t, state, hookInput("PostToolUse", name, "make another"))
			endWith(t, state, hookInput("PostToolUse", "another", "make "+name))
			endWith(t, state, `{"session_id":"another","cwd":"/home/fae/app","hook_event_name":"SessionEnd"}`)
			endWith(t, state, fmt.Sprintf(`{"session_id":%q,"agent_id":"other","cwd":"/home/fae/app","hook_event_name":"SubagentStop"}`, name))
			if again := awaitCall(t, state, `"make `+name+`"`); again != number {
				t.Errorf("it is asked again, as %s", again)
			}
			eventually.Holds(t, "the approval is withdrawn", func() bool {
				test.end(t, h) // also before the hook holds its form
				out, _, _ := runTest(t.Context(), state, nil, "permit", "ls")
				return !strings.Contains(out, `"make `+name+`"`)
			})
			_, errs, exit := runTest(t.Context(), state, nil, "permit", "deny", number, "--always", "--json")
			var refused struct {
				Error struct {
					Code string `json:"code"`
				} `json:"error"`
			}
			if err := json.Unmarshal([]byte(errs), &refused); err != nil || exit == 0 || refused.Error.Code != "ALREADY_CANCELLED" {
				t.Errorf("never is answered by %d, %s", exit, errs)
			}
			if test.reads != "" {
				if err := h.command.Wait(); err != nil || !strings.Contains(h.out.String(), test.reads) {
					t.Errorf("the hook ends with %v, %s", err, h.out.String())
				}
			}
		})
	}
}

// TestFormsAreHeldFromTheirFirstMoment has processes ask, and go away before they have read that what they ask is open.
func TestFormsAreHeldFromTheirFirstMoment(t *testing.T) {
	t.Parallel()
	state := nodeTest(t)
	if _, errs, exit := runTest(t.Context(), state, nil, "mkguest", "fae"); exit != 0 {
		t.Fatal(errs)
	}
	for name, ask := range map[string]string{
		"approval": `"approval":{"as":"fae","tool":"Bash","input":{"command":"make approval"}}`,
		"question": `"question":{"as":"fae","recipient":"@host","title":"make question","description":"make question","fields":[{"name":"a","label":"A","type":"text"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("unix", stateFolder(state).socket())
			if err != nil {
				t.Fatal(err)
			}
			body := `{"as":"fae","session":"s","reason":"it waits no longer",` + ask + `}`
			_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: parley\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", api.HeldAskPath, len(body), body)
			if err != nil {
				t.Fatal(err)
			}
			line := func() string {
				out, _, _ := runTest(t.Context(), state, nil, "inbox", "--all")
				for line := range strings.Lines(out) {
					if strings.Contains(line, "make "+name) {
						return line
					}
				}
				return ""
			}
			eventually.Holds(t, "it is asked", func() bool { return line() != "" })
			if err := conn.Close(); err != nil { // nothing of the response was read
				t.Fatal(err)
			}
			eventually.Holds(t, "it is withdrawn", func() bool { return strings.Contains(line(), "cancelled") })
		})
	}
}

// TestSessionsEndNothingOfOthers has one session of a folder try to end what another waits for: by what its hooks report, under either
// session's ID, and by hand. Then the other session ends it.
func TestSessionsEndNothingOfOthers(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("processes are told apart on Linux")
	}
	state, home := nodeTest(t), t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(home, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	agent := func(line string) *exec.Cmd {
		c := exec.CommandContext(t.Context(), "sh", "-c", "export CLAUDE_PID=$$; "+strings.ReplaceAll(line, "HOOK", "parley hook claude-code --wait-anyway --state "+state)+"; true")
		c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GORACE=atexit_sleep_ms=0"}
		return c
	}
	end := write("end.json", `{"session_id":"a","cwd":"/home/fae/app","hook_event_name":"SessionEnd","reason":"other"}`)
	over := filepath.Join(home, "over")
	first := agent("HOOK < " + write("ask.json", hookInput("PermissionRequest", "a", "make release")) + " > " + filepath.Join(home, "asked") + " & until [ -e " + over + " ]; do sleep 0.1; done; HOOK < " + end + "; wait")
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		write("over", "")
		_ = first.Wait() // it may have been waited for
	})
	awaitCall(t, state, `"make release"`)
	open := func() string {
		out, _, _ := runTest(t.Context(), state, nil, "permit", "ls")
		return out
	}
	out, errs, exit := runTest(t.Context(), state, nil, "permit", "ls", "--json")
	var listed []struct {
		Form string `json:"form"`
	}
	if err := json.Unmarshal([]byte(out), &listed); err != nil || exit != 0 || len(listed) != 1 {
		t.Fatalf("%v: %s %s", err, out, errs)
	}
	second := agent("HOOK < " + write("ends.json", hookInput("PostToolUse", "b", "make other")) + "; HOOK < " + write("ran.json", hookInput("PostToolUse", "a", "make release")) + "; HOOK < " + end +
		"; parley cancel " + listed[0].Form + " 'it is not wanted' --state " + state)
	said, err := second.CombinedOutput()
	if err != nil || !strings.Contains(string(said), "NOT_PERMITTED: another session of this folder waits for the answer") {
		t.Errorf("another session reads %v, %s", err, said)
	}
	if !strings.Contains(open(), "make release") {
		t.Error("another session has ended it")
	}
	write("over", "")
	eventually.Holds(t, "its own session ends it", func() bool { return !strings.Contains(open(), "make release") })
}
