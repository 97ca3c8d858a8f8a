package client_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"parley"
	"parley/gateway/api"
	"parley/gateway/client"
)

// watcher follows agents, and records their state from the updates.
type watcher struct {
	t       *testing.T
	updates chan client.AgentUpdate
	ended   chan error
	known   map[client.ID]client.Agent
}

func watch(t *testing.T, c *client.Client, s client.AgentSubscription) *watcher {
	t.Helper()
	w := &watcher{t: t, updates: make(chan client.AgentUpdate, 100), ended: make(chan error, 1), known: map[client.ID]client.Agent{}}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(func() {
		cancel()
		if err := <-w.ended; parley.CodeOf(err) != parley.Timeout {
			t.Errorf("following ended with %v", err)
		}
	})
	go func() {
		for u, err := range c.FollowAgents(ctx, s) {
			if err != nil {
				w.ended <- err
				return
			}
			w.updates <- u
		}
	}()
	return w
}

// until takes updates until a condition holds. An update without a change fails the test.
func (w *watcher) until(what string, will func() bool) {
	w.t.Helper()
	end := time.After(limit)
	for !will() {
		select {
		case u := <-w.updates:
			was, known := w.known[u.Agent.ID]
			switch {
			case u.Removed && !known, !u.Removed && known && reflect.DeepEqual(was, u.Agent):
				w.t.Errorf("it is told twice: %+v", u)
			case u.Removed:
				delete(w.known, u.Agent.ID)
			default:
				w.known[u.Agent.ID] = u.Agent
			}
		case err := <-w.ended:
			w.ended <- err // the cleanup waits for it too
			w.t.Fatalf("%s: following ended with %v", what, err)
		case <-end:
			w.t.Fatalf("%s: it is not told, and knows %v", what, w.names())
		}
	}
}

func (w *watcher) names() []string {
	all := []string{}
	for _, a := range w.known {
		all = append(all, a.Name+" "+a.Status)
	}
	slices.Sort(all)
	return all
}

// knows waits until exactly these agents are known, by name and status.
func (w *watcher) knows(want ...string) {
	w.t.Helper()
	w.until(fmt.Sprint(want), func() bool { return slices.Equal(w.names(), want) })
}

// TestFollowAgentsSurvivesRestart kills the node, and adds, changes and removes agents before the follower is back.
func TestFollowAgentsSurvivesRestart(t *testing.T) {
	h, host, fae := openTest(t)
	ui := map[string]string{"ui": "true"}
	worker(t, host, newWorker{Name: "stays", Labels: ui}, "read prompt; echo begun; read more")
	worker(t, host, newWorker{Name: "goes", Labels: ui}, "read prompt")
	overWeb, err := client.Connect(t.Context(), client.Options{URL: h.url(), Token: hostToken(t, host)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(overWeb.Close)
	all, labelled := watch(t, overWeb, client.AgentSubscription{}), watch(t, overWeb, client.AgentSubscription{Labels: ui})
	one := watch(t, overWeb, client.AgentSubscription{AgentID: "fae"})
	all.knows("HOST idle", "fae idle", "goes idle", "stays idle")
	labelled.knows("goes idle", "stays idle")
	one.knows("fae idle")
	prompt(t, host, "stays", "go")
	labelled.knows("goes idle", "stays running")
	hasOutput(t, host, "stays")
	h.kill()
	if err := h.start(); err != nil {
		t.Fatal(err)
	}
	if err := api.ArchiveAgent.Run(t.Context(), host, api.AgentRequest{AgentID: "goes"}); err != nil {
		t.Fatal(err)
	}
	worker(t, host, newWorker{Name: "comes", Labels: ui}, "read prompt")
	if err := api.SetStatus.Run(t.Context(), fae, api.SetStatusRequest{Status: client.Running}); err != nil {
		t.Fatal(err)
	}
	all.knows("HOST idle", "comes idle", "fae running", "stays error")
	labelled.knows("comes idle", "stays error")
	one.knows("fae running")
	if now, err := host.Agents(t.Context(), client.AgentFilter{Labels: ui}); err != nil || len(now) != 2 {
		t.Errorf("got %+v %v", now, err)
	} else {
		for _, a := range now {
			if told := labelled.known[a.ID]; !reflect.DeepEqual(told, a) || a.Name == "stays" && a.Error != "interrupted" {
				t.Errorf("it was told\n%+v, and there is\n%+v", told, a)
			}
		}
	}
	prompt(t, host, "comes", "go")
	finishes(t, host, "comes", client.Idle)
	if err := api.ArchiveAgent.Run(t.Context(), host, api.AgentRequest{AgentID: "stays"}); err != nil {
		t.Fatal(err)
	}
	all.knows("HOST idle", "comes idle", "fae running")
	labelled.knows("comes idle")
}

func TestFollowAgentsActsForAgent(t *testing.T) {
	h, host, _ := openTest(t)
	worker(t, host, newWorker{Name: "secret"}, "read prompt")
	as, err := client.Connect(t.Context(), client.Options{URL: h.url(), Token: hostToken(t, host), As: "fae"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(as.Close)
	watch(t, as, client.AgentSubscription{}).knows("HOST idle", "SELF idle")
	watch(t, host, client.AgentSubscription{AgentID: "secret"}).knows("secret idle") // on the socket
	for what, c := range map[parley.Code]struct {
		by *client.Client
		of client.AgentSubscription
	}{
		parley.AgentNotFound: {by: as, of: client.AgentSubscription{AgentID: "secret"}},
	} {
		for u, err := range c.by.FollowAgents(t.Context(), c.of) {
			if parley.CodeOf(err) != what {
				t.Errorf("got %+v %v, want %s", u, err, what)
			}
		}
	}
}
