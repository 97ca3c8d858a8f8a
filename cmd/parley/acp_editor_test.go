package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/acp-go-sdk"

	"parley/gateway/client"
)

// testEditor is an editor that has started "parley acp".
type testEditor struct {
	t       *testing.T
	conn    *acp.Connection
	session acp.SessionId
	asked   chan askedEditor

	mu   sync.Mutex
	said strings.Builder
	news chan struct{} // closed, and replaced, when something was said
}

// askedEditor is a request to the editor.
type askedEditor struct {
	method string
	params string
	reply  chan any
	gone   <-chan struct{} // closed when the request was withdrawn
}

// openEditor starts "parley acp" with arguments, and opens a session.
func openEditor(t *testing.T, folder, capabilities string, args ...string) *testEditor {
	t.Helper()
	c := exec.Command("parley", append([]string{"--state", folder, "acp"}, args...)...)
	c.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var problems strings.Builder
	c.Stderr = &problems
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	e := &testEditor{t: t, asked: make(chan askedEditor, 10), news: make(chan struct{})}
	e.conn = acp.NewConnection(e.handle, in, out)
	e.conn.SetLogger(slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		in.Close()
		<-e.conn.Done()
		if err := c.Wait(); err != nil {
			t.Errorf("parley acp: %v: %s", err, problems.String())
		}
	})
	began := e.call(acp.AgentMethodInitialize, `{"protocolVersion":1,"clientCapabilities":`+capabilities+`}`)
	if !strings.Contains(began, `"agentInfo":{"name":"parley"`) || !strings.Contains(began, `"protocolVersion":1`) {
		t.Errorf("it began with %s", began)
	}
	var made acp.NewSessionResponse
	if err := json.Unmarshal([]byte(e.call(acp.AgentMethodSessionNew, `{"cwd":"/","mcpServers":[]}`)), &made); err != nil {
		t.Fatal(err)
	}
	e.session = made.SessionId
	return e
}

func (e *testEditor) handle(ctx context.Context, method string, params json.RawMessage) (any, *acp.RequestError) {
	if method == acp.ClientMethodSessionUpdate {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.said.Write(params)
		e.said.WriteString("\n")
		close(e.news)
		e.news = make(chan struct{})
		return nil, nil
	}
	a := askedEditor{method, string(params), make(chan any, 1), ctx.Done()}
	e.asked <- a
	select {
	case r := <-a.reply:
		return r, nil
	case <-ctx.Done():
		return nil, acp.NewRequestCancelled(nil)
	}
}

func (e *testEditor) call(method, params string) string {
	e.t.Helper()
	r, err := acp.SendRequest[json.RawMessage](e.conn, e.t.Context(), method, json.RawMessage(params))
	if err != nil {
		e.t.Fatal(method, err)
	}
	return string(r)
}

// prompt starts a turn, and returns the channel of its end.
func (e *testEditor) prompt(text string) <-chan string {
	words, err := json.Marshal(text)
	if err != nil {
		e.t.Fatal(err)
	}
	ended := make(chan string, 1)
	go func() {
		r, err := acp.SendRequest[json.RawMessage](e.conn, e.t.Context(), acp.AgentMethodSessionPrompt,
			json.RawMessage(`{"sessionId":"`+string(e.session)+`","prompt":[{"type":"text","text":`+string(words)+`}]}`))
		if err != nil {
			r = json.RawMessage(err.Error())
		}
		ended <- string(r)
	}()
	return ended
}

// next returns the next request to the editor, which has some texts.
func (e *testEditor) next(method string, texts ...string) askedEditor {
	e.t.Helper()
	select {
	case a := <-e.asked:
		if a.method != method {
			e.t.Fatalf("asked %s %s", a.method, a.params)
		}
		for _, text := range texts {
			if !strings.Contains(a.params, text) {
				e.t.Errorf("asked without %s: %s", text, a.params)
			}
		}
		return a
	case <-time.After(time.Minute):
		e.t.Fatal("nothing is asked")
	}
	panic("unreachable")
}

// hears blocks until a text was said.
func (e *testEditor) hears(text string) {
	e.t.Helper()
	e.hearsTimes(text, 1)
}

// hearsTimes blocks until a text was said so often.
func (e *testEditor) hearsTimes(text string, times int) {
	e.t.Helper()
	for deadline := time.After(time.Minute); ; {
		e.mu.Lock()
		said, news := e.said.String(), e.news
		e.mu.Unlock()
		if strings.Count(said, text) >= times {
			return
		}
		select {
		case <-news:
		case <-deadline:
			e.t.Fatalf("%q is not among\n%s", text, said)
		}
	}
}

func chosen(option string) any {
	return json.RawMessage(`{"outcome":{"outcome":"selected","optionId":"` + option + `"}}`)
}

func nodeClient(t *testing.T, folder, as string) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{Socket: filepath.Join(folder, socketFile), As: as})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

const showsForms = `{"elicitation":{"form":{}}}`

// TestEditorDecidesCalls decides calls in an editor: once, by a rule, elsewhere, and after they were left.
func TestEditorDecidesCalls(t *testing.T) {
	t.Parallel()
	h := openModelServer(t)
	fae, host := nodeClient(t, h.folder, "fae"), nodeClient(t, h.folder, "")
	e := openEditor(t, h.folder, `{}`)
	ask := func(input string) *client.Permission {
		t.Helper()
		p, err := fae.Approve(t.Context(), client.Approval{Tool: "Bash", Input: json.RawMessage(input), Folder: "/w"})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	decided := func(p *client.Permission) client.Decision {
		t.Helper()
		d, err := p.Await(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	p := ask(`{"command":"git status"}`)
	a := e.next("session/request_permission", `"kind":"execute"`, `\"fae\" wants to run git status`, `"rawInput":{"command":"git status"}`, `"name":"Always: exactly this call, in /w"`, `"kind":"reject_always"`)
	a.reply <- chosen("once")
	if d := decided(p); !d.Allowed {
		t.Errorf("allowed once is %+v", d)
	}
	e.hears(`"status":"completed"`)

	p = ask(`{"command":"git status"}`)
	wider := ""
	for m, err := range host.List(t.Context(), client.View{Pending: true}) {
		if err != nil || m.Permission == nil || len(m.Permission.Offers) != 2 {
			t.Fatal(m, err)
		}
		wider = "always " + m.Permission.Offers[1].ID
	}
	a = e.next("session/request_permission", `"optionId":"`+wider+`"`)
	a.reply <- chosen(wider)
	if d := decided(p); !d.Allowed {
		t.Errorf("allowed always is %+v", d)
	}
	if p = ask(`{"command":"git status --short"}`); !decided(p).Allowed {
		t.Error("the rule that was chosen does not decide")
	}

	p = ask(`{"command":"git push"}`)
	a = e.next("session/request_permission")
	a.reply <- json.RawMessage(`{"outcome":{"outcome":"cancelled"}}`) // left: it stays open
	<-e.prompt("/inbox")
	a = e.next("session/request_permission", "git push")
	a.reply <- chosen("deny")
	if d := decided(p); d.Allowed {
		t.Errorf("denied is %+v", d)
	}
	e.hears(`"status":"failed"`)

	ask(`{"command":"git fetch"}`)
	a = e.next("session/request_permission")
	for m, err := range host.List(t.Context(), client.View{Pending: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := host.Decide(t.Context(), m, "deny", "not now"); err != nil {
			t.Fatal(err)
		}
	}
	<-a.gone
	e.hears("not now")
}

// TestEditorAnswersForms answers forms in an editor: as its forms, as a choice, and by commands.
func TestEditorAnswersForms(t *testing.T) {
	t.Parallel()
	h := openModelServer(t)
	fae := nodeClient(t, h.folder, "fae")
	e := openEditor(t, h.folder, showsForms)
	ask := func(fields ...client.Field) *client.Asked {
		t.Helper()
		asked, err := fae.Ask(t.Context(), client.Form{To: "@host", Description: "Settings", Fields: fields})
		if err != nil {
			t.Fatal(err)
		}
		return asked
	}
	outcome := func(a *client.Asked) client.Outcome {
		t.Helper()
		o, err := a.Await(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	var got struct{ Name, Size string }
	read := func(a *client.Asked) string {
		t.Helper()
		if err := outcome(a).Decode(&got); err != nil {
			t.Fatal(err)
		}
		return got.Name
	}

	asked := ask(client.Field{Name: "name", Required: true, Pattern: json.RawMessage(`{"type":"string","minLength":3}`)})
	e.next("elicitation/create", `"requestedSchema":{"type":"object","properties":{"name":{"type":"string","minLength":3}},"required":["name"]}`).
		reply <- json.RawMessage(`{"action":"accept","content":{"name":"me"}}`)
	e.next("elicitation/create", "That was not accepted").reply <- json.RawMessage(`{"action":"accept","content":{"name":"you"}}`)
	if read(asked) != "you" {
		t.Errorf("answered %+v", got)
	}

	asked = ask(client.Field{Name: "name", Required: true})
	e.next("elicitation/create").reply <- json.RawMessage(`{"action":"decline"}`)
	if o := outcome(asked); o.Status != "declined" {
		t.Errorf("declined is %+v", o)
	}

	asked = ask(client.Field{Name: "name", Type: "buttons", Options: []client.Option{{Value: "a", Label: "Alpha"}, {Value: "b"}}})
	e.next("session/request_permission", `"name":"Alpha"`, `"name":"Decline"`).reply <- chosen("0")
	if read(asked) != "a" {
		t.Errorf("chose %+v", got)
	}

	asked = ask(client.Field{Name: "name", Pattern: json.RawMessage(`{"type":"string","pattern":"^a b"}`)})
	e.hears("/answer 3 FIELD=VALUE")
	if ended := <-e.prompt(`/answer 3 name="a b c"`); ended != `{"stopReason":"end_turn"}` {
		t.Errorf("the turn ended with %s", ended)
	}
	if read(asked) != "a b c" {
		t.Errorf("answered %+v by a command", got)
	}
	ask(client.Field{Name: "name", Type: "secret"})
	e.hears("parley answer 4")
	<-e.prompt("/answer 4 name=x")
	e.hears("4 asks for a secret")
	<-e.prompt("/decline 99 no")
	e.hears("no message 99")
}

// TestEditorSignsNothing asks about a call, forms and a request that need a passkey. The editor is given nothing that could allow or answer
// them, what it sends all the same is refused, and the text says where they are decided. They can be denied and declined.
func TestEditorSignsNothing(t *testing.T) {
	t.Parallel()
	h := openModelServer(t)
	fae := nodeClient(t, h.folder, "fae")
	e := openEditor(t, h.folder, showsForms)
	open := func(m client.Message, err error) {
		t.Helper()
		if err != nil || m.Outcome != nil || !m.Passkey {
			t.Errorf("message %d: %v, outcome %+v", m.Number, err, m.Outcome)
		}
	}
	host := nodeClient(t, h.folder, "")
	shown := func(number uint64) (client.Message, error) {
		for m, err := range host.List(t.Context(), client.View{Pending: true}) {
			if err != nil || m.Number == number {
				return m, err
			}
		}
		return client.Message{}, nil
	}

	p, err := fae.Approve(t.Context(), client.Approval{Tool: "Bash", Input: json.RawMessage(`{"command":"git push"}`), Folder: "/w", Passkey: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, forged := range []string{"once", "always", "always x"} {
		a := e.next("session/request_permission", "It needs a passkey: allow it on the page", `"kind":"reject_once"`)
		if strings.Contains(a.params, "allow_once") || strings.Contains(a.params, "allow_always") {
			t.Errorf("it may be allowed: %s", a.params)
		}
		a.reply <- chosen(forged)
		e.hearsTimes("0 was not settled", i+1)
		open(shown(0))
		<-e.prompt("/inbox")
	}
	<-e.prompt("/answer 0 decision=once")
	e.hears("allowing this call has to be signed with a passkey")
	open(shown(0))
	e.next("session/request_permission").reply <- chosen("deny")
	if d, err := p.Await(t.Context()); err != nil || d.Allowed {
		t.Errorf("denied is %+v %v", d, err)
	}

	for i, fields := range [][]client.Field{{{Name: "name"}}, {{Name: "name", Type: "buttons", Options: []client.Option{{Value: "a"}, {Value: "b"}}}}} {
		if _, err := fae.Ask(t.Context(), client.Form{To: "@host", Description: "Settings", Fields: fields, Passkey: true}); err != nil {
			t.Fatal(err)
		}
		number := strconv.Itoa(i + 1)
		e.hears("or `/decline " + number + " REASON`")
		<-e.prompt("/answer " + number + " name=a")
		e.hears("an answer to this form has to be signed with a passkey")
		open(shown(uint64(i + 1)))
		<-e.prompt("/decline " + number + " no")
		e.hears("Done: " + number)
	}
	if _, err := fae.Request(t.Context(), client.Request{To: "@host", Text: "whom?", Passkey: true}); err != nil {
		t.Fatal(err)
	}
	e.hears("or `/decline 3 REASON`")
	<-e.prompt("/resolve 3 fae")
	open(shown(3))
	select {
	case a := <-e.asked:
		t.Errorf("the editor was asked %s %s", a.method, a.params)
	default:
	}
}

// TestEditorPromptsAgent prompts an agent in an editor, decides on its call there, and cancels its run.
func TestEditorPromptsAgent(t *testing.T) {
	t.Parallel()
	h := openModelServer(t)
	work := t.TempDir()
	run := exec.Command("parley", "--state", h.folder, "run", "--runtime", "acp", "--name", "bob", "--folder", work, "--", acpAgent)
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	e := openEditor(t, h.folder, `{}`, "bob")
	ended := e.prompt(`say hello then call shell {"command":"git push"}`)
	a := e.next("session/request_permission", `"rawInput":{"command":"git push"}`)
	e.hears("say hello")
	a.reply <- chosen("once")
	if got := <-ended; got != `{"stopReason":"end_turn"}` {
		t.Errorf("the turn ended with %s", got)
	}
	e.hears("git push\\\"}: allow_once")

	ended = e.prompt(`call shell {"command":"git fetch"}`)
	e.next("session/request_permission")
	if err := e.conn.SendNotification(t.Context(), acp.AgentMethodSessionCancel, acp.CancelNotification{SessionId: e.session}); err != nil {
		t.Fatal(err)
	}
	if got := <-ended; got != `{"stopReason":"cancelled"}` {
		t.Errorf("the cancelled turn ended with %s", got)
	}
	<-e.prompt("/nothing")
	e.hears("there is no command /nothing")
}
