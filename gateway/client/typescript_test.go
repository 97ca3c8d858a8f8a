package client_test

import (
	"bytes"
	"context"
	"flag"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/cockroachdb/datadriven" // for its flag -rewrite

	"parley/gateway/api"
	"parley/gateway/client"
)

// script is a running program of a client in another language.
type script struct {
	name   string
	cmd    *exec.Cmd
	stdout bytes.Buffer
	stderr bytes.Buffer
	lines  chan string
}

// maxLines is the number of lines that a script may print before they are read.
const maxLines = 2000

func startScript(t *testing.T, name, url, token string, args ...string) *script {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil && os.Getenv("CI") == "" {
		t.Skip("there is no node")
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, node, append([]string{filepath.Join("typescript", "examples", name)}, args...)...)
	cmd.Env = append(os.Environ(), "PARLEY_URL="+url, "PARLEY_TOKEN="+token)
	return runScript(t, name, cmd)
}

// runScript starts a script, and collects its output.
func runScript(t *testing.T, name string, cmd *exec.Cmd) *script {
	t.Helper()
	s := &script{name: name, cmd: cmd, lines: make(chan string, maxLines)}
	out, in := io.Pipe()
	s.cmd.Stdout, s.cmd.Stderr = io.MultiWriter(&s.stdout, in), &s.stderr
	go func() { // ends with the script
		defer close(s.lines)
		var rest []byte
		buf := make([]byte, 4096)
		for {
			n, err := out.Read(buf)
			rest = append(rest, buf[:n]...)
			for {
				line, after, ok := bytes.Cut(rest, []byte("\n"))
				if !ok {
					break
				}
				s.lines <- string(line)
				rest = after
			}
			if err != nil {
				return
			}
		}
	}()
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() })
	return s
}

// ends waits until the script has ended without an error, and returns its output.
func (s *script) ends(t *testing.T) string {
	t.Helper()
	if err := s.cmd.Wait(); err != nil {
		t.Fatalf("%s: %v\n%s%s", s.name, err, s.stdout.String(), s.stderr.String())
	}
	return s.stdout.String()
}

func (s *script) line(t *testing.T) string {
	t.Helper()
	select {
	case l := <-s.lines:
		return l
	case <-time.After(limit):
		t.Fatalf("%s says no more\n%s", s.name, s.stderr.String())
		return ""
	}
}

// hostToken makes a token for the host.
func hostToken(t *testing.T, host *client.Client) string {
	t.Helper()
	var made struct{ Token string }
	if err := host.Call(t.Context(), "create_token", struct{}{}, &made); err != nil {
		t.Fatal(err)
	}
	return made.Token
}

func TestTypeScriptAskAndAnswer(t *testing.T) { overBoth(t, testTypeScriptAskAndAnswer) }

func testTypeScriptAskAndAnswer(t *testing.T) {
	h, host, _ := openTest(t)
	ask := startScript(t, "ask.mjs", h.url(), tokenOf(t, host))
	answer := startScript(t, "answer.mjs", h.url(), hostToken(t, host))
	if got, want := answer.ends(t), `fae asks: Where to listen?
INVALID_ANSWER { host: 'no such field', port: 'want a number' }
answered { port: 443, public: true }
`; got != want {
		t.Errorf("answer.mjs:\n%swant\n%s", got, want)
	}
	if got, want := ask.ends(t), "the host says 443 true\n"; got != want {
		t.Errorf("ask.mjs: %s", got)
	}

	approve := startScript(t, "approve.mjs", h.url(), tokenOf(t, host))
	for m, err := range host.Follow(t.Context(), client.View{Pending: true}, "") {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := host.Answer(t.Context(), m.ID(), map[string]string{"decision": "deny", "reason": "not on a Friday"}); err != nil {
			t.Fatal(err)
		}
		break
	}
	if got, want := approve.ends(t), "not allowed not on a Friday\n"; got != want {
		t.Errorf("approve.mjs: %s", got)
	}
}

// TestTypeScriptAskArrivesOnce cuts the connection after the node has accepted the form, and kills the node during the wait.
func TestTypeScriptAskArrivesOnce(t *testing.T) { overBoth(t, testTypeScriptAskArrivesOnce) }

func testTypeScriptAskArrivesOnce(t *testing.T) {
	h, host, _ := openTest(t)
	token := tokenOf(t, host)
	cut := openCuttingProxy(t, h.address, "/form")
	cut.cuts.Store(3)
	ask := startScript(t, "ask.mjs", cut.url, token)
	var form client.ID
	for m, err := range host.Follow(t.Context(), client.View{}, "") {
		if err != nil {
			t.Fatal(err)
		}
		form = m.ID()
		break
	}
	h.kill()
	if err := h.start(); err != nil {
		t.Fatal(err)
	}
	if _, err := host.Decline(t.Context(), form, "no"); err != nil {
		t.Fatal(err)
	}
	if got := ask.ends(t); !strings.HasPrefix(got, "no answer: DECLINED") {
		t.Errorf("ask.mjs: %s", got)
	}
	if got := listed(t, host, client.View{}); len(got) != 1 || cut.cuts.Load() >= 0 {
		t.Errorf("%d messages arrived, with %d cuts to come", len(got), cut.cuts.Load())
	}
}

// TestTypeScriptFollowSurvivesRestart kills the node, and resumes in another script.
func TestTypeScriptFollowSurvivesRestart(t *testing.T) {
	overBoth(t, testTypeScriptFollowSurvivesRestart)
}

func testTypeScriptFollowSurvivesRestart(t *testing.T) {
	h, host, fae := openTest(t)
	token := hostToken(t, host)
	say := func(texts ...string) {
		t.Helper()
		for _, text := range texts {
			if _, err := fae.Send(t.Context(), "HOST", client.Post{Text: text}); err != nil {
				t.Fatal(err)
			}
		}
	}
	say("one", "two")
	follow := startScript(t, "follow.mjs", h.url(), token)
	cursor, text, _ := strings.Cut(follow.line(t), " ")
	if text != "one" {
		t.Fatalf("got %q", text)
	}
	if _, text, _ = strings.Cut(follow.line(t), " "); text != "two" {
		t.Fatalf("got %q", text)
	}
	h.kill()
	if err := h.start(); err != nil {
		t.Fatal(err)
	}
	say("three", "end")
	if got := texts(follow.ends(t)); got != "one two three end" {
		t.Errorf("it was told %s", got)
	}
	if got := texts(startScript(t, "follow.mjs", h.url(), token, cursor).ends(t)); got != "two three end" {
		t.Errorf("after %s: %s", cursor, got)
	}
}

func TestTypeScriptPromptsAgent(t *testing.T) {
	h, host, _ := openTest(t)
	token := hostToken(t, host)
	wait, open := waitFile(t)
	worker(t, host, newWorker{Name: "counter", Title: "The counter", Labels: map[string]string{"job": "count"}}, "read prompt; "+wait+"; echo one; echo two")
	worker(t, host, newWorker{Name: "asks", Title: "Twin"}, `read prompt; printf '{"type":"approval","id":"a","tool":"shell","input":{"command":"ls"}}\n'; read decision`)
	worker(t, host, newWorker{Name: "ill", Title: "Twin"}, "read prompt; exit 3")
	worker(t, host, newWorker{Name: "old"}, "read prompt")
	if err := api.ArchiveAgent.Run(t.Context(), host, api.AgentRequest{AgentID: "old"}); err != nil {
		t.Fatal(err)
	}
	first := startScript(t, "agents.mjs", h.url(), token, "The counter", "Count to two.")
	for _, want := range []string{"to The counter { job: 'count' }", "it runs"} {
		if got := first.line(t); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	second := startScript(t, "agents.mjs", h.url(), token, "counter", "Count again.")
	for _, want := range []string{"to The counter { job: 'count' }", "it has to wait"} {
		if got := second.line(t); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	open()
	for _, s := range []*script{first, second} {
		if got := s.ends(t); !strings.HasSuffix(got, "one\ntwo\none\ntwo\nit is idle \n") {
			t.Errorf("agents.mjs:\n%s", got)
		}
	}
	for agent, want := range map[string]string{
		"asks": "it is permission \nit asks for shell {\"command\":\"ls\"}\n", "ill": "it is error the program ended: exit status 3\n",
		"old": "AGENT_ARCHIVED the agent is archived\n", "nobody": "AGENT_NOT_FOUND no agent \"nobody\"\n", "Twin": "AMBIGUOUS ",
	} {
		if got := startScript(t, "agents.mjs", h.url(), token, agent, "Go.").ends(t); !strings.Contains(got, want) {
			t.Errorf("agents.mjs %s:\n%swant %s", agent, got, want)
		}
	}
}

// TestTypeScriptFollowAgentsSurvivesRestart kills the node, and adds, changes and removes agents before the script resumes.
func TestTypeScriptFollowAgentsSurvivesRestart(t *testing.T) {
	t.Setenv("NODE_OPTIONS", "--experimental-websocket") // needed by Node 20, and the default later
	h, host, _ := openTest(t)
	ui := map[string]string{"ui": "true"}
	worker(t, host, newWorker{Name: "stays", Labels: ui}, "read prompt; echo begun; read more")
	worker(t, host, newWorker{Name: "goes", Labels: ui}, "read prompt")
	worker(t, host, newWorker{Name: "other"}, "read prompt")
	pass := openCuttingProxy(t, h.address, "")
	follow := startScript(t, "agents-follow.mjs", pass.url, hostToken(t, host))
	prompted, queued := []string{"upsert stays idle", "upsert goes idle", "upsert stays running"}, 0
	for i, want := range prompted {
		if i == 2 {
			prompt(t, host, "stays", "go")
		}
		got := follow.line(t)
		if i == 2 && got == prompted[0] { // an update with the prompt still queued
			queued, got = 1, follow.line(t)
		}
		if got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	hasOutput(t, host, "stays")
	h.kill()
	if err := h.start(); err != nil {
		t.Fatal(err)
	}
	if err := api.ArchiveAgent.Run(t.Context(), host, api.AgentRequest{AgentID: "goes"}); err != nil {
		t.Fatal(err)
	}
	worker(t, host, newWorker{Name: "comes", Labels: ui}, "read prompt")
	back, want := map[string]int{}, map[string]int{"upsert stays error": 1, "upsert comes idle": 1, "remove goes": 1}
	for range 3 {
		line := follow.line(t)
		if strings.HasPrefix(line, "remove goes ") { // with the status closed or the former one
			line = "remove goes"
		}
		back[line]++
	}
	if !maps.Equal(back, want) {
		t.Errorf("it was told %v, want %v", back, want)
	}
	worker(t, host, newWorker{Name: "end", Labels: ui}, "read prompt")
	told := strings.Split(strings.TrimSpace(follow.ends(t)), "\n")
	if len(told) != len(prompted)+queued+4 || told[len(told)-1] != "upsert end idle" {
		t.Errorf("it was told %q", told)
	}
	if pass.begunOf("follow_agents") == 0 { // once more if the node was back when a connection was tried, and by HTTP for a while if it came back just after
		t.Error("it did not follow over a connection for many calls")
	}
}

// TestTypeScriptFollowsLargeMailbox reads more than one page, and resumes within the second.
func TestTypeScriptFollowsLargeMailbox(t *testing.T) {
	h, host, fae := openTest(t)
	const messages, senders = 1100, 20
	var work sync.WaitGroup
	for range senders {
		work.Go(func() {
			for range messages / senders {
				if _, err := fae.Send(t.Context(), "HOST", client.Post{Text: "x"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	if _, err := fae.Send(t.Context(), "HOST", client.Post{Text: "end"}); err != nil {
		t.Fatal(err)
	}
	token := hostToken(t, host)
	lines := strings.Split(strings.TrimSpace(startScript(t, "follow.mjs", h.url(), token).ends(t)), "\n")
	if len(lines) != messages+1 || lines[messages] != strings.Fields(lines[messages])[0]+" end" {
		t.Fatalf("%d lines, at last %q", len(lines), lines[len(lines)-1])
	}
	for _, told := range []int{10, 1000, 1050, messages} {
		cursor := strings.Fields(lines[told-1])[0]
		if got := strings.Count(startScript(t, "follow.mjs", h.url(), token, cursor).ends(t), "\n"); got != messages+1-told {
			t.Errorf("after %s: %d lines, want %d", cursor, got, messages+1-told)
		}
	}
}

// texts returns lines without the cursors before the texts.
func texts(lines string) string {
	var all []string
	for line := range strings.Lines(lines) {
		_, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

// TestTypeScriptTypesMatchScript runs the compiler on the scripts and the typed example, and compares the declarations that it writes.
func TestTypeScriptTypesMatchScript(t *testing.T) {
	compiler := os.Getenv("PARLEY_TSC")
	if compiler == "" && os.Getenv("CI") == "" {
		t.Skip("PARLEY_TSC does not name the compiler")
	}
	project, out := filepath.Join("typescript", "tsconfig.json"), t.TempDir()
	compile := func(args ...string) {
		t.Helper()
		if said, err := exec.Command("node", append([]string{compiler, "--project", project}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
	}
	names, rewrite := []string{"client", "error", "asked", "agents", "wire", "connection", "link", "frame", "msgpack", "json", "follow", "cursor"}, flag.Lookup("rewrite").Value.String() == "true"
	for _, name := range names {
		if rewrite { // the compiler skips a script that has a declaration
			_ = os.Remove(filepath.Join("typescript", name+".d.ts")) // it may have none yet
		}
	}
	compile()
	compile("--noEmit", "false", "--declaration", "--emitDeclarationOnly", "--outDir", out)
	for _, name := range names {
		made, err := os.ReadFile(filepath.Join(out, name+".d.ts"))
		if err != nil {
			t.Fatal(err)
		}
		kept := filepath.Join("typescript", name+".d.ts")
		if rewrite {
			if err := os.WriteFile(kept, made, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(kept); err != nil || !bytes.Equal(made, want) {
			t.Errorf("%s is another (%v): look at what changed, and run go test -run %s -rewrite ./gateway/client if it is wanted", kept, err, t.Name())
		}
	}
}
