package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/actors/view"
	"parley/cmd/parley/modeltest"
	"parley/internal/eventually"
)

// readMail is the call by which a model reads mail.
var readMail = modeltest.Call{Tool: "mcp__parley__read_mail", Input: map[string]any{}}

// agentsOf returns the agents of a node; more are options of the list.
func agentsOf(t *testing.T, state string, more ...string) (all []view.AgentStatus) {
	t.Helper()
	out, errs, exit := runTest(t.Context(), state, nil, append([]string{"ls", "--json"}, more...)...)
	if exit != 0 {
		t.Fatal(errs)
	}
	var got struct {
		Agents []view.AgentStatus `json:"agents"`
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		if err := json.Unmarshal([]byte(out), &all); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return all
	}
	return got.Agents
}

// sendAs has the host, or another agent, send a message, and returns the ID of it.
func sendAs(t *testing.T, state, to, text string, more ...string) (message string) {
	t.Helper()
	out, errs, exit := runTest(t.Context(), state, nil, append([]string{"send", to, text}, more...)...)
	if exit != 0 {
		t.Fatal(errs)
	}
	return strings.TrimSpace(out)
}

// logConversation logs the messages of a request, in short.
func logConversation(t *testing.T, body string) {
	t.Helper()
	var in struct {
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	_ = json.Unmarshal([]byte(body), &in)
	for _, m := range in.Messages {
		text := string(m.Content)
		t.Logf("%s: %s", m.Role, text[max(0, len(text)-900):])
	}
}

// lastOf returns the latest request of a script.
func (c *coderTest) lastOf(prompt string) string {
	all := c.model.Requests(prompt)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1].Body
}

// TestMailReachesClaudeCode sends mail to the folder, and to a session of it, of Claude Code without a terminal: at the start,
// between two calls, and as it stops.
func TestMailReachesClaudeCode(t *testing.T) {
	t.Parallel()
	for _, variable := range byDay(t, 1, newestClaude, olderClaude) {
		t.Run(variable, func(t *testing.T) {
			t.Parallel()
			const first, second = "Say hello", "Do the work"
			c := newClaudeOf(t, variable,
				modeltest.Script{Prompt: first, Turns: []modeltest.Turn{{Text: "Hello"}}},
				modeltest.Script{Prompt: second, Turns: []modeltest.Turn{
					{Calls: []modeltest.Call{readMail}},
					{Calls: []modeltest.Call{bash("touch began; until [ -e go ]; do sleep 0.1; done")}},
					{Calls: []modeltest.Call{readMail}},
					{Text: "I am done"},
					{Calls: []modeltest.Call{readMail}},
					{Text: "That was all"},
				}},
			)
			state := c.setUp(t, "claude-code")
			attend(t, state)
			c.print(t, "-p", first, "--permission-mode", "bypassPermissions")
			messages := []string{sendAs(t, state, "Claude Code · project", "the first words")}
			end := c.background(t, "-p", second, "--permission-mode", "bypassPermissions")
			decide(t, state, "allow", awaitCall(t, state, "touch began"))
			eventually.Holds(t, "the call runs", func() bool { return isThere(c.project, "began") })
			messages = append(messages, sendAs(t, state, "Claude Code · project · 2", "the urgent words", "--priority", "urgent"))
			messages = append(messages, sendAs(t, state, "Claude Code · project · 2", "the normal words"))
			c.writeText(t, c.project+"/go", "")
			end()
			last := c.lastOf(second)
			for _, words := range []string{"the first words", "the urgent words", "the normal words"} {
				if n := strings.Count(last, words); n != 1 {
					t.Errorf("%q is %d times in the conversation", words, n)
				}
			}
			for _, message := range messages {
				awaitShown(t, state, message)
			}
			for _, a := range agentsOf(t, state) {
				if want := map[bool]string{true: "Claude Code · project · 2", false: "Claude Code · project"}[!a.Of.IsZero()]; a.Name != "HOST" && a.Title != want {
					t.Errorf("the agent %s has the title %q", a.Name, a.Title)
				}
			}
		})
	}
}

// mailWakes is how often the test wakes an idle session. A measurement gives more.
var mailWakes = flag.Int("mail-wakes", 2, "how often mail wakes an idle session of a coding agent")

// TestMailWakesClaudeCode sends mail to an idle session in a terminal, which a change of its wake file wakes.
func TestMailWakesClaudeCode(t *testing.T) {
	t.Parallel()
	for _, variable := range byDay(t, 1, newestClaude, olderClaude) {
		t.Run(variable, func(t *testing.T) {
			t.Parallel()
			const prompt = "Wait for mail"
			turns := []modeltest.Turn{{Text: "I am ready"}}
			for i := range *mailWakes {
				turns = append(turns, modeltest.Turn{Calls: []modeltest.Call{readMail}}, modeltest.Turn{Text: fmt.Sprintf("That was mail %d.", i)})
			}
			c := newClaudeOf(t, variable, modeltest.Script{Prompt: prompt, Turns: turns, Needs: readMail.Tool})
			state := c.setUp(t, "claude-code")
			terminal := inTerminal(t, c.command(t.Context(), prompt, "--permission-mode", "bypassPermissions"))
			terminal.expect(t, "I am ready")
			var took []time.Duration
			for i := range *mailWakes {
				c.awaitIdle(t)
				before := len(c.model.Requests(prompt))
				at := time.Now()
				message := sendAs(t, state, "Claude Code · project · 1", fmt.Sprintf("these are words %d!", i))
				eventually.Holds(t, "the session is woken", func() bool { return len(c.model.Requests(prompt)) > before })
				took = append(took, c.model.Requests(prompt)[before].At.Sub(at))
				terminal.expect(t, fmt.Sprintf("That was mail %d.", i))
				awaitShown(t, state, message)
			}
			for i := range *mailWakes {
				if n := strings.Count(c.lastOf(prompt), fmt.Sprintf("these are words %d!", i)); n != 1 {
					t.Errorf("message %d is %d times in the conversation", i, n)
				}
			}
			slices.Sort(took)
			t.Logf("from idle to the request: median %s, 99th percentile %s, most %s, of %d", took[len(took)/2], took[len(took)*99/100], took[len(took)-1], len(took))
			if t.Failed() {
				logConversation(t, c.lastOf(prompt))
			}
		})
	}
}

// idleFor is how long nothing is written to the transcript of a session that has nothing to do.
const idleFor = 1500 * time.Millisecond

// awaitIdle waits until no session works.
func (c *coderTest) awaitIdle(t *testing.T) {
	t.Helper()
	eventually.Holds(t, "the session is idle", func() bool {
		files, err := filepath.Glob(filepath.Join(c.home, ".claude", "projects", "*", "*.jsonl"))
		for _, path := range files {
			if info, err := os.Stat(path); err != nil || time.Since(info.ModTime()) < idleFor {
				return false
			}
		}
		return err == nil && len(files) > 0
	})
}

// awaitShown waits until the sender of a message knows that it was shown.
func awaitShown(t *testing.T, state, message string) {
	t.Helper()
	if out, errs, exit := runTest(t.Context(), state, nil, "await", message, "--until", "shown", "--timeout", "60s"); exit != 0 {
		t.Errorf("message %s is not known to be shown: %s%s", message, out, errs)
	}
}

// TestReaderOfClaudeCodeSetsWhenMailComes has urgent mail come neither between two calls nor at a stop, as its reader has set, but at the next
// prompt, where somebody is there.
func TestReaderOfClaudeCodeSetsWhenMailComes(t *testing.T) {
	t.Parallel()
	const work = "Do the work"
	c := newClaude(t, modeltest.Script{Prompt: work, Turns: []modeltest.Turn{
		{Calls: []modeltest.Call{bash("touch began; until [ -e go ]; do sleep 0.1; done")}}, {Text: "I am done"}, {Calls: []modeltest.Call{readMail}}, {Text: "That was all"},
	}})
	state := c.setUp(t, "claude-code")
	attend(t, state)
	end := c.background(t, "-p", work, "--permission-mode", "bypassPermissions")
	decide(t, state, "allow", awaitCall(t, state, "touch began"))
	eventually.Holds(t, "the call runs", func() bool { return isThere(c.project, "began") })
	address := ""
	for _, a := range agentsOf(t, state) {
		if a.Title == "Claude Code · project" {
			address = a.Name
		}
	}
	if out, errs, exit := runTest(t.Context(), state, nil, "agent", "attention", "--as", address, "--quiet", "always"); exit != 0 || !strings.Contains(out, "quiet: always, and so now") {
		t.Fatal(out, errs)
	}
	message := sendAs(t, state, "Claude Code · project · 1", "the urgent words", "--priority", "urgent")
	c.writeText(t, c.project+"/go", "")
	end()
	if last := c.lastOf(work); strings.Contains(last, "Call read_mail") {
		t.Error("mail came in a time of quiet")
	}
	if out, _, _ := runTest(t.Context(), state, nil, "await", message, "--until", "delivered"); strings.TrimSpace(out) != "delivered" {
		t.Errorf("the message is %s", out)
	}
	c.print(t, "-p", "Go on", "--resume", c.sessionID(t), "--permission-mode", "bypassPermissions")
	if n := strings.Count(c.lastOf(work), "the urgent words"); n != 1 {
		t.Errorf("at a prompt it is %d times in the conversation", n)
	}
	awaitShown(t, state, message)
}

// sessionID returns the ID that Claude Code has for its only session.
func (c *coderTest) sessionID(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(c.home, ".claude", "projects", "*", "*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	return strings.TrimSuffix(filepath.Base(files[0]), ".jsonl")
}

// TestMailSurvivesClaudeCode kills Claude Code once a notice was offered to it, and resumes the session.
func TestMailSurvivesClaudeCode(t *testing.T) {
	t.Parallel()
	const first = "Say hello"
	c := newClaude(t, modeltest.Script{Prompt: first, Turns: []modeltest.Turn{
		{Text: "Hello"}, {Calls: []modeltest.Call{readMail}}, {Text: "I have read it"}, {Text: "And again"}, {Text: "And again"},
	}})
	state := c.setUp(t, "claude-code")
	c.print(t, "-p", first, "--permission-mode", "bypassPermissions")
	id := c.sessionID(t)
	message := sendAs(t, state, "Claude Code · project · 1", "the lost words")
	killed := c.command(t.Context(), "-p", "Go on", "--resume", id, "--permission-mode", "bypassPermissions")
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	if out, errs, exit := runTest(t.Context(), state, nil, "await", message, "--until", "offered", "--timeout", "60s"); exit != 0 {
		t.Error(out, errs)
	}
	_ = killed.Process.Kill()
	_ = killed.Wait()
	before := len(c.model.Requests(first))
	c.print(t, "-p", "Go on", "--resume", id, "--permission-mode", "bypassPermissions")
	if n := strings.Count(c.lastOf(first), "the lost words"); n != 1 {
		t.Errorf("it is %d times in the conversation", n)
		logConversation(t, c.lastOf(first))
	}
	t.Logf("killed after %d requests", before)
	awaitShown(t, state, message)
	if n := len(agentsOf(t, state)); n != 2 { // the session has ended
		t.Errorf("there are %d agents", n)
	}
}

// TestMailAfterClear clears the conversation of Claude Code in a terminal. The session keeps its mailbox, and its MCP server.
func TestMailAfterClear(t *testing.T) {
	t.Parallel()
	const first, second = "Wait a moment", "Now read your mail"
	c := newClaude(t,
		modeltest.Script{Prompt: first, Needs: readMail.Tool, Turns: []modeltest.Turn{{Text: "I am ready"}}},
		modeltest.Script{Prompt: second, Turns: []modeltest.Turn{{Calls: []modeltest.Call{readMail}}, {Text: "I have read it all"}}},
	)
	state := c.setUp(t, "claude-code")
	terminal := inTerminal(t, c.command(t.Context(), first, "--permission-mode", "bypassPermissions"))
	terminal.expect(t, "I am ready")
	c.awaitIdle(t)
	before := c.livingSession(t, state)
	terminal.enter(t, "/clear", "the conversation is cleared", func() bool {
		files, _ := filepath.Glob(filepath.Join(c.home, ".claude", "projects", "*", "*.jsonl"))
		return len(files) > 1 || strings.Contains(runLog(t, state, "Claude Code · project"), "SessionMoved")
	})
	message := sendAs(t, state, "Claude Code · project · 1", "the words after", "--priority", "low")
	terminal.enter(t, second, "the model is asked", func() bool { return len(c.model.Requests(second)) > 0 })
	terminal.expect(t, "I have read it all")
	if n := strings.Count(c.lastOf(second), "the words after"); n != 1 || strings.Contains(c.lastOf(second), first) {
		t.Errorf("they are %d times in the conversation", n)
		logConversation(t, c.lastOf(second))
	}
	awaitShown(t, state, message)
	if after := c.livingSession(t, state); after != before {
		t.Errorf("the session is another agent: %s, and not %s", after, before)
	}
}

// runLog returns the log of an agent.
func runLog(t *testing.T, state, agent string) string {
	t.Helper()
	for _, a := range agentsOf(t, state) {
		if a.Title == agent {
			out, _, _ := runTest(t.Context(), state, nil, "log", "--as", a.Name)
			return out
		}
	}
	return ""
}

// livingSession returns the ID of the agent of the only session.
func (c *coderTest) livingSession(t *testing.T, state string) (id string) {
	t.Helper()
	for _, a := range agentsOf(t, state) {
		if !a.Of.IsZero() {
			if id != "" {
				t.Errorf("there are several sessions: %s", a.Title)
			}
			id = a.ID.String()
		}
	}
	return id
}

// TestSessionsOfAFolderAreTwoAgents runs two sessions in one folder, which write to each other.
func TestSessionsOfAFolderAreTwoAgents(t *testing.T) {
	t.Parallel()
	const first, second = "Be the first", "Be the second"
	program, err := exec.LookPath("parley")
	if err != nil {
		t.Fatal(err)
	}
	wait := func(name string) modeltest.Call {
		return bash("touch " + name + "; until [ -e go ]; do sleep 0.1; done")
	}
	var c *coderTest
	state := nodeTest(t)
	c = newClaude(t,
		modeltest.Script{Prompt: first, Turns: []modeltest.Turn{
			{Calls: []modeltest.Call{wait("one")}},
			{Calls: []modeltest.Call{bash(program + " --state " + state + " send 'Claude Code · project · 2' 'from the first'; touch sent")}},
			{Calls: []modeltest.Call{readMail}}, {Text: "Done"}, {Text: "Done"},
		}},
		modeltest.Script{Prompt: second, Turns: []modeltest.Turn{
			{Calls: []modeltest.Call{wait("two")}},
			{Calls: []modeltest.Call{bash("until [ -e sent ]; do sleep 0.1; done")}},
			{Calls: []modeltest.Call{readMail}}, {Text: "Done"}, {Text: "Done"},
		}},
	)
	c.setUpFor(t, "claude-code", state)
	attend(t, state)
	endFirst := c.background(t, "-p", first, "--permission-mode", "bypassPermissions")
	decide(t, state, "allow", awaitCall(t, state, "touch one"))
	endSecond := c.background(t, "-p", second, "--permission-mode", "bypassPermissions")
	decide(t, state, "allow", awaitCall(t, state, "touch two"))
	var titles []string
	for _, a := range agentsOf(t, state) {
		titles = append(titles, a.Title)
	}
	if want := []string{"", "Claude Code · project", "Claude Code · project · 1", "Claude Code · project · 2"}; !slices.Equal(slices.Sorted(slices.Values(titles)), want) {
		t.Errorf("the agents are %q", titles)
	}
	sendAs(t, state, "Claude Code · project · 1", "for the first alone")
	sendAs(t, state, "Claude Code · project · 2", "for the second alone")
	c.writeText(t, filepath.Join(c.project, "go"), "")
	decide(t, state, "allow", awaitCall(t, state, "from the first"))
	decide(t, state, "allow", awaitCall(t, state, "-e sent"))
	endFirst()
	endSecond()
	for prompt, want := range map[string][]string{first: {"for the first alone"}, second: {"for the second alone", "from the first"}} {
		got := c.lastOf(prompt)
		for _, words := range want {
			if n := strings.Count(got, `\"text\":\"`+words) + strings.Count(got, `\\\"text\\\":\\\"`+words); n != 1 {
				t.Errorf("%q: %q was read %d times", prompt, words, n)
				logConversation(t, got)
			}
		}
	}
	if strings.Contains(c.lastOf(first), "for the second alone") || strings.Contains(c.lastOf(second), "for the first alone") {
		t.Error("a session has read another's mail")
	}
}
