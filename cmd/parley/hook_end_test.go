package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
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

// poster is the name under which the test binary posts a text to a path of a socket, as any program below a coding agent can. It prints the
// status, and waits for the end of the response.
const poster = "poster"

func post() {
	conn, err := net.Dial("unix", os.Args[1])
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: parley\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", os.Args[2], len(os.Args[3]), os.Args[3])
	_, _ = io.Copy(os.Stdout, conn) // ends with the node
}

// agentsTest has processes play coding agents of one folder.
type agentsTest struct {
	t           *testing.T
	state, home string
}

func newAgents(t *testing.T, state string) *agentsTest {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("processes are told apart on Linux")
	}
	a := &agentsTest{t, state, t.TempDir()}
	shell, err := exec.LookPath("sh")
	if err == nil {
		var text []byte
		if text, err = os.ReadFile(shell); err == nil {
			err = os.WriteFile(a.path("claude"), text, 0o700) // by its name the node takes it for one
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *agentsTest) path(name string) string { return filepath.Join(a.home, name) }

// write writes a file, and returns its path.
func (a *agentsTest) write(name, text string) string {
	a.t.Helper()
	if err := os.WriteFile(a.path(name), []byte(text), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return a.path(name)
}

// agent returns a process that is taken for a coding agent, and runs a line in which HOOK is a hook.
func (a *agentsTest) agent(line string) *exec.Cmd {
	c := exec.CommandContext(a.t.Context(), a.path("claude"), "-c", "export CLAUDE_PID=$$; "+strings.ReplaceAll(line, "HOOK", "parley hook claude-code --wait-anyway --state "+a.state)+"; true")
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + a.home, "GORACE=atexit_sleep_ms=0"}
	return c
}

// start starts an agent that runs a line, and then waits until the file "over" is there.
func (a *agentsTest) start(line string) {
	a.t.Helper()
	c := a.agent(line + "; until [ -e " + a.path("over") + " ]; do sleep 0.1; done; wait")
	if err := c.Start(); err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() {
		a.write("over", "")
		_ = c.Wait() // what it has started may be killed
	})
}

// says runs an agent that ends, and returns what it prints.
func (a *agentsTest) says(line string) string {
	a.t.Helper()
	out, err := a.agent(line).CombinedOutput()
	if err != nil {
		a.t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// event returns the path of the request of a hook that asks about no call.
func (a *agentsTest) event(event, session, more string) string {
	return a.write(event+"-"+session+".json", fmt.Sprintf(`{"session_id":%q,"cwd":"/home/fae/app","hook_event_name":%q%s}`, session, event, more))
}

// TestStartLetsNobodyEndWhatOthersAsked kills a node while the hook of a session waits and stands still. Until it is back, another session
// of the folder neither cancels its approval nor keeps it open. The hook is answered then.
func TestStartLetsNobodyEndWhatOthersAsked(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	serve := func() *process {
		p := startProcess(t, filepath.Join(state, logFile), "parley", "serve", "--state", state, "--listen", "off")
		if _, errs, exit := runTest(t.Context(), state, nil, "status", "--wait", "60s"); exit != 0 {
			t.Fatal(errs)
		}
		return p
	}
	a, node := newAgents(t, state), serve()
	hook := a.path("hook.pid")
	a.start("HOOK < " + a.write("ask.json", hookInput("PermissionRequest", "a", "make release")) + " > " + a.path("asked") + " & echo $! > " + hook)
	awaitCall(t, state, `"make release"`)
	a.says("HOOK < " + a.event("SessionStart", "b", `,"source":"startup"`))
	text, err := os.ReadFile(hook)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) }) // it may have ended
	node.kill()
	serve()
	number := awaitCall(t, state, `"make release"`)
	form, guest := a.open(), a.guest()
	begins := "HOOK < " + a.event("SessionStart", "b", `,"source":"startup"`) + "; "
	said := a.says(begins + "parley cancel " + form + " 'it is not wanted' --state " + state)
	if !strings.Contains(said, "NOT_PERMITTED: the node has just started, and another session of this folder may wait for the answer") || !strings.Contains(said, "try again in") {
		t.Errorf("another session reads %s", said)
	}
	body := fmt.Sprintf(`{"as":%q,"form":%q,"session":"a","reason":"x"}`, guest, form)
	if said := a.says(begins + fmt.Sprintf("timeout 5 %s %s %s '%s'", poster, stateFolder(state).socket(), api.HoldPath, body)); !strings.Contains(said, "403") || !strings.Contains(said, "another session of this folder waits") {
		t.Errorf("another session that holds it reads %s", said)
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the hook is back", func() bool {
		return strings.Contains(a.says(begins+"parley cancel "+form+" 'it is not wanted' --state "+state), "another session of this folder waits for the answer")
	})
	if said := a.says(begins + fmt.Sprintf("timeout 5 %s %s %s '%s'", poster, stateFolder(state).socket(), api.HoldPath, body)); !strings.Contains(said, "403") {
		t.Errorf("another session that holds it beside the hook reads %s", said)
	}
	if _, errs, exit := runTest(t.Context(), state, nil, "permit", "allow", number); exit != 0 {
		t.Fatal(errs)
	}
	eventually.Holds(t, "the hook is answered", func() bool {
		out, err := os.ReadFile(a.path("asked"))
		return err == nil && strings.Contains(string(out), `"behavior":"allow"`)
	})
}

// open returns the ID of the one approval that waits.
func (a *agentsTest) open() string {
	a.t.Helper()
	out, errs, exit := runTest(a.t.Context(), a.state, nil, "permit", "ls", "--json")
	var listed []struct {
		Form string `json:"form"`
	}
	if err := json.Unmarshal([]byte(out), &listed); err != nil || exit != 0 || len(listed) != 1 {
		a.t.Fatalf("%v: %s %s", err, out, errs)
	}
	return listed[0].Form
}

// guest returns the name of the folder's guest.
func (a *agentsTest) guest() string {
	a.t.Helper()
	for _, one := range agentsOf(a.t, a.state) {
		if strings.HasPrefix(one.Name, "claude-code-app-") && len(one.Name) == len("claude-code-app-123456") {
			return one.Name
		}
	}
	a.t.Fatal("the folder has no guest")
	return ""
}

// TestFalseReportsTakeNoSession has a session of a folder report that another one has ended, has begun anew, and has read its mail: by its own
// hooks, and by those that another program has started. The other one has its mandate, its lease and its mail afterwards.
func TestFalseReportsTakeNoSession(t *testing.T) {
	t.Parallel()
	a := newAgents(t, nodeTest(t))
	over := a.event("SessionEnd", "a", `,"reason":"other"`)
	begun := a.event("SessionStart", "a", `,"source":"resume"`)
	cleared := a.write("cleared.json", `{"session_id":"a","cwd":"/home/fae/app","hook_event_name":"SessionEnd","reason":"clear"}`)
	asks := a.path("asks")
	a.start("HOOK < " + a.event("SessionStart", "a", `,"source":"startup"`) + "; HOOK < " + a.write("ask.json", hookInput("PermissionRequest", "a", "make release")) + " > " + a.path("asked") +
		"; until [ -e " + asks + " ]; do sleep 0.1; done; HOOK < " + a.event("UserPromptSubmit", "a", `,"prompt":"go on"`) + " > " + a.path("told"))
	number := awaitCall(t, a.state, `"make release"`)
	guest := a.guest()
	session := guest + "-1"
	decide(t, a.state, "allow", number, "--mandate", "--command", "make release", "--calls", "5")
	if _, errs, exit := runTest(t.Context(), a.state, nil, "send", session, "for a alone"); exit != 0 {
		t.Fatal(errs)
	}
	said := a.says("HOOK < " + a.event("SessionStart", "b", `,"source":"startup"`) + "; for by in '' 'timeout 60'; do for event in " + cleared + " " + begun + " " + over + "; do $by HOOK < $event; done; done")
	if strings.Contains(said, "message") {
		t.Errorf("another session is told of the mail: %s", said)
	}
	if out, errs, exit := runTest(t.Context(), a.state, nil, "mandate", "ls", guest); exit != 0 || !strings.Contains(out, "make release") && !strings.Contains(out, "of 5 calls") {
		t.Errorf("the mandate: %d, %s %s", exit, out, errs)
	}
	for _, one := range agentsOf(t, a.state) {
		if one.Name == session && one.Status == "closed" {
			t.Error("the session has ended")
		}
	}
	a.write("asks", "")
	eventually.Holds(t, "the session is told of its mail", func() bool {
		out, err := os.ReadFile(a.path("told"))
		return err == nil && strings.Contains(string(out), "1 new message")
	})
}

// TestSessionsEndNothingOfOthers has one session of a folder try to end what another waits for: by what its hooks report, under either
// session's ID, and by hand. Then the other session ends it.
func TestSessionsEndNothingOfOthers(t *testing.T) {
	t.Parallel()
	a := newAgents(t, nodeTest(t))
	end := a.event("SessionEnd", "a", `,"reason":"other"`)
	ends := a.path("ends")
	a.start("HOOK < " + a.write("ask.json", hookInput("PermissionRequest", "a", "make release")) + " > " + a.path("asked") + " & until [ -e " + ends + " ]; do sleep 0.1; done; HOOK < " + end)
	awaitCall(t, a.state, `"make release"`)
	said := a.says("HOOK < " + a.write("other.json", hookInput("PostToolUse", "b", "make other")) + "; HOOK < " + a.write("ran.json", hookInput("PostToolUse", "a", "make release")) + "; HOOK < " + end +
		"; parley cancel " + a.open() + " 'it is not wanted' --state " + a.state)
	if !strings.Contains(said, "NOT_PERMITTED: another session of this folder waits for the answer") {
		t.Errorf("another session reads %s", said)
	}
	open := func() string {
		out, _, _ := runTest(t.Context(), a.state, nil, "permit", "ls")
		return out
	}
	if !strings.Contains(open(), "make release") {
		t.Error("another session has ended it")
	}
	a.write("ends", "")
	eventually.Holds(t, "its own session ends it", func() bool { return !strings.Contains(open(), "make release") })
}
