package gateway

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"parley/actors"
)

// change returns the next event of messages.
func (l *streamClient) change() changed {
	l.t.Helper()
	e, ok := l.next("messages")
	if !ok {
		l.t.Fatal("the stream has ended")
	}
	var c changed
	if err := json.Unmarshal([]byte(e.Data), &c); err != nil {
		l.t.Fatal(err)
	}
	if e.ID != "" {
		l.t.Errorf("one of several feeds has the ID %s, which says nothing of the others", e.ID)
	}
	return c
}

// following returns the query for feeds.
func following(feeds ...string) string { return "?" + url.Values{"feed": feeds}.Encode() }

func TestStreamFollowsSeveralMailboxes(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	odd := h.guest("a:b & c")
	for _, a := range []*actors.Agent{h.fae, odd} {
		if _, err := a.Send(t.Context(), "@self", "early"); err != nil {
			t.Fatal(err)
		}
	}
	version, err := h.fae.Version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l := h.openStream(following("0:", fmt.Sprintf("%d:fae", version), "0:a:b & c"), "")
	if c := l.change(); c.Feed != 2 || len(c.Messages) != 1 || !strings.Contains(c.Messages[0].HTML, "early") {
		t.Fatalf("%+v", c)
	}
	if _, err := h.fae.Send(t.Context(), "HOST", "late"); err != nil {
		t.Fatal(err)
	}
	var feeds []int
	for range 2 {
		c := l.change()
		feeds = append(feeds, c.Feed)
		if len(c.Messages) != 1 || !strings.Contains(c.Messages[0].HTML, "late") || c.Cursor <= version && c.Feed == 1 {
			t.Errorf("%+v", c)
		}
	}
	slices.Sort(feeds)
	if !slices.Equal(feeds, []int{0, 1}) {
		t.Errorf("of the feeds %v", feeds)
	}
}

func TestRefusedFeedEndsNoOther(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	l := h.openStream(following("0:nobody", "0:"), "")
	e, ok := l.next("gone")
	var lost lostFeed
	if err := json.Unmarshal([]byte(e.Data), &lost); !ok || err != nil || lost.Feed != 0 || lost.Code != "UNKNOWN_NAME" {
		t.Fatalf("%v %+v", ok, e)
	}
	if _, err := h.fae.Send(t.Context(), "HOST", "a word"); err != nil {
		t.Fatal(err)
	}
	if c := l.change(); c.Feed != 1 || len(c.Messages) != 1 {
		t.Errorf("%+v", c)
	}
	h.token = makeToken(t, h.fae, "read")
	l = h.openStream(following("0:", "0:joe"), "")
	if e, ok := l.next("gone"); !ok || !strings.Contains(e.Data, "NOT_PERMITTED") {
		t.Errorf("the mail of another: %v %+v", ok, e)
	}
}

func TestStreamOfTooManyFeedsIsRefused(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	many := slices.Repeat([]string{"0:"}, maxFeeds+1)
	for query, want := range map[string]int{
		following(many...): 400, following("x:"): 400, following("-1:fae"): 400, following("0"): 200, "?reader=" + h.fae.ID().String(): 403,
		"?reader=" + h.node.Host().ID().String(): 200, "?cursor=x": 400,
	} {
		if l := h.openStream(query, ""); l.status != want {
			t.Errorf("%.60s: %d, want %d", query, l.status, want)
		}
	}
}

func TestStreamNamesChangedAgents(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	l := h.openStream("?agents", "")
	if _, ok := l.next("questions"); !ok {
		t.Fatal("it did not begin")
	}
	happens := func(what func() error, want ...*actors.Agent) {
		t.Helper()
		if err := what(); err != nil {
			t.Fatal(err)
		}
		received := map[string]bool{}
		for _, a := range want {
			for !received[a.ID().String()] {
				e, ok := l.next("agents")
				var s agentsChanged
				if err := json.Unmarshal([]byte(e.Data), &s); !ok || err != nil {
					t.Fatalf("%v %v", ok, err)
				}
				for _, id := range s.Agents {
					received[id] = true
				}
			}
		}
	}
	host := h.node.Host()
	happens(func() error { return h.fae.Names().Store(t.Context(), "note", `"x"`) }, h.fae) // no mail
	happens(func() error { return host.Names().Store(t.Context(), "note", `"x"`) }, host)
	var joe *actors.Agent
	happens(func() error { joe = h.guest("joe"); return nil }, host) // and whoever is told is told of joe as well from now on
	happens(func() error { return joe.Names().Store(t.Context(), "note", `"x"`) }, joe)
}
