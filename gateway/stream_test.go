package gateway

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
	"parley/internal/eventually"
	"parley/mailbox"
)

// Events of a stream, as a page decodes them.
type (
	changed struct {
		Feed     int
		Cursor   uint64
		Messages []struct {
			Number uint64
			HTML   string
		}
		Reload bool
	}
	lostFeed struct {
		Feed int
		Code parley.Code
	}
	agentsChanged struct {
		Agents []string
		Many   bool
	}
)

// streamClient reads a stream of events.
type streamClient struct {
	t      *testing.T
	lines  *bufio.Scanner
	end    func()
	status int
}

// streamEvent is one event.
type streamEvent struct{ Name, ID, Data string }

// openStream opens a stream of events after a cursor.
func (h *pageServer) openStream(query, last string) *streamClient {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, h.url+"/events"+query, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+h.token)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	transport := &http.Transport{}
	resp, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	l := &streamClient{t: h.t, lines: bufio.NewScanner(resp.Body), status: resp.StatusCode}
	l.lines.Buffer(nil, 8<<20)
	l.end = func() {
		cancel()
		_ = resp.Body.Close() // it was cancelled
		transport.CloseIdleConnections()
	}
	h.t.Cleanup(l.end)
	return l
}

// next returns the next event with a name, or false when the stream has ended.
func (l *streamClient) next(name string) (streamEvent, bool) {
	l.t.Helper()
	var e streamEvent
	for l.lines.Scan() {
		key, value, _ := strings.Cut(l.lines.Text(), ": ")
		switch {
		case key == "event":
			e.Name = value
		case key == "id":
			e.ID = value
		case key == "data":
			e.Data = value
		case l.lines.Text() == "":
			if e.Name == name {
				return e, true
			}
			e = streamEvent{}
		}
	}
	return streamEvent{}, false
}

func (l *streamClient) messages() (numbers []uint64, cursor string) {
	l.t.Helper()
	e, ok := l.next("messages")
	if !ok {
		l.t.Fatal("the stream has ended")
	}
	var c changed
	if err := json.Unmarshal([]byte(e.Data), &c); err != nil {
		l.t.Fatal(err)
	}
	for _, m := range c.Messages {
		numbers = append(numbers, m.Number)
	}
	return numbers, e.ID
}

// sendMany sends messages from the guest, and returns when all have arrived.
func (h *pageServer) sendMany(many int) {
	h.t.Helper()
	failed := make(chan error, 16)
	for i := range cap(failed) {
		go func() {
			var err error
			for n := i; n < many && err == nil; n += cap(failed) {
				_, err = h.fae.Send(h.t.Context(), "HOST", fmt.Sprintf("word %d", n))
			}
			failed <- err
		}()
	}
	for range cap(failed) {
		if err := <-failed; err != nil {
			h.t.Fatal(err)
		}
	}
}

func TestReconnectLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	const many, portion = 300, 30 // fewer unread ones than ask for a reload
	done, room := make(chan bool), make(chan bool, many/portion)
	room <- true
	go func() {
		defer close(done)
		for range many / portion {
			<-room
			h.sendMany(portion)
		}
	}()
	var got []uint64
	cursor := "0"
	for len(got) < many {
		l := h.openStream("?cursor=0", cursor)
		for range 3 { // and it is cut off
			var numbers []uint64
			if numbers, cursor = l.messages(); len(numbers) == 0 {
				t.Fatal("an event of nothing")
			}
			for range numbers {
				if len(got)%portion == 0 {
					room <- true
				}
				got = append(got, 0)
			}
			if copy(got[len(got)-len(numbers):], numbers); len(got) >= many {
				break
			}
		}
		l.end()
	}
	<-done
	want := make([]uint64, many)
	for i := range want {
		want[i] = uint64(i)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d messages: %v", len(got), got)
	}
}

func TestStreamReportsQuestionsAndOutcomes(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	l := h.openStream("", "")
	says := func(want string) {
		t.Helper()
		if e, ok := l.next("questions"); !ok || !strings.HasPrefix(e.Data, want) || e.ID != "" {
			t.Fatalf("%v %v, want %s", e, ok, want)
		}
	}
	says(`{"count":0`)
	h.ask(parley.Form{Fields: []events.Field{{Name: "a"}}})
	says(`{"count":1`)
	if _, err := h.node.Host().Decline(t.Context(), capabilities.FormNumber(0), 0, ""); err != nil {
		t.Fatal(err)
	}
	says(`{"count":0`)
}

func TestStreamEndsWithTheNode(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	l := h.openStream("?cursor=0", "")
	if _, ok := l.next("questions"); !ok {
		t.Fatal("it did not begin")
	}
	began := time.Now()
	if err := h.server.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	if _, more := l.next("questions"); more {
		t.Error("it goes on")
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestBlockedReaderDelaysNoOther(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	conn, err := net.Dial("tcp", h.server.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /events?cursor=0 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", h.token)
	eventually.Holds(t, "it is served", func() bool { return h.server.now(api.KindStreams) > 0 })
	l := h.openStream("?cursor=0", "")
	words := strings.Repeat("x", 50_000)
	for i := range 100 { // more than the way to the other holds
		if _, err := h.fae.Send(t.Context(), "HOST", words); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if numbers, _ := l.messages(); len(numbers) != 1 || numbers[0] != uint64(i) {
			t.Fatalf("%v, want %d", numbers, i)
		}
		if took := time.Since(began); took > 8*time.Second { // a reader that does not read is given up after ten
			t.Fatalf("message %d took %v", i, took)
		}
	}
}

// TestOpenPageCountsAsAttending: who has the page open can be asked what is only asked of somebody who is there.
func TestOpenPageCountsAsAttending(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	attended := func() view.Permitted {
		p, err := actors.ApproveAttended(t.Context(), h.fae, mailbox.RequestApproval{Permission: parley.Permission{Tool: "shell", Input: `"ls"`}, Key: "one"})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if p := attended(); !p.Unattended {
		t.Fatalf("nobody is there: %+v", p)
	}
	h.openStream("", "")
	eventually.Holds(t, "somebody attends", func() bool { return !attended().Unattended })
}
