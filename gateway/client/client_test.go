package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/gateway/api"
	"parley/gateway/client"
)

func oneField() []client.Field { return []client.Field{{Name: "a", Label: "A"}} }

func TestClientImportsNoNode(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "parley/gateway/client").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(out), "\n") {
		if strings.Contains(line, "nats-io/nats") || strings.Contains(line, "protoactor") || line == "parley/actors" || line == "parley/gateway" {
			t.Errorf("it imports %s", line)
		}
	}
}

// TestAskArrivesOnce repeatedly cuts the connection after the node has accepted the form.
func TestAskArrivesOnce(t *testing.T) {
	h, host, _ := openTest(t)
	token := tokenOf(t, host)
	cut := openCuttingProxy(t, h.address, "")
	unlucky, err := client.Connect(t.Context(), client.Options{URL: cut.url, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	defer unlucky.Close()
	ask := map[string]func() (client.ID, error){
		"form": func() (client.ID, error) {
			a, err := unlucky.Ask(t.Context(), client.Form{To: "HOST", Description: "form", Fields: oneField()})
			if err != nil {
				return "", err
			}
			return a.Form, nil
		},
		"request": func() (client.ID, error) {
			a, err := unlucky.Request(t.Context(), client.Request{To: "HOST", Text: "request"})
			if err != nil {
				return "", err
			}
			return a.Form, nil
		},
		"approval": func() (client.ID, error) {
			a, err := unlucky.Approve(t.Context(), client.Approval{Tool: "approval", Input: []byte(`{}`)})
			if err != nil {
				return "", err
			}
			return a.Form, nil
		},
		"message": func() (client.ID, error) {
			s, err := unlucky.Send(t.Context(), "HOST", client.Post{Text: "message"})
			return s.ID(), err
		},
		"form by its operation": func() (client.ID, error) {
			a, err := api.Form.Do(t.Context(), unlucky, api.FormRequest{Form: parley.Form{To: "HOST", Description: "form", Fields: oneField()}})
			return client.ID(a.Form.String()), err
		},
		"approval by its operation": func() (client.ID, error) {
			a, err := api.Approve.Do(t.Context(), unlucky, api.ApproveRequest{Approval: parley.Approval{Tool: "approval", Input: []byte(`{}`)}})
			return client.ID(a.Form.String()), err
		},
	}
	for what, how := range ask {
		cut.cuts.Store(3)
		form, err := how()
		if err != nil || form == "" {
			t.Fatalf("%s: %q %v", what, form, err)
		}
		if cut.cuts.Load() >= 0 {
			t.Errorf("%s: nothing was cut", what)
		}
	}
	if got := len(listed(t, host, client.View{})); got != len(ask) {
		t.Errorf("%d messages arrived, want %d", got, len(ask))
	}

	cut.cuts.Store(2)
	if names, err := unlucky.Names(t.Context(), ""); err != nil || !slices.Contains(names, "@self") {
		t.Errorf("a look was not made again: %v %v", names, err)
	}
	cut.cuts.Store(1)
	if err := api.StoreName.Run(t.Context(), unlucky, api.StoreNameRequest{Name: "port", Value: []byte("443")}); parley.CodeOf(err) != parley.NotRunning || !strings.Contains(err.Error(), "not known") {
		t.Errorf("what has no key is made again: %v", err)
	}
}

// tokenOf makes another token for fae.
func tokenOf(t *testing.T, host *client.Client) string {
	t.Helper()
	var made struct{ Token string }
	if err := host.Call(t.Context(), "create_token", map[string]any{"as": "fae"}, &made); err != nil {
		t.Fatal(err)
	}
	return made.Token
}

func listed(t *testing.T, c *client.Client, v client.View) []client.Message {
	t.Helper()
	var all []client.Message
	for m, err := range c.List(t.Context(), v) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

// TestWaitSurvivesNodeRestart kills the node during a wait and during the next ask.
func TestWaitSurvivesNodeRestart(t *testing.T) {
	h, host, fae := openTest(t)
	asked, err := fae.Ask(t.Context(), client.Form{To: "HOST", Description: "D", Fields: oneField()})
	if err != nil {
		t.Fatal(err)
	}
	type result struct {
		outcome client.Outcome
		err     error
	}
	awaited, again := make(chan result, 1), make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	go func() {
		o, err := asked.Await(ctx)
		awaited <- result{o, err}
	}()
	h.kill()
	go func() {
		_, err := fae.Ask(ctx, client.Form{To: "HOST", Description: "E", Fields: oneField()})
		again <- err
	}()
	if err := h.start(); err != nil {
		t.Fatal(err)
	}
	if err := <-again; err != nil {
		t.Errorf("an ask while the node was away: %v", err)
	}
	if _, err := host.Answer(ctx, client.Number(0), map[string]string{"a": "x"}); err != nil {
		t.Fatal(err)
	}
	var values struct{ A string }
	if r := <-awaited; r.err != nil || r.outcome.Decode(&values) != nil || values.A != "x" || r.outcome.ByName != "HOST" {
		t.Errorf("got %v %v", r.outcome, r.err)
	}
	if got := listed(t, host, client.View{}); len(got) != 2 || got[1].Description != "E" {
		t.Errorf("%d messages", len(got))
	}
	_, err = host.Answer(t.Context(), client.Number(0), map[string]string{"a": "y"})
	if parley.CodeOf(err) != parley.AlreadyAnswered {
		t.Errorf("a second answer: %v", err)
	}
}

// TestFollowResumesFromEveryCursor follows a mailbox with concurrent changes, and resumes after each message in turn.
func TestFollowResumesFromEveryCursor(t *testing.T) {
	h, host, fae := openTest(t)
	const before, after = 6, 3
	for i := range before {
		if _, err := fae.Ask(t.Context(), client.Form{To: "HOST", Description: fmt.Sprint(i), Fields: oneField()}); err != nil {
			t.Fatal(err)
		}
	}
	var cursors []client.Cursor
	for m := range follow(t, host, "", before) {
		cursors = append(cursors, m.Cursor)
	}
	if _, err := host.Answer(t.Context(), client.Number(1), map[string]string{"a": "x"}); err != nil {
		t.Fatal(err)
	}
	h.kill()
	if err := h.start(); err != nil {
		t.Fatal(err)
	}
	for i := range after {
		if _, err := fae.Send(t.Context(), "HOST", client.Post{Text: fmt.Sprint(before + i)}); err != nil {
			t.Fatal(err)
		}
	}
	for told, cursor := range cursors {
		want := map[uint64]bool{1: true} // the answered one
		for n := told + 1; n < before+after; n++ {
			want[uint64(n)] = true
		}
		got := map[uint64]int{}
		for m := range follow(t, host, cursor, len(want)) {
			if got[m.Number]++; !want[m.Number] || got[m.Number] > 1 {
				t.Errorf("after %s: message %d %d times", cursor, m.Number, got[m.Number])
			}
			if (m.Outcome != nil) != (m.Number == 1) {
				t.Errorf("after %s: message %d is not as it is now", cursor, m.Number)
			}
		}
		if len(got) != len(want) {
			t.Errorf("after %s: %d of %d", cursor, len(got), len(want))
		}
	}
	for _, c := range []client.Cursor{"x", "1.2", "1.2.", "01", "3.1.0", "-1", "1.2.3.4"} {
		for _, err := range host.Follow(t.Context(), client.View{}, c) {
			if parley.CodeOf(err) != parley.InvalidArgument {
				t.Errorf("cursor %q: %v", c, err)
			}
		}
	}
}

// TestFollowReadsMailboxByPages changes messages of read and unread pages, and sends one, while it reads the pages.
func TestFollowReadsMailboxByPages(t *testing.T) {
	_, host, fae := openTest(t)
	host.ReadPagesOf(2)
	ask := func(what int) {
		t.Helper()
		if _, err := fae.Ask(t.Context(), client.Form{To: "HOST", Description: fmt.Sprint(what), Fields: oneField()}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 7 {
		ask(i)
	}
	var told []string
	var cursors []client.Cursor
	for m := range follow(t, host, "", 9) {
		if m.Number == 2 && m.Outcome == nil { // the second page's first
			for _, n := range []uint64{1, 5} {
				if _, err := host.Answer(t.Context(), client.Number(n), map[string]string{"a": "x"}); err != nil {
					t.Fatal(err)
				}
			}
			ask(7)
		}
		told, cursors = append(told, said(m)), append(cursors, m.Cursor)
	}
	if want := []string{"0 open", "1 open", "2 open", "3 open", "4 open", "6 open", "1 answered", "5 answered", "7 open"}; !slices.Equal(told, want) {
		t.Fatalf("got %v, want %v", told, want)
	}
	for i, cursor := range cursors[:len(cursors)-1] {
		want := slices.DeleteFunc(slices.Clone(told[i+1:]), func(s string) bool { return s == "1 open" }) // it has ended
		var rest []string
		for m := range follow(t, host, cursor, len(want)) {
			rest = append(rest, said(m))
		}
		if !slices.Equal(rest, want) {
			t.Errorf("after %s: got %v, want %v", cursor, rest, want)
		}
	}
}

func said(m client.Message) string {
	if m.Outcome == nil {
		return m.Description + " open"
	}
	return m.Description + " " + string(m.Outcome.Status)
}

// follow returns a number of messages after a cursor, and fails if another follows at once.
func follow(t *testing.T, c *client.Client, from client.Cursor, count int) func(func(client.Message) bool) {
	return func(yield func(client.Message) bool) {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		for m, err := range c.Follow(ctx, client.View{}, from) {
			count--
			if err != nil || !yield(m) {
				t.Errorf("after %s: %v, with %d to come", from, err, count)
				return
			}
			if count == 0 { // leaves time for an unexpected message
				short, stop := context.WithTimeout(ctx, pause)
				defer stop()
				for m, err := range c.Follow(short, client.View{}, m.Cursor) {
					if err == nil {
						t.Errorf("after %s: message %d comes too", m.Cursor, m.Number)
					}
				}
				return
			}
		}
	}
}

const pause = 150 * time.Millisecond

func TestErrorsDescribeTheirCause(t *testing.T) {
	h, host, fae := openTest(t)
	asked, err := fae.Ask(t.Context(), client.Form{To: "HOST", Description: "D", Fields: oneField()})
	if err != nil {
		t.Fatal(err)
	}
	_, err = host.Answer(t.Context(), asked.Form, map[string]any{"b": 1})
	if e, ok := errors.AsType[*parley.Error](err); !ok || e.Code != parley.InvalidAnswer || e.Fields["b"] == "" {
		t.Errorf("got %#v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), pause)
	defer cancel()
	_, err = asked.Await(ctx)
	if parley.CodeOf(err) != parley.Timeout || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an ended wait: %v", err)
	}
	if _, err := fae.AwaitWithin(t.Context(), asked.Form, 0); parley.CodeOf(err) != parley.Timeout {
		t.Errorf("a look: %v", err)
	}
	for name, c := range map[string]struct {
		options client.Options
		code    parley.Code
	}{
		"nothing":      {client.Options{}, parley.InvalidArgument},
		"both":         {client.Options{Socket: "x", URL: "http://x"}, parley.InvalidArgument},
		"no URL":       {client.Options{URL: "localhost:1"}, parley.InvalidArgument},
		"two lines":    {client.Options{URL: h.url(), Token: "a\r\nb"}, parley.InvalidArgument},
		"a bad token":  {client.Options{URL: h.url(), Token: "ply_x"}, parley.Unauthenticated},
		"nobody":       {client.Options{Socket: h.socket(), As: "nobody"}, parley.UnknownName},
		"no node":      {client.Options{URL: "http://127.0.0.1:1"}, parley.NotRunning},
		"no socket":    {client.Options{Socket: filepath.Join(t.TempDir(), "s")}, parley.NotRunning},
		"as the guest": {client.Options{Socket: h.socket(), As: "fae"}, ""},
	} {
		c, want := c.options, c.code
		got, err := client.Connect(t.Context(), c)
		if parley.CodeOf(err) != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
		if got != nil {
			got.Close()
		}
	}
	h.kill()
	once, err := client.New(client.Options{Socket: h.socket(), Known: true, Patience: pause})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := once.Names(t.Context(), ""); parley.CodeOf(err) != parley.NotRunning {
		t.Errorf("patience without end: %v", err)
	}
}

func TestNamesAndReferences(t *testing.T) {
	h, host, fae := openTest(t)
	as, err := client.Connect(t.Context(), client.Options{Socket: h.socket(), As: "fae"})
	if err != nil {
		t.Fatal(err)
	}
	defer as.Close()
	asked, err := fae.Request(t.Context(), client.Request{To: "HOST", Text: "who am I?", Name: "me"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.Resolve.Do(t.Context(), host, api.ResolveRequest{FormRef: api.RefTo(string(asked.Form)), Name: "fae"}); err != nil {
		t.Fatal(err)
	}
	outcome, err := asked.Await(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var given struct{ Value client.Ref }
	self, err := api.Locate.Do(t.Context(), as, api.NameRequest{Name: "@self"})
	if err != nil || outcome.Decode(&given) != nil || string(given.Value.Target) != self.ID.String() || given.Value.Kind != "agent" {
		t.Errorf("got %s, %v, want %v", outcome.Values, err, self)
	}
	if err := api.StoreName.Run(t.Context(), host, api.StoreNameRequest{Name: "settings", Value: json.RawMessage(`{"port":443}`)}); err != nil {
		t.Fatal(err)
	}
	var settings struct{ Port int }
	if err := host.Lookup(t.Context(), "settings", false, &settings); err != nil || settings.Port != 443 {
		t.Errorf("got %v %v", settings, err)
	}
	if err := api.RemoveName.Run(t.Context(), host, api.NameRequest{Name: "settings"}); err != nil {
		t.Error(err)
	}
	if err := host.Lookup(t.Context(), "settings", false, &settings); parley.CodeOf(err) != parley.UnknownName {
		t.Errorf("got %v", err)
	}
	again, err := fae.Request(t.Context(), client.Request{To: "HOST", Text: "who am I?", Name: "me"})
	if err != nil || again.Form != "" && again.Form != asked.Form {
		t.Fatalf("got %v %v", again, err)
	}
	if outcome, err := again.Await(t.Context()); err != nil || outcome.Status != client.Answered {
		t.Errorf("a name that is bound: %v %v", outcome, err)
	}
}

// TestConnectionServesSeveralAgents asks as two agents, before and after a restart of the node.
func TestConnectionServesSeveralAgents(t *testing.T) {
	h, host, _ := openTest(t)
	for _, name := range []string{"ann", "ben"} {
		if _, err := api.MakeAgent.Do(t.Context(), host, api.MakeAgentRequest{Name: name}); err != nil {
			t.Fatal(err)
		}
		asked, err := host.ActingAs(name).Ask(t.Context(), client.Form{To: "HOST", Description: name, Fields: oneField()})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			o, err := asked.Await(t.Context())
			if err == nil && o.Status != client.Answered {
				err = fmt.Errorf("%s", o.Status)
			}
			done <- err
		}()
		if name == "ben" { // the outcome under way is requested again
			h.kill()
			if err := h.start(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := host.Answer(t.Context(), asked.Form, map[string]string{"a": name}); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLargeCallsShareAConnection makes many large calls at once, together larger than one message of a connection.
func TestLargeCallsShareAConnection(t *testing.T) {
	_, host, _ := openTest(t)
	if _, err := api.MakeAgent.Do(t.Context(), host, api.MakeAgentRequest{Name: "ann"}); err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("0123456789", 4_000)
	sent := make(chan error)
	for range 64 {
		go func() {
			sent <- host.Call(t.Context(), "send", map[string]string{"recipient": "ann", "text": text}, nil)
		}()
	}
	for range 64 {
		if err := <-sent; err != nil {
			t.Error(err)
		}
	}
}
