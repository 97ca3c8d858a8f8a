package gateway

import (
	"fmt"
	"net"
	"runtime"
	gcmetrics "runtime/metrics"
	"testing"
	"time"

	"parley/gateway/api"
	"parley/internal/eventually"
)

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
	if most > before+256<<20 {
		t.Errorf("%d MiB are held for listings that nobody reads", (most-before)>>20)
	}
}
