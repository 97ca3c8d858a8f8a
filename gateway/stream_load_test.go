package gateway

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/gateway/api"
	"parley/internal/eventually"
)

// openRawStream opens a stream of events on a connection of its own, and reads nothing.
func (h *pageServer) openRawStream(query string, receives int) *net.TCPConn {
	h.t.Helper()
	conn, err := net.Dial("tcp", h.server.Address())
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = conn.Close() }) // it may be closed already
	tcp := conn.(*net.TCPConn)
	if receives > 0 {
		if err := tcp.SetReadBuffer(receives); err != nil {
			h.t.Fatal(err)
		}
	}
	if _, err := fmt.Fprintf(tcp, "GET /events?%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", query, h.token); err != nil {
		h.t.Fatal(err)
	}
	return tcp
}

// numbersUpTo reads a stream until it has a message with the number last, and counts the events for each message.
func numbersUpTo(conn net.Conn, last uint64) (map[uint64]int, error) {
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		return nil, err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil) // closing its body would read to its end
	if err != nil {
		return nil, err
	}
	told := map[uint64]int{}
	lines := bufio.NewScanner(resp.Body)
	for name := ""; told[last] == 0 && lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), ": ")
		if key == "event" {
			name = value
		}
		if key != "data" || name != "messages" {
			continue
		}
		var c changed
		if err := json.Unmarshal([]byte(value), &c); err != nil {
			return told, err
		}
		for _, m := range c.Messages {
			told[m.Number]++
		}
	}
	return told, lines.Err()
}

// memoryInUse returns the size of the reachable heap and of the stacks.
func memoryInUse() uint64 {
	runtime.GC()
	runtime.GC() // objects with finalizers
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

func TestThousandSubscribersGetEachEventOnce(t *testing.T) {
	const many = 1000
	h := openPageServer(t)
	before := memoryInUse()
	crowd := make([]*net.TCPConn, many)
	for i := range crowd {
		crowd[i] = h.openRawStream("cursor=0", 0)
	}
	eventually.Holds(t, "all streams are served", func() bool { return h.server.now(api.KindStreams) == many })
	t.Logf("%d KiB for each idle subscriber, %d goroutines in all", (int64(memoryInUse())-int64(before))/many>>10, runtime.NumGoroutine())

	told, failed := make([]map[uint64]int, many), make([]error, many)
	var reading sync.WaitGroup
	for i, conn := range crowd {
		reading.Go(func() { told[i], failed[i] = numbersUpTo(conn, 1) })
	}
	began := time.Now()
	for _, text := range []string{"for everybody", "the end"} { // a duplicate would come before the next
		if _, err := h.fae.Send(t.Context(), "HOST", text); err != nil {
			t.Fatal(err)
		}
	}
	reading.Wait()
	t.Logf("all were told within %v", time.Since(began))
	for i := range crowd {
		if failed[i] != nil || !maps.Equal(told[i], map[uint64]int{0: 1, 1: 1}) {
			t.Errorf("subscriber %d was told of %v: %v", i, told[i], failed[i])
		}
	}
}

// readSlowly reads one byte a second until stop is closed or the stream ends.
func readSlowly(conn net.Conn, stop <-chan struct{}) {
	pace := time.NewTicker(time.Second)
	defer pace.Stop()
	for one := make([]byte, 1); ; {
		if _, err := conn.Read(one); err != nil {
			return
		}
		select {
		case <-pace.C:
		case <-stop:
			return
		}
	}
}

func TestSlowReaderIsCutOffAndDelaysNoOther(t *testing.T) {
	h := openPageServer(t)
	h.server.bodies.Slowest = 500 * time.Millisecond // before anybody is there
	slow := h.openRawStream(strings.Repeat("feed=0:HOST&", 100), 256<<10)
	eventually.Holds(t, "one stream is served", func() bool { return h.server.now(api.KindStreams) == 1 })
	stop := make(chan struct{})
	var sipping sync.WaitGroup
	sipping.Go(func() { readSlowly(slow, stop) })

	l := h.openStream("?cursor=0", "")
	eventually.Holds(t, "two streams are served", func() bool { return h.server.now(api.KindStreams) == 2 })
	words := strings.Repeat("语", 160) // a row of over a KiB
	sent := 0
	for ; h.server.now(api.KindStreams) == 2 && sent < 200; sent++ { // a row in 100 feeds: more than the connection holds
		if _, err := h.fae.Send(t.Context(), "HOST", words); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if numbers, _ := l.messages(); len(numbers) != 1 || numbers[0] != uint64(sent) {
			t.Fatalf("%v, want %d", numbers, sent)
		}
		if took := time.Since(began); took > 8*time.Second {
			t.Fatalf("message %d took %v", sent, took)
		}
	}
	eventually.Holds(t, "the slow reader is cut off", func() bool { return h.server.now(api.KindStreams) == 1 })
	t.Logf("cut off after %d messages", sent)
	close(stop)
	sipping.Wait()

	if err := slow.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, slow); errors.Is(err, os.ErrDeadlineExceeded) { // what was on its way still comes
		t.Errorf("it is still open after %d bytes", n)
	}
	if _, err := h.fae.Send(t.Context(), "HOST", "and on it goes"); err != nil {
		t.Fatal(err)
	}
	if numbers, _ := l.messages(); len(numbers) != 1 {
		t.Errorf("the other is told of %v", numbers)
	}
}
