package gateway

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"parley/actors/view"
	"parley/gateway/api"
	"parley/gateway/client"
)

// fillMailbox sends messages of a size from fae to the host.
func (h *testServer) fillMailbox(messages, size int) {
	h.t.Helper()
	fae, err := h.node.ActAs(h.t.Context(), "fae")
	if err != nil {
		h.t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range messages / 4 {
				if _, err := fae.Send(h.t.Context(), "HOST", strings.Repeat("x", size)); err != nil {
					h.t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

func TestLargeMailboxIsListedWholeOverEveryEdge(t *testing.T) {
	h := openTestServer(t)
	h.guest("fae")
	const messages = 24
	h.fillMailbox(messages, 100<<10)
	own, err := client.New(client.Options{Socket: h.server.socketPath})
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	count := 0
	for m, err := range own.List(t.Context(), client.View{}) {
		if err != nil || m.Number != uint64(count) {
			t.Fatalf("%d: %v", m.Number, err)
		}
		count++
	}
	followed := 0
	for m, err := range own.Follow(t.Context(), client.View{}, "1") { // after the mailbox's creation
		if err != nil || m.Number != uint64(followed) {
			t.Fatalf("%d: %v", m.Number, err)
		}
		if followed++; followed == messages {
			break
		}
	}
	k := h.dial("host")
	k.send(`{"type":"follow_messages","subscriptionId":"s"}`)
	for i := range messages {
		want(t, k.receive()[:200], fmt.Sprintf(`"number":%d`, i))
	}
	var page view.Inbox
	if err := own.Call(t.Context(), "list_messages", api.ListMessagesRequest{}, &page); err != nil || page.Next == 0 || len(page.Messages) > 5 {
		t.Errorf("%d messages at once, next %d: %v", len(page.Messages), page.Next, err)
	}
	if count != messages {
		t.Errorf("%d were listed", count)
	}
}

// A follower that is cut off within a page resumes after the last message.
func TestFollowerResumesWithinAPage(t *testing.T) {
	h := openTestServer(t)
	h.guest("fae")
	const messages = 12
	h.fillMailbox(messages, 100<<10)
	cursor, seen := "", 0
	for seen < messages {
		k := h.dial("host")
		k.send(fmt.Sprintf(`{"type":"follow_messages","subscriptionId":"s","cursor":%q}`, cursor))
		for range 5 {
			f := k.receiveMembers()
			if got := f["message"].(map[string]any)["number"]; got != float64(seen) {
				t.Fatalf("%v, want %d", got, seen)
			}
			cursor = f["cursor"].(string)
			if seen++; seen == messages {
				break
			}
		}
		k.disconnect()
	}
}
