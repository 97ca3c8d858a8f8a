package gateway

import (
	"fmt"
	"net"
	"runtime"
	gcmetrics "runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/actors/view"
	"parley/gateway/api"
	"parley/gateway/client"
	"parley/internal/eventually"
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

// heapInUse returns the size of the reachable heap.
func heapInUse() uint64 {
	runtime.GC()
	sample := []gcmetrics.Sample{{Name: "/gc/heap/live:bytes"}}
	gcmetrics.Read(sample)
	return sample[0].Value.Uint64()
}

func TestUnreadListingsTakeBoundedMemory(t *testing.T) {
	h := openTestServer(t)
	h.close()
	h.open(func(s *Server) { s.bodies.Slowest = 2 * time.Second })
	h.guest("fae")
	h.guest("bob")
	h.fillMailbox(64, 100<<10) // 6 MiB: all listings together would take 600 MiB
	before := heapInUse()
	stop, watched := make(chan struct{}), make(chan uint64)
	go func() {
		var most uint64
		for {
			select {
			case <-stop:
				watched <- most
				return
			case <-time.After(100 * time.Millisecond):
				most = max(most, heapInUse())
			}
		}
	}()
	const listings = 100
	for i := range listings {
		network, address, token := "tcp", h.server.Address(), h.tokens["host"]
		if i%2 == 0 {
			network, address = "unix", h.server.socketPath
		}
		conn, err := net.Dial(network, address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // nothing was read
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetReadBuffer(4 << 10)
		}
		for range 4 { // pipelined
			fmt.Fprintf(conn, "POST /rpc/list_messages HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: 2\r\n\r\n{}", token)
		}
	}
	eventually.Holds(t, "memory is charged", func() bool { return h.server.now(api.KindMemory) > 0 })
	for _, agent := range []string{"host", "bob"} {
		if status, body := h.post("list_names", "Bearer "+h.tokens[agent], `{}`); status != 200 {
			t.Errorf("%s: %d %s", agent, status, body)
		}
	}
	eventually.Holds(t, "they are cut off", func() bool {
		return h.server.now(api.KindMemory) == 0 && h.server.now(api.KindCalls) == 0
	})
	close(stop)
	most := <-watched
	t.Logf("%d MiB before, %d MiB at most", before>>20, most>>20)
	if most > before+160<<20 {
		t.Errorf("%d MiB are held for listings that nobody reads", (most-before)>>20)
	}
}
