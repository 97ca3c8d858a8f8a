package gateway

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"parley/gateway/api"
	"parley/internal/eventually"
)

func TestDrainAnswersCallsAndClosesGoingAway(t *testing.T) {
	h := openTestServer(t)
	h.guest("fae")
	k := h.dial("fae")
	k.send(`{"type":"form_request","recipient":"@host","description":"D","fields":[{"name":"a"}]}`)
	form := k.receiveMembers()["form"]
	k.send(fmt.Sprintf(`{"type":"await_request","requestId":"w","id":%q}`, form))
	eventually.Holds(t, "one waits", func() bool { return h.server.now(api.KindWaits) > 0 })
	drained := make(chan struct{})
	go func() {
		h.close()
		close(drained)
	}()
	want(t, k.receive(), `"requestId":"w"`, `"status":"open"`)
	if got := k.closeStatus(); got != websocket.StatusGoingAway {
		t.Errorf("got %v", got)
	}
	<-drained
}

func TestSlowReaderIsCutOffAndBlocksNoOther(t *testing.T) {
	h := openTestServer(t)
	h.close()
	h.open(func(s *Server) { s.ws.FrameTime = 200 * time.Millisecond })
	h.guest("fae")
	slow, quick := h.dial("host"), h.dial("host")
	slow.send(`{"type":"follow_messages","subscriptionId":"s"}`)
	quick.send(`{"type":"follow_messages","subscriptionId":"q"}`)
	text := strings.Repeat("x", 100<<10)
	agent, err := h.node.ActAs(t.Context(), "fae")
	if err != nil {
		t.Fatal(err)
	}
	const messages = 100 // more than all buffers between hold
	for range messages {
		if _, err := agent.Send(t.Context(), "HOST", text); err != nil {
			t.Fatal(err)
		}
		want(t, quick.receive()[:100], `"type":"message"`)
	}
	eventually.Holds(t, "the slow connection is cut off", func() bool { return h.server.now(api.KindWebSockets) <= 1 })
}

func TestThousandFollowersLoseNoFrame(t *testing.T) {
	h := openTestServer(t)
	fae := h.guest("fae")
	const followers, messages = 1000, 5
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	all := make([]*wsClient, followers)
	for i := range all {
		all[i] = h.dial("host")
		all[i].send(`{"type":"follow_messages","requestId":"r","subscriptionId":"s"}`)
		want(t, all[i].receive(), "subscribed")
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	t.Logf("%d KiB for each, with its client", (after.HeapAlloc+after.StackInuse-before.HeapAlloc-before.StackInuse)/followers/1024)
	for i := range messages {
		if _, err := fae.Send(t.Context(), "HOST", fmt.Sprint("m", i)); err != nil {
			t.Fatal(err)
		}
	}
	for _, k := range all {
		for i := range messages {
			want(t, k.receive(), fmt.Sprintf(`"text":"m%d"`, i))
		}
	}
}
