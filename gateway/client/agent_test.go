package client_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/gateway/api"
	"parley/gateway/client"
)

// newWorker is the request for an agent that runs a shell script for each message.
type newWorker struct {
	Name    string            `json:"name"`
	Title   string            `json:"title,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	Runtime string            `json:"runtime"`
	Command []string          `json:"command"`
	Folder  string            `json:"folder"`
	Wait    bool              `json:"wait"`
}

// worker makes such an agent on the node's socket. The script reads the message as a line of JSON.
func worker(t *testing.T, host *client.Client, w newWorker, script string) client.ID {
	t.Helper()
	w.Runtime, w.Command, w.Folder, w.Wait = "exec", []string{"sh", "-c", script}, t.TempDir(), true
	var made api.MakeAgentResponse
	if err := host.Call(t.Context(), "run_agent", w, &made); err != nil {
		t.Fatal(err)
	}
	return client.ID(made.Agent.String())
}

// waitFile returns a shell command that waits for a file, and a function that creates the file.
func waitFile(t *testing.T) (wait string, open func()) {
	path := filepath.Join(t.TempDir(), "open")
	return "until [ -e '" + path + "' ]; do sleep 0.01; done", func() {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func prompt(t *testing.T, c *client.Client, agent, text string) client.Prompted {
	t.Helper()
	got, err := c.Prompt(t.Context(), client.Prompt{Agent: agent, Text: text})
	if err != nil || got.Agent == "" || got.Message == "" {
		t.Fatalf("prompt %s: %+v %v", agent, got, err)
	}
	return got
}

// hasOutput waits until an agent's program has written output. A run that is interrupted after that is not repeated.
func hasOutput(t *testing.T, c *client.Client, agent string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for _, err := range c.FollowOutput(ctx, agent, 0) {
		if err != nil {
			t.Fatal(err)
		}
		return
	}
}

// finishes waits until an agent has finished, and checks its status.
func finishes(t *testing.T, c *client.Client, agent, status string) client.Agent {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	got, final, err := c.WaitForAgent(ctx, agent)
	if err != nil || got != status {
		t.Fatalf("%s came to %s, want %s: %+v %v", agent, got, status, final, err)
	}
	return final
}

func TestAgentsAreFoundByNameTitleAndID(t *testing.T) {
	_, host, fae := openTest(t)
	ui, wait := map[string]string{"ui": "true", "team": "web"}, "read prompt; read more"
	build := worker(t, host, newWorker{Name: "builder", Title: "The builder", Labels: ui}, wait)
	worker(t, host, newWorker{Name: "twin-1", Title: "Twin", Labels: map[string]string{"ui": "true"}}, wait)
	worker(t, host, newWorker{Name: "twin-2", Title: "Twin"}, wait)
	prompt(t, host, "twin-1", "go")
	names := func(c *client.Client, f client.AgentFilter) string {
		t.Helper()
		agents, err := c.Agents(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, a := range agents {
			all = append(all, a.Name+" "+a.Status)
		}
		return strings.Join(all, ", ")
	}
	web := map[string]string{"ui": "true"}
	for _, c := range []struct {
		by     *client.Client
		filter client.AgentFilter
		want   string
	}{
		{host, client.AgentFilter{}, "HOST idle, fae idle, builder idle, twin-1 running, twin-2 idle"},
		{host, client.AgentFilter{Labels: web}, "builder idle, twin-1 running"},
		{host, client.AgentFilter{Labels: web, Statuses: []string{client.Idle, client.Failed}}, "builder idle"},
		{host, client.AgentFilter{Statuses: []string{client.Running}}, "twin-1 running"},
		{host, client.AgentFilter{Statuses: []string{client.Closed}}, ""},
		{fae, client.AgentFilter{}, "HOST idle, SELF idle"},
	} {
		if got := names(c.by, c.filter); got != c.want {
			t.Errorf("%+v: got %s, want %s", c.filter, got, c.want)
		}
	}
	ulid, _, _ := strings.Cut(string(build), "@")
	for _, which := range []string{string(build), ulid, ulid[:25], "builder", "The builder"} {
		a, err := host.Agent(t.Context(), which)
		if err != nil || a.ID != build || a.Name != "builder" || a.Title != "The builder" || a.Runtime != "exec" || !maps.Equal(a.Labels, ui) {
			t.Errorf("%s: got %+v %v", which, a, err)
		}
		if a.CreatedAt.IsZero() || a.Node == "" || a.Kind != "guest" {
			t.Errorf("%s: got %+v", which, a)
		}
	}
	for which, code := range map[string]parley.Code{
		"Twin": parley.Ambiguous, ulid[:2]: parley.Ambiguous, "the builder": parley.AgentNotFound, "": parley.InvalidArgument,
	} {
		if a, err := host.Agent(t.Context(), which); parley.CodeOf(err) != code {
			t.Errorf("%q: got %+v %v, want %s", which, a, err, code)
		}
		if got, err := host.Prompt(t.Context(), client.Prompt{Agent: which, Text: "go"}); parley.CodeOf(err) != code {
			t.Errorf("a prompt to %q: got %+v %v, want %s", which, got, err, code)
		}
		if _, _, err := host.WaitForAgent(t.Context(), which); parley.CodeOf(err) != code {
			t.Errorf("a wait for %q: %v, want %s", which, err, code)
		}
	}
	if _, err := fae.Agent(t.Context(), string(build)); parley.CodeOf(err) != parley.AgentNotFound {
		t.Errorf("who does not hold it: %v", err)
	}
}

func TestPromptRunsAndIsAwaited(t *testing.T) {
	_, host, _ := openTest(t)
	wait, open := waitFile(t)
	worker(t, host, newWorker{Name: "well"}, "read prompt; "+wait)
	worker(t, host, newWorker{Name: "ill"}, "read prompt; "+wait+"; echo broken >&2; exit 3")
	worker(t, host, newWorker{Name: "asks"}, "read prompt; "+wait+`; printf '{"type":"approval","id":"a","tool":"shell","input":{"command":"ls"}}\n'; read decision`)
	ends := map[string]string{"well": client.Idle, "ill": client.Failed, "asks": client.NeedsPermission}
	for name := range ends {
		first := prompt(t, host, name, "go")
		if a, err := host.Agent(t.Context(), name); err != nil || a.Status != client.Running || first.Queued {
			t.Errorf("%s was prompted, %+v: %+v %v", name, first, a, err)
		}
	}
	if second := prompt(t, host, "well", "and this"); !second.Queued {
		t.Errorf("one that runs: %+v", second)
	}
	if a, err := host.Agent(t.Context(), "well"); err != nil || a.Queued != 1 {
		t.Errorf("one has to wait: %+v %v", a, err)
	}
	short, cancel := context.WithTimeout(t.Context(), pause)
	defer cancel()
	if status, _, err := host.WaitForAgent(short, "well"); parley.CodeOf(err) != parley.Timeout || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("one that runs has come to %s: %v", status, err)
	}
	open()
	for name, status := range ends {
		final := finishes(t, host, name, status)
		switch {
		case name == "ill" && !strings.Contains(final.Error, "exit status 3"), name != "ill" && final.Error != "":
			t.Errorf("%s: its error is %q", name, final.Error)
		case name == "asks":
			if p := final.PendingPermissions; len(p) != 1 || p[0].Tool != "shell" || p[0].Input != `{"command":"ls"}` || p[0].AskedAt.IsZero() {
				t.Fatalf("it waits for %+v", p)
			}
			if _, err := host.Answer(t.Context(), final.PendingPermissions[0].Form, map[string]string{"decision": "once"}); err != nil {
				t.Fatal(err)
			}
			finishes(t, host, name, client.Idle)
		}
	}
	if _, err := host.Prompt(t.Context(), client.Prompt{Agent: "well"}); parley.CodeOf(err) != parley.InvalidArgument {
		t.Errorf("a prompt without words: %v", err)
	}
}

// TestPromptRunsOnce cuts the connection after the node has accepted the prompt.
func TestPromptRunsOnce(t *testing.T) {
	h, host, _ := openTest(t)
	worker(t, host, newWorker{Name: "w"}, "read prompt; echo ran")
	cut := openCuttingProxy(t, h.address, "/send_agent_message")
	unlucky, err := client.Connect(t.Context(), client.Options{URL: cut.url, Token: hostToken(t, host)})
	if err != nil {
		t.Fatal(err)
	}
	defer unlucky.Close()
	cut.cuts.Store(3)
	first := prompt(t, unlucky, "w", "go")
	if cut.cuts.Load() >= 0 {
		t.Error("nothing was cut")
	}
	finishes(t, host, "w", client.Idle)
	named := client.Prompt{Agent: "w", Text: "more", MessageID: "one"}
	var messages []client.ID
	for range 3 {
		got, err := host.Prompt(t.Context(), named)
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, got.Message)
		finishes(t, host, "w", client.Idle)
	}
	if messages = slices.Compact(messages); len(messages) != 1 || messages[0] == first.Message {
		t.Errorf("the same message is %v, after %s", messages, first.Message)
	}
	if got := putOut(t, host, "w", 0); got != "ran\nran\n" {
		t.Errorf("it put out %q", got)
	}
}

func TestStopAndArchive(t *testing.T) {
	_, host, fae := openTest(t)
	id := worker(t, host, newWorker{Name: "w"}, `read prompt; printf '{"type":"ask","id":"q","prompt":"Go on?"}\n'; read answer; sleep 600`)
	prompt(t, host, "w", "go")
	var form client.Message
	for m, err := range host.Follow(t.Context(), client.View{Pending: true}, "") {
		if err != nil {
			t.Fatal(err)
		}
		form = m
		break
	}
	if err := fae.Stop(t.Context(), string(id)); parley.CodeOf(err) != parley.AgentNotFound {
		t.Errorf("one who does not hold it stops it: %v", err)
	}
	if err := host.Stop(t.Context(), "w"); err != nil {
		t.Fatal(err)
	}
	finishes(t, host, "w", client.Idle)
	if m, err := host.Message(t.Context(), form.ID()); err != nil || m.Outcome == nil || m.Outcome.Status != client.Cancelled {
		t.Errorf("what it asked is %+v %v", m.Outcome, err)
	}
	if err := api.ArchiveAgent.Run(t.Context(), host, api.AgentRequest{AgentID: "w"}); err != nil {
		t.Fatal(err)
	}
	got, err := host.Prompt(t.Context(), client.Prompt{Agent: "w", Text: "go"})
	if parley.CodeOf(err) != parley.AgentArchived || got.Agent != id {
		t.Errorf("an archived agent: %+v %v", got, err)
	}
	if a, err := host.Agent(t.Context(), "w"); err != nil || a.Status != client.Closed {
		t.Errorf("got %+v %v", a, err)
	}
	if list, err := host.Agents(t.Context(), client.AgentFilter{Statuses: []string{client.Closed}}); err != nil || len(list) != 1 || list[0].ID != id {
		t.Errorf("got %+v %v", list, err)
	}
}

// TestAgentReportsItsActivity uses an agent without a program, which this client serves.
func TestAgentReportsItsActivity(t *testing.T) {
	h, host, fae := openTest(t)
	if err := api.SetStatus.Run(t.Context(), fae, api.SetStatusRequest{Status: client.Running}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan string, 1)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	go func() {
		status, final, err := host.WaitForAgent(ctx, "fae")
		ended <- fmt.Sprint(status, " ", final.Error, " ", err)
	}()
	if got := prompt(t, host, "fae", "work"); got.Queued {
		t.Errorf("got %+v", got)
	}
	if m, err := fae.Message(t.Context(), client.Number(0)); err != nil || m.Text != "work" {
		t.Errorf("it was told %+v %v", m, err)
	}
	if err := api.SetStatus.Run(t.Context(), fae, api.SetStatusRequest{Status: client.Failed, Error: "out of ideas"}); err != nil {
		t.Fatal(err)
	}
	if got := <-ended; got != "error out of ideas <nil>" {
		t.Errorf("got %s", got)
	}
	for status, problem := range map[string]string{"asleep": "", client.Closed: "", client.Idle: "but tired"} {
		if err := api.SetStatus.Run(t.Context(), fae, api.SetStatusRequest{Status: status, Error: problem}); parley.CodeOf(err) != parley.InvalidArgument {
			t.Errorf("%s %s: %v", status, problem, err)
		}
	}
	as, err := client.Connect(t.Context(), client.Options{Socket: h.socket(), As: "fae"}) // a token would need the scope admin
	if err != nil {
		t.Fatal(err)
	}
	defer as.Close()
	title, labels := "The thinker", map[string]string{"ui": "true"}
	for _, d := range []api.DescribeAgentRequest{{Title: &title, Labels: map[string]string{"x": "y"}}, {Labels: labels}} {
		if err := api.DescribeAgent.Run(t.Context(), as, d); err != nil {
			t.Fatal(err)
		}
	}
	if err := api.SetPolicy.Run(t.Context(), host, api.SetPolicyRequest{AgentID: "fae", Policy: client.DenyAll}); err != nil {
		t.Fatal(err)
	}
	if a, err := host.Agent(t.Context(), title); err != nil || !maps.Equal(a.Labels, labels) || a.Policy != client.DenyAll || a.Runtime != "" {
		t.Errorf("got %+v %v", a, err)
	}
	if p, err := fae.Approve(t.Context(), client.Approval{Tool: "shell", Input: []byte(`{}`), Attended: true}); err != nil || p.Unattended || p.Form != "" {
		t.Errorf("got %+v %v", p, err)
	} else if d, err := p.Await(t.Context()); err != nil || d.Allowed || d.Rule != "" {
		t.Errorf("its policy denies: %+v %v", d, err)
	}
	if err := api.DescribeAgent.Run(t.Context(), as, api.DescribeAgentRequest{Labels: map[string]string{}}); err != nil {
		t.Fatal(err)
	}
	if a, err := host.Agent(t.Context(), title); err != nil || len(a.Labels) != 0 {
		t.Errorf("got %+v %v", a, err)
	}
	if err := api.SetPolicy.Run(t.Context(), as, api.SetPolicyRequest{AgentID: "SELF", Policy: client.AskNever}); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("it sets its own policy: %v", err)
	}
}
