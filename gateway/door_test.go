package gateway

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/gateway/client"
)

// openDoor serves a handler on a Unix socket, and gives a way to connect.
func openDoor(t *testing.T, h http.HandlerFunc, tune ...func(*door)) (*door, func() *net.UnixConn) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := listenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	d := newDoor(l, 100, h, slog.New(slog.DiscardHandler))
	for _, change := range tune {
		change(d)
	}
	served := make(chan error, 1)
	go func() { served <- d.serve() }()
	t.Cleanup(func() {
		_ = d.drain(t.Context()) // has ended: nothing lingers
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return d, func() *net.UnixConn {
		t.Helper()
		conn, err := client.Dial(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn.(*net.UnixConn)
	}
}

// echo answers with what it was asked.
func echo(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/unread":
		return
	case "/panic":
		panic("a bug")
	case "/abort":
		panic(http.ErrAbortHandler)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "unreadable", http.StatusBadRequest)
		return
	}
	fmt.Fprintf(w, "[%s %s]", r.URL.Path, body)
}

func post(path, header, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n%s\r\n%s", path, len(body), header, body)
}

func TestTheDoorSpeaksHTTP(t *testing.T) {
	const closed = "\r\nConnection: close\r\n"
	large := strings.Repeat("x", 2*maxUnread)
	for _, x := range []struct {
		name, send string
		want       []string // in this order
		ends       bool     // the connection, though the client has not ended it
		not        string
	}{
		{"one after the other", post("/a", "", "1") + post("/b", "", "2"), []string{"200 OK", "[/a 1]", "200 OK", "[/b 2]"}, false, closed},
		{"no body", "GET /a HTTP/1.1\r\nHost: x\r\n\r\n", []string{"200 OK", "[/a ]"}, false, closed},
		{"HTTP/1.0", "POST /a HTTP/1.0\r\nContent-Length: 1\r\n\r\n1", []string{"200 OK", closed, "[/a 1]"}, true, ""},
		{"last request", post("/a", "Connection: close\r\n", "1") + post("/b", "", "2"), []string{"200 OK", closed, "[/a 1]"}, true, "/b"},
		{"chunks", "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n1\r\n2\r\n23\r\n0\r\n\r\n" + post("/b", "", "2"), []string{"[/a 123]", "[/b 2]"}, false, closed},
		{"broken chunks", "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", []string{"400", closed, "unreadable"}, true, ""},
		{"HEAD", "HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n" + post("/b", "", "2"), []string{"200 OK", "Content-Length: 5", "200 OK", "[/b 2]"}, false, "[/a"},
		{"a body that nobody reads", post("/unread", "", "123") + post("/b", "", "2"), []string{"200 OK", "200 OK", "[/b 2]"}, false, closed},
		{"a large one", post("/unread", "", large) + post("/b", "", "2"), []string{"200 OK", closed}, true, "/b"},
		{"one that was not asked for", post("/unread", "Expect: 100-continue\r\n", "123"), []string{"200 OK", closed}, true, "100 Continue"},
		{"header too long", "GET /" + large[:maxHeader+8<<10] + " HTTP/1.1\r\nHost: x\r\n\r\n", []string{"431", closed, "TOO_LARGE"}, true, ""},
		{"long header", "GET /a HTTP/1.1\r\nHost: x\r\nX: " + large[:maxHeader-1<<10] + "\r\n\r\n", []string{"200 OK"}, false, closed},
		{"not HTTP", "hello\r\n\r\n", []string{"400", closed, "INVALID_ARGUMENT"}, true, ""},
		{"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", []string{"400", closed, "INVALID_ARGUMENT"}, true, ""},
		{"no host", "GET /a HTTP/1.1\r\n\r\n", []string{"400", closed, "INVALID_ARGUMENT"}, true, ""},
		{"half a header", "GET /a HTT", nil, false, "HTTP"},
		{"half a body", "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n123", []string{"400", "unreadable"}, false, ""},
		{"a panic", post("/panic", "", "1") + post("/b", "", "2"), nil, true, "HTTP"},
		{"an abort", post("/abort", "", "1") + post("/b", "", "2"), nil, true, "HTTP"},
	} {
		t.Run(x.name, func(t *testing.T) {
			_, connect := openDoor(t, echo)
			conn := connect()
			go func() {
				_, _ = io.WriteString(conn, x.send) // the door may be closed before it has all
				if !x.ends {
					_ = conn.CloseWrite()
				}
			}()
			got, err := io.ReadAll(conn)
			if err != nil && !x.ends { // what the door did not read is a reset
				t.Error(err)
			}
			rest := string(got)
			for _, part := range x.want {
				_, after, found := strings.Cut(rest, part)
				if !found {
					t.Fatalf("no %q in\n%s", part, got)
				}
				rest = after
				if strings.HasPrefix(part, "\r\n") {
					rest = "\r\n" + rest
				}
			}
			if x.not != "" && strings.Contains(string(got), x.not) {
				t.Errorf("there is %q in\n%s", x.not, got)
			}
		})
	}
}

func TestABodyIsAskedFor(t *testing.T) {
	_, connect := openDoor(t, echo)
	conn := connect()
	in := bufio.NewReader(conn)
	for range 2 {
		fmt.Fprint(conn, "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-Continue\r\n\r\n")
		if line, err := in.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
			t.Fatalf("%q %v", line, err)
		}
		if line, err := in.ReadString('\n'); err != nil || line != "\r\n" {
			t.Fatalf("%q %v", line, err)
		}
		fmt.Fprint(conn, "123")
		answer, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(answer.Body); err != nil || string(body) != "[/a 123]" {
			t.Errorf("%s %v", body, err)
		}
	}
}

func TestLargeResponsesStream(t *testing.T) {
	const pieces = 40
	piece := bytes.Repeat([]byte("0123456789abcdef"), 1<<10)
	more := make(chan bool)
	_, connect := openDoor(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/sized" {
			w.Header().Set("Content-Length", fmt.Sprint(pieces*len(piece)))
		} else {
			w.Header().Set("Trailer", failureTrailer)
		}
		for i := range pieces {
			_, _ = w.Write(piece)
			if i == pieces/8 && r.URL.Path == "/stream" {
				<-more // the client has the beginning
			}
		}
		if r.URL.Path != "/sized" {
			w.Header().Set(failureTrailer, "two\r\nlines")
		}
	})
	for path, trailer := range map[string]string{"/stream": "two  lines", "/sized": ""} {
		conn := connect()
		fmt.Fprint(conn, post(path, "", "")+post("/end", "Connection: close\r\n", ""))
		in := bufio.NewReader(conn)
		answer, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		first := make([]byte, len(piece))
		if _, err := io.ReadFull(answer.Body, first); err != nil || !bytes.Equal(first, piece) {
			t.Fatal(err)
		}
		if path == "/stream" {
			more <- true
		}
		rest, err := io.ReadAll(answer.Body)
		if err != nil || len(rest) != (pieces-1)*len(piece) || answer.Trailer.Get(failureTrailer) != trailer {
			t.Errorf("%s: %d bytes, %v, trailer %v", path, len(rest), err, answer.Trailer)
		}
		if answer, err := http.ReadResponse(in, nil); err != nil || answer.StatusCode != 200 {
			t.Errorf("the next: %v %v", answer, err)
		}
	}
}

func TestConnectionsThatSayNothingEnd(t *testing.T) {
	soon := func(d *door) { d.headerTime, d.idleTime = 20*time.Millisecond, 20*time.Millisecond }
	for name, send := range map[string]string{
		"nothing": "", "half a header": "GET /a HTTP/1.1\r\nHo", "idle after a call": post("/a", "", "1"),
		"half a header after a call": post("/a", "", "1") + "GE",
	} {
		_, connect := openDoor(t, echo, soon)
		conn := connect()
		fmt.Fprint(conn, send)
		if _, err := io.ReadAll(conn); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A body may take its time: what is bounded is the wait for a header.
func TestASlowBodyIsWaitedFor(t *testing.T) {
	_, connect := openDoor(t, echo, func(d *door) { d.headerTime = 20 * time.Millisecond })
	conn := connect()
	fmt.Fprint(conn, "POST /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 3\r\n\r\n1")
	<-time.After(60 * time.Millisecond)
	fmt.Fprint(conn, "23")
	if got, err := io.ReadAll(conn); err != nil || !strings.Contains(string(got), "[/a 123]") {
		t.Errorf("%s %v", got, err)
	}
}

func TestAWatchLosesNothing(t *testing.T) {
	for _, after := range []time.Duration{0, 3 * watchAfter} { // before anyone watches, and while
		inside, leave := make(chan bool, 1), make(chan bool)
		_, connect := openDoor(t, func(w http.ResponseWriter, r *http.Request) {
			echo(w, r)
			if r.URL.Path == "/wait" {
				defer w.(*responseWriter).visit.watch(func() { t.Error("the client is there") })()
				inside <- true
				<-leave
			}
		})
		conn := connect()
		fmt.Fprint(conn, post("/wait", "", "1"))
		<-inside
		<-time.After(after)
		fmt.Fprint(conn, post("/b", "", "2")[:20])
		<-time.After(after)
		close(leave)
		fmt.Fprint(conn, post("/b", "", "2")[20:]+post("/c", "Connection: close\r\n", "3"))
		got, err := io.ReadAll(conn)
		for _, want := range []string{"[/wait 1]", "[/b 2]", "[/c 3]"} {
			if err != nil || !strings.Contains(string(got), want) {
				t.Errorf("no %s in %s %v", want, got, err)
			}
		}
	}
}

func TestAClientThatGoesAwayEndsItsWait(t *testing.T) {
	inside, ended := make(chan bool), make(chan bool)
	_, connect := openDoor(t, func(w http.ResponseWriter, r *http.Request) {
		left := make(chan bool)
		defer w.(*responseWriter).visit.watch(func() { close(left) })()
		inside <- true
		<-left
		close(ended)
	})
	conn := connect()
	fmt.Fprint(conn, post("/wait", "", ""))
	<-inside
	_ = conn.Close()
	<-ended
}

func TestDrainEndsWhatIsIdleAndWaitsForTheRest(t *testing.T) {
	inside, leave := make(chan bool), make(chan bool)
	d, connect := openDoor(t, func(w http.ResponseWriter, r *http.Request) {
		inside <- true
		<-leave
		echo(w, r)
	})
	idler, fresh, caller := connect(), connect(), connect()
	fmt.Fprint(idler, post("/idle", "", ""))
	<-inside
	leave <- true
	if _, err := http.ReadResponse(bufio.NewReader(idler), nil); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(caller, post("/a", "", "1"))
	<-inside
	drained := make(chan error, 1)
	go func() { drained <- d.drain(context.Background()) }()
	for _, conn := range []net.Conn{idler, fresh} {
		if _, err := io.ReadAll(conn); err != nil {
			t.Error(err)
		}
	}
	leave <- true
	if got, err := io.ReadAll(caller); err != nil || !strings.Contains(string(got), "[/a 1]") || !strings.Contains(string(got), "Connection: close") {
		t.Errorf("%s %v", got, err)
	}
	if err := <-drained; err != nil {
		t.Error(err)
	}
}

func TestDrainGivesUpInTheEnd(t *testing.T) {
	inside := make(chan bool)
	d, connect := openDoor(t, func(_ http.ResponseWriter, r *http.Request) {
		inside <- true
		<-r.Context().Done()
	})
	conn := connect()
	fmt.Fprint(conn, post("/a", "", "1"))
	<-inside
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := d.drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if got, err := io.ReadAll(conn); err != nil || len(got) != 0 {
		t.Errorf("%s %v", got, err)
	}
}
