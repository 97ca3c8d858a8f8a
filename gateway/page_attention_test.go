package gateway

import (
	"net/url"
	"strings"
	"testing"

	"parley/actors"
	"parley/events"
	"parley/gateway/people"
)

// TestAttentionIsOnThePage has a person see and set on the page how mail reaches the sessions of a coding agent, and of no other agent.
func TestAttentionIsOnThePage(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	_, err := h.node.Host().Make(t.Context(), actors.NewAgent{Kind: events.Guest, Name: "shop", Labels: map[string]string{people.LabelKind: people.CodingAgent}})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, body := h.get("/agents/fae", "text/html"); strings.Contains(body, "middle of a turn") {
		t.Error("the page of an agent that is no coding agent has it")
	}
	_, _, body := h.get("/agents/shop", "text/html")
	if !strings.Contains(body, "the session that was active last is told · never quiet · in the middle of a turn comes what is urgent") {
		t.Error("the page lacks what holds where nothing was set")
	}
	sent := url.Values{"attention": {"1"}, "all-sessions": {"on"}, "quiet": {"always"}, "zone": {"Europe/Berlin"}, "interruptions": {"none"}}
	if status, _, body := h.postForm("/agents/shop", sent); status != 303 {
		t.Fatalf("%d %s", status, body)
	}
	if _, _, body = h.get("/agents/shop", "text/html"); !strings.Contains(body, "each session is told · quiet always: now · in the middle of a turn comes nothing") {
		t.Error("the page lacks what was set")
	}
	sent.Set("quiet", "<b>late</b>")
	if status, _, body := h.postForm("/agents/shop", sent); status == 303 || !strings.Contains(body, "&lt;b&gt;late&lt;/b&gt;") {
		t.Errorf("%d %s", status, body)
	}
	if _, _, body = h.get("/agents/shop", "text/html"); !strings.Contains(body, "quiet always: now") {
		t.Error("what was refused changed it")
	}
	sent.Set("quiet", "")
	if status, _, body := h.postForm("/agents/shop", sent); status != 303 {
		t.Fatalf("%d %s", status, body)
	}
	if _, _, body = h.get("/agents/shop", "text/html"); !strings.Contains(body, "never quiet") {
		t.Error("the quiet has not ended")
	}
}
