package httpd

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

	"parley/actors/connlimit"
	"parley/gateway/client"
)

// serve serves a handler on a Unix socket, and returns a function that connects.
func serve(t *testing.T, h http.HandlerFunc, tune ...func(*Options)) (*Server, func() *net.UnixConn) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{
		Handler: h, Log: slog.New(slog.DiscardHandler), Limiter: connlimit.New(50, 100, 0), Address: Process,
		HeaderTime: 10 * time.Second, ReadTime: 30 * time.Second, WriteTime: time.Minute, IdleTime: time.Minute,
	}
	for _, change := range tune {
		change(&o)
	}
	s := New(l, o)
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	t.Cleanup(func() {
		_ = s.Drain(t.Context()) // the context has ended: Drain does not wait
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return s, func() *net.UnixConn {
		t.Helper()
		conn, err := client.Dial(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn.(*net.UnixConn)
	}
}

// echo responds with the path and the body.
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

const (
	trailer   = "Parley-Error"
	maxUnread = 256 << 10 // of a body: net/http closes the connection for more
)

func post(path, header, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n%s\r\n%s", path, len(body), header, body)
}

func TestServerSpeaksHTTP(t *testing.T) {
	const closed = "\r\nConnection: close\r\n"
	large := strings.Repeat("x", 2*maxUnread)
	for _, x := range []struct {
		name, send string
		want       []string // in order
		ends       bool     // the server closes the connection
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
		{"header too long", "GET /" + large[:MaxHeader+8<<10] + " HTTP/1.1\r\nHost: x\r\n\r\n", []string{"431", closed, "TOO_LARGE"}, true, ""},
		{"long header", "GET /a HTTP/1.1\r\nHost: x\r\nX: " + large[:MaxHeader-1<<10] + "\r\n\r\n", []string{"200 OK"}, false, closed},
		{"not HTTP", "hello\r\n\r\n", []string{"400", closed, "INVALID_ARGUMENT"}, true, ""},
		{"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", []string{"400", closed, "INVALID_ARGUMENT"}, true, ""},
		{"no host", "GET /a HTTP/1.1\r\n\r\n", []string{"400", closed, "INVALID_ARGUMENT"}, true, ""},
		{"half a header", "GET /a HTT", nil, false, "HTTP"},
		{"half a body", "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n123", []string{"400", "unreadable"}, false, ""},
		{"a panic", post("/panic", "", "1") + post("/b", "", "2"), nil, true, "HTTP"},
		{"an abort", post("/abort", "", "1") + post("/b", "", "2"), nil, true, "HTTP"},
	} {
		t.Run(x.name, func(t *testing.T) {
			_, connect := serve(t, echo)
			conn := connect()
			go func() {
				_, _ = io.WriteString(conn, x.send) // the server may close the connection earlier
				if !x.ends {
					_ = conn.CloseWrite()
				}
			}()
			got, err := io.ReadAll(conn)
			if err != nil && !x.ends { // unread input causes a reset
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

func TestExpectContinueRequestsBody(t *testing.T) {
	_, connect := serve(t, echo)
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
	_, connect := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/sized" {
			w.Header().Set("Content-Length", fmt.Sprint(pieces*len(piece)))
		} else {
			w.Header().Set("Trailer", trailer)
		}
		for i := range pieces {
			_, _ = w.Write(piece)
			if i == pieces/8 && r.URL.Path == "/stream" {
				<-more // after the client has read the beginning
			}
		}
		if r.URL.Path != "/sized" {
			w.Header().Set(trailer, "two\r\nlines")
		}
	})
	for path, want := range map[string]string{"/stream": "two  lines", "/sized": ""} {
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
		if err != nil || len(rest) != (pieces-1)*len(piece) || answer.Trailer.Get(trailer) != want {
			t.Errorf("%s: %d bytes, %v, trailer %v", path, len(rest), err, answer.Trailer)
		}
		if answer, err := http.ReadResponse(in, nil); err != nil || answer.StatusCode != 200 {
			t.Errorf("the next: %v %v", answer, err)
		}
	}
}

// TestResponseIsWrittenUnchanged writes the text of net/http's own refusal as a separate piece.
func TestResponseIsWrittenUnchanged(t *testing.T) {
	refusal := "HTTP/1.1 400 Bad Request" + plainError + "400 Bad Request"
	text := strings.Repeat(refusal, 1+(64<<10)/len(refusal))
	_, connect := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(refusal)+len(text)))
		_, _ = io.WriteString(w, refusal)
		_ = http.NewResponseController(w).Flush()
		_, _ = io.WriteString(w, text)
	})
	conn := connect()
	in := bufio.NewReader(conn)
	for range 2 {
		fmt.Fprint(conn, post("/", "", ""))
		answer, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(answer.Body); err != nil || string(body) != refusal+text {
			t.Fatalf("%d bytes, want %d: %v", len(body), len(refusal)+len(text), err)
		}
	}
	fmt.Fprint(conn, "nonsense\r\n\r\n")
	answer, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(answer.Body); err != nil || !strings.HasPrefix(string(body), `{"error":{"code":"INVALID_ARGUMENT"`) {
		t.Errorf("after two requests: %s %v", body, err)
	}
}

func TestSilentConnectionsAreClosed(t *testing.T) {
	soon := func(o *Options) { o.HeaderTime, o.IdleTime = 20*time.Millisecond, 20*time.Millisecond }
	for name, send := range map[string]string{
		"nothing": "", "half a header": "GET /a HTTP/1.1\r\nHo", "idle after a call": post("/a", "", "1"),
		"half a header after a call": post("/a", "", "1") + "GE",
	} {
		_, connect := serve(t, echo, soon)
		conn := connect()
		fmt.Fprint(conn, send)
		if _, err := io.ReadAll(conn); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Only the wait for a header has a time limit, not the body.
func TestSlowBodyIsAwaited(t *testing.T) {
	_, connect := serve(t, echo, func(o *Options) { o.HeaderTime = 20 * time.Millisecond })
	conn := connect()
	fmt.Fprint(conn, "POST /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 3\r\n\r\n1")
	<-time.After(60 * time.Millisecond)
	fmt.Fprint(conn, "23")
	if got, err := io.ReadAll(conn); err != nil || !strings.Contains(string(got), "[/a 123]") {
		t.Errorf("%s %v", got, err)
	}
}

func TestWaitKeepsPipelinedRequests(t *testing.T) {
	for _, after := range []time.Duration{0, 50 * time.Millisecond} {
		inside, leave := make(chan bool, 1), make(chan bool)
		_, connect := serve(t, func(w http.ResponseWriter, r *http.Request) {
			echo(w, r)
			if r.URL.Path == "/wait" {
				inside <- true
				<-leave
				if err := r.Context().Err(); err != nil {
					t.Errorf("the client is there: %v", err)
				}
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

func TestClientDisconnectEndsItsWait(t *testing.T) {
	inside, ended := make(chan bool), make(chan bool)
	_, connect := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		inside <- true
		<-r.Context().Done()
		if err := CallContext(r).Err(); err != nil {
			t.Errorf("a call ends with its client: %v", err)
		}
		close(ended)
	})
	conn := connect()
	fmt.Fprint(conn, post("/wait", "", ""))
	<-inside
	_ = conn.Close()
	<-ended
}

func TestDrainClosesIdleConnectionsAndAwaitsCalls(t *testing.T) {
	inside, leave := make(chan bool), make(chan bool)
	d, connect := serve(t, func(w http.ResponseWriter, r *http.Request) {
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
	go func() { drained <- d.Drain(context.Background()) }()
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

func TestDrainHasATimeLimit(t *testing.T) {
	inside := make(chan bool)
	d, connect := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		inside <- true
		<-r.Context().Done()
	})
	conn := connect()
	fmt.Fprint(conn, post("/a", "", "1"))
	<-inside
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := d.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if got, err := io.ReadAll(conn); err != nil || len(got) != 0 {
		t.Errorf("%s %v", got, err)
	}
}
