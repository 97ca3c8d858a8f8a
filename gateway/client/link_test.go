package client_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley"
	"parley/gateway/api"
	"parley/gateway/client"
	"parley/gateway/mux"
	"parley/internal/eventually"
	"parley/internal/websocket"
)

// TestCyclesSurviveKill kills the node with SIGKILL while several agents ask and answer on one connection. Each form
// arrives once, and each asker gets its own answer.
func TestCyclesSurviveKill(t *testing.T) {
	h, host, _ := openTest(t)
	const askers, cycles = 6, 12
	var begun, done sync.WaitGroup
	begun.Add(askers)
	for i := range askers {
		name := fmt.Sprint("asker-", i)
		if _, err := api.MakeAgent.Do(t.Context(), host, api.MakeAgentRequest{Name: name}); err != nil {
			t.Fatal(err)
		}
		asker := host.ActingAs(name)
		done.Go(func() {
			for n := range cycles {
				if n == cycles/3 {
					begun.Done()
				}
				text := fmt.Sprint(name, " ", n)
				asked, err := asker.Ask(t.Context(), client.Form{To: "HOST", Description: text, Fields: oneField()})
				if err != nil {
					t.Errorf("%s: ask: %v", text, err)
					return
				}
				if err := answer(t, host, asked.Form, text); err != nil {
					t.Errorf("%s: answer: %v", text, err)
				}
				o, err := asked.Await(t.Context())
				var got struct{ A string }
				if err == nil {
					err = o.Decode(&got)
				}
				if err != nil || got.A != text {
					t.Errorf("%s: outcome %q, %v", text, got.A, err)
				}
			}
		})
	}
	begun.Wait()
	for range 2 {
		h.kill()
		if err := h.start(); err != nil {
			t.Fatal(err)
		}
	}
	done.Wait()
	if got := len(listed(t, host, client.View{All: true})); got != askers*cycles {
		t.Errorf("%d forms arrived, want %d", got, askers*cycles)
	}
}

// answer answers a form. An answer whose response was lost is given again.
func answer(t *testing.T, c *client.Client, form client.ID, text string) error {
	for {
		_, err := c.Answer(t.Context(), form, map[string]string{"a": text})
		switch parley.CodeOf(err) {
		case parley.NotRunning:
			continue
		case parley.AlreadyAnswered:
			return nil
		}
		return err
	}
}

// TestFollowSurvivesCuts cuts the connection in place of many items of a follow. None is missed, and none comes twice.
func TestFollowSurvivesCuts(t *testing.T) {
	h, host, fae := openTest(t)
	proxy := openCuttingProxy(t, h.address, "follow")
	follower, err := client.Connect(t.Context(), client.Options{URL: proxy.url, Token: hostToken(t, host)})
	if err != nil {
		t.Fatal(err)
	}
	defer follower.Close()
	if _, err := fae.Send(t.Context(), "HOST", client.Post{Text: "first"}); err != nil {
		t.Fatal(err)
	}
	const many, cuts = 200, 8 // more than the node may send ahead
	var got []string
	var sent sync.WaitGroup
	defer sent.Wait()
	for m, err := range follower.Follow(t.Context(), client.View{}, "") {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, m.Text); len(got) == 1 {
			sent.Go(func() {
				for i := range many {
					if i%(many/cuts) == 0 {
						proxy.cuts.Store(1)
					}
					if _, err := fae.Send(t.Context(), "HOST", client.Post{Text: fmt.Sprint(i)}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		if len(got) > many {
			break
		}
	}
	want := []string{"first"}
	for i := range many {
		want = append(want, fmt.Sprint(i))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	if n := proxy.begunOf("follow"); n < 2 {
		t.Errorf("the follow began %d times, %d cuts are left, %d calls went by HTTP", n, proxy.cuts.Load(), proxy.plain.Load())
	}
}

// TestAgentsSignInOnOneConnection has agents with tokens of their own use one connection, by TCP and by the socket, also after
// a kill of the node. The token of one is revoked.
func TestAgentsSignInOnOneConnection(t *testing.T) {
	h, host, _ := openTest(t)
	proxy := openCuttingProxy(t, h.address, "")
	tokens := map[string]string{}
	for _, name := range []string{"ann", "ben"} {
		if _, err := api.MakeAgent.Do(t.Context(), host, api.MakeAgentRequest{Name: name}); err != nil {
			t.Fatal(err)
		}
		var made struct{ ID, Token string }
		if err := host.Call(t.Context(), "create_token", map[string]any{"as": name}, &made); err != nil {
			t.Fatal(err)
		}
		tokens[name], tokens[name+"'s ID"] = made.Token, made.ID
	}
	web, err := client.Connect(t.Context(), client.Options{URL: proxy.url, Token: tokenOf(t, host)})
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
	asks := func(name string, c *client.Client) error {
		asked, err := c.Ask(t.Context(), client.Form{To: "HOST", Description: name, Fields: oneField()})
		if err != nil {
			return err
		}
		m, err := host.Message(t.Context(), asked.Form)
		if err == nil && m.FromName != name {
			err = fmt.Errorf("the form came from %q", m.FromName)
		}
		if err == nil {
			err = answer(t, host, asked.Form, name)
		}
		if err == nil {
			_, err = asked.Await(t.Context())
		}
		return err
	}
	agents := map[string][]*client.Client{}
	for _, name := range []string{"ann", "ben"} {
		agents[name] = []*client.Client{web.WithToken(tokens[name]), host.WithToken(tokens[name])}
	}
	for range 2 {
		for name, both := range agents {
			for _, c := range both {
				if err := asks(name, c); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
		if err := asks("fae", web); err != nil {
			t.Error(err)
		}
		h.kill()
		if err := h.start(); err != nil {
			t.Fatal(err)
		}
	}
	if err := host.Call(t.Context(), "revoke_token", map[string]any{"as": "ben", "token": tokens["ben's ID"]}, nil); err != nil {
		t.Fatal(err)
	}
	for _, c := range agents["ben"] {
		if err := asks("ben", c); parley.CodeOf(err) != parley.Unauthenticated {
			t.Errorf("a revoked token: %v", err)
		}
	}
	if err := asks("ann", agents["ann"][0]); err != nil {
		t.Error(err)
	}
	if n := proxy.plain.Load(); n > 0 {
		t.Errorf("%d calls went by HTTP", n)
	}
}

// TestAsksBringTheirOutcomes asks in all three ways, and awaits each outcome without another call.
func TestAsksBringTheirOutcomes(t *testing.T) {
	h, host, _ := openTest(t)
	proxy := openCuttingProxy(t, h.address, "")
	fae, err := client.Connect(t.Context(), client.Options{URL: proxy.url, Token: tokenOf(t, host)})
	if err != nil {
		t.Fatal(err)
	}
	defer fae.Close()
	asked, err := fae.Ask(t.Context(), client.Form{To: "HOST", Description: "x", Fields: oneField()})
	if err == nil {
		err = answer(t, host, asked.Form, "yes")
	}
	if err != nil {
		t.Fatal(err)
	}
	if o, err := asked.Await(t.Context()); err != nil || o.Status != client.Answered {
		t.Errorf("form: %+v %v", o, err)
	}
	wanted, err := fae.Request(t.Context(), client.Request{To: "HOST", Text: "a key"})
	if err == nil {
		_, err = api.Reject.Do(t.Context(), host, api.DeclineRequest{FormRef: api.RefTo(string(wanted.Form)), Reason: "no"})
	}
	if err != nil {
		t.Fatal(err)
	}
	if o, err := wanted.Await(t.Context()); err != nil || o.Status != client.Declined || o.Note != "no" {
		t.Errorf("request: %+v %v", o, err)
	}
	p, err := fae.Approve(t.Context(), client.Approval{Tool: "shell", Input: []byte(`{"command":"ls"}`)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := host.Decide(t.Context(), listed(t, host, client.View{Pending: true})[0], "once", ""); err != nil {
		t.Fatal(err)
	}
	if d, err := p.Await(t.Context()); err != nil || !d.Allowed {
		t.Errorf("approval: %+v %v", d, err)
	}
	if n := proxy.begunOf("await"); n > 0 {
		t.Errorf("%d calls awaited an outcome", n)
	}
}

// TestOutcomesThatNobodyAwaitsAreGivenUp asks more than the client keeps waits for. Those outcomes can be
// awaited all the same.
func TestOutcomesThatNobodyAwaitsAreGivenUp(t *testing.T) {
	h, host, _ := openTest(t)
	proxy := openCuttingProxy(t, h.address, "")
	fae, err := client.Connect(t.Context(), client.Options{URL: proxy.url, Token: tokenOf(t, host)})
	if err != nil {
		t.Fatal(err)
	}
	defer fae.Close()
	ask := func(text string) *client.Asked {
		asked, err := fae.Ask(t.Context(), client.Form{To: "HOST", Description: text, Fields: oneField()})
		if err != nil {
			t.Error(err)
		}
		return asked
	}
	first, awaited := ask("first"), ask("awaited")
	if t.Failed() {
		return
	}
	awaiting, stop := context.WithCancel(t.Context())
	stop()
	if _, err := awaited.Await(awaiting); parley.CodeOf(err) != parley.Timeout { // it is the newest again
		t.Error(err)
	}
	const more = client.MaxUnclaimed
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range more / 8 {
				ask(fmt.Sprint(i))
			}
		})
	}
	all.Wait()
	eventually.Holds(t, "two are given up", func() bool { return proxy.begunOf("cancel") == 2 })
	for _, a := range []*client.Asked{first, awaited} {
		if err := answer(t, host, a.Form, "yes"); err != nil {
			t.Fatal(err)
		}
		if o, err := a.Await(t.Context()); err != nil || o.Status != client.Answered {
			t.Errorf("%+v %v", o, err)
		}
	}
	if n := proxy.begunOf("await"); n != 2 {
		t.Errorf("%d calls awaited an outcome", n)
	}
}

// TestAgentsSignOutForOthers has more agents call on a connection than are signed in at once. One that follows stays.
func TestAgentsSignOutForOthers(t *testing.T) {
	h, host, _ := openTest(t)
	web, err := client.New(client.Options{URL: h.url(), Token: tokenOf(t, host)})
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
	const most = 3
	web.SignInAtMost(most)
	var agents []*client.Client
	for i := range 2 * most {
		name := fmt.Sprint("agent-", i)
		if _, err := api.MakeAgent.Do(t.Context(), host, api.MakeAgentRequest{Name: name}); err != nil {
			t.Fatal(err)
		}
		var made struct{ Token string }
		if err := host.Call(t.Context(), "create_token", map[string]any{"as": name}, &made); err != nil {
			t.Fatal(err)
		}
		agents = append(agents, web.WithToken(made.Token))
	}
	asked, err := agents[0].Ask(t.Context(), client.Form{To: "HOST", Description: "stays", Fields: oneField()})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		var all sync.WaitGroup
		for i, c := range agents {
			all.Go(func() {
				sent, err := c.Send(t.Context(), "HOST", client.Post{Text: fmt.Sprint(i)})
				if err != nil {
					t.Error(err)
					return
				}
				if m, err := host.Message(t.Context(), sent.ID()); err != nil || m.FromName != fmt.Sprint("agent-", i) {
					t.Errorf("the message of agent %d came from %q: %v", i, m.FromName, err)
				}
			})
		}
		all.Wait()
	}
	if err := answer(t, host, asked.Form, "yes"); err != nil {
		t.Fatal(err)
	}
	if o, err := asked.Await(t.Context()); err != nil || o.Status != client.Answered {
		t.Errorf("%+v %v", o, err)
	}
}

// TestACallToANodeThatReadsNothingEnds calls a node that opens a connection and reads nothing. The calls end with their context,
// also the one that has begun to write.
func TestACallToANodeThatReadsNothingEnds(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "socket")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	opened := make(chan *websocket.Conn, 1)
	node := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, mux.Protocol, websocket.Options{})
		if err != nil {
			t.Error(err)
		}
		opened <- conn
	})}
	go node.Serve(l)   //nolint:errcheck // it is closed
	defer node.Close() //nolint:errcheck // with its listener
	c, err := client.New(client.Options{Socket: socket, Patience: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error)
	const calls = 8
	for range calls {
		go func() {
			_, err := c.Send(ctx, "HOST", client.Post{Text: strings.Repeat("a", 500_000)})
			ended <- err
		}()
	}
	defer (<-opened).Cut()
	cancel()
	for range calls {
		if err := <-ended; err == nil {
			t.Error("a call was answered")
		}
	}
}
