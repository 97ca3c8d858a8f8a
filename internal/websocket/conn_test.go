package websocket

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	other "github.com/coder/websocket"
)

// sizes are those of messages around the bounds of heads and buffers.
var sizes = []int{0, 1, 125, 126, 127, smallSize - maxHead, smallSize - 1, smallSize, smallSize + 1, largeSize - 1, largeSize, largeSize + 1, 1<<16 + 7, 300_000}

func message(n int) []byte { return bytes.Repeat([]byte("é|"), n/3+1)[:n] }

// openEcho opens a server that sends each message back, and then the end.
func openEcho(t *testing.T, o Options) string {
	t.Helper()
	var served sync.WaitGroup
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status, err := Check(r); err != nil {
			http.Error(w, err.Error(), status)
			return
		}
		c, err := Accept(w, r, r.Header.Get("Sec-WebSocket-Protocol"), o)
		if err != nil {
			t.Error(err)
			return
		}
		served.Go(func() {
			defer c.Cut()
			defer c.KeepAlive(time.Hour, time.Hour)()
			for {
				kind, m, err := c.Read()
				if err == nil {
					err = c.Write(kind, m)
				}
				if err != nil {
					return
				}
			}
		})
	}))
	t.Cleanup(func() {
		s.Close()
		served.Wait()
	})
	return s.URL
}

// TestAnotherLibraryIsEchoed sends messages of all sizes from a client of another library, whole and in parts.
func TestAnotherLibraryIsEchoed(t *testing.T) {
	url := openEcho(t, Options{MaxMessage: 1 << 20, FrameTime: time.Minute})
	c, _, err := other.Dial(t.Context(), url, &other.DialOptions{Subprotocols: []string{"x"}})
	if err != nil || c.Subprotocol() != "x" {
		t.Fatal(err)
	}
	defer c.CloseNow()
	c.SetReadLimit(-1)
	for _, n := range sizes {
		for _, parts := range []int{1, 3} {
			want := message(n)
			w, err := c.Writer(t.Context(), other.MessageBinary)
			if err != nil {
				t.Fatal(err)
			}
			for i := range parts {
				if _, err := w.Write(want[n*i/parts : n*(i+1)/parts]); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if kind, got, err := c.Read(t.Context()); err != nil || kind != other.MessageBinary || !bytes.Equal(got, want) {
				t.Fatalf("%d bytes in %d parts: %d bytes, %v, %v", n, parts, len(got), kind, err)
			}
		}
	}
	go func() { _, _, _ = c.Read(context.Background()) }()
	if err := c.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	if err := c.Close(other.StatusNormalClosure, "bye"); err != nil {
		t.Error(err)
	}
}

// TestAnotherLibraryIsRead does the same with a server of another library, and ends from there.
func TestAnotherLibraryIsRead(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := other.Accept(w, r, &other.AcceptOptions{Subprotocols: []string{"x"}})
		if err != nil {
			t.Error(err)
			return
		}
		c.SetReadLimit(-1)
		for range sizes {
			kind, m, err := c.Read(r.Context())
			if err == nil {
				err = c.Write(r.Context(), kind, m)
			}
			if err != nil {
				t.Error(err)
			}
		}
		_ = c.Close(other.StatusTryAgainLater, "later")
	}))
	defer s.Close()
	c, protocol, _, err := Dial(t.Context(), http.DefaultClient, s.URL, nil, "x", Options{MaxMessage: 1 << 20})
	if err != nil || protocol != "x" {
		t.Fatal(protocol, err)
	}
	defer c.Cut()
	for _, n := range sizes {
		want := message(n)
		if err := c.Write(Binary, want); err != nil {
			t.Fatal(err)
		}
		if kind, got, err := c.Read(); err != nil || kind != Binary || !bytes.Equal(got, want) {
			t.Fatalf("%d bytes: %d bytes, %v, %v", n, len(got), kind, err)
		}
	}
	_, _, err = c.Read()
	if end, ok := errors.AsType[*Closed](err); !ok || end.Code != TryLater || end.Reason != "later" {
		t.Errorf("the end is %v", err)
	}
}

// TestSeveralMessagesAreOneWrite writes messages at once, on a pipe that shows each write.
func TestSeveralMessagesAreOneWrite(t *testing.T) {
	near, far := net.Pipe()
	c := newConn(near, nil, false, Options{MaxMessage: 100, FrameTime: time.Minute})
	go func() { _ = c.Write(Text, []byte("a"), []byte("bc")) }()
	b := make([]byte, 100)
	if n, err := far.Read(b); err != nil || string(b[:n]) != "\x81\x01a\x81\x02bc" {
		t.Errorf("%x, %v", b[:n], err)
	}
	go c.Close(Normal, "")
	if n, err := far.Read(b); err != nil || string(b[:n]) != "\x88\x02\x03\xe8" {
		t.Errorf("%x, %v", b[:n], err)
	}
	_ = far.Close()
}

// TestWhoDoesNotGoOnIsCut begins a message and does not end it. A connection that is silent, and one that was pinged between, stays.
func TestWhoDoesNotGoOnIsCut(t *testing.T) {
	near, far := net.Pipe()
	c := newConn(near, nil, false, Options{MaxMessage: 100, FrameTime: 50 * time.Millisecond})
	ended := make(chan error, 1)
	go func() {
		_, _, err := c.Read()
		ended <- err
	}()
	if _, err := far.Write([]byte("\x89\x80\x00\x00\x00\x00")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(far, make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		t.Fatalf("a silent connection ends: %v", err)
	case <-time.After(150 * time.Millisecond):
	}
	if _, err := far.Write([]byte("\x81")); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || !errors.Is(err, context.DeadlineExceeded) && !strings.Contains(err.Error(), "timeout") {
		t.Errorf("a message that does not end: %v", err)
	}
}

// TestWhoAnswersNoPingIsCut keeps alive a connection of which nothing comes.
func TestWhoAnswersNoPingIsCut(t *testing.T) {
	near, far := net.Pipe()
	c := newConn(near, nil, false, Options{MaxMessage: 100, FrameTime: time.Minute})
	defer c.KeepAlive(time.Millisecond, 20*time.Millisecond)()
	go func() { _, _, _ = c.Read() }()
	if n, err := io.Copy(io.Discard, far); err != nil || n == 0 {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// memory refuses more than it has.
type memory struct{ left int64 }

func (m *memory) Add(n int64) error {
	if m.left -= n; m.left < 0 {
		return errors.New("no memory")
	}
	return nil
}
func (m *memory) Release() {}

// TestALargeMessageIsCharged sends messages to servers with bounds of size and memory.
func TestALargeMessageIsCharged(t *testing.T) {
	for _, bound := range []struct {
		o    Options
		want other.StatusCode
	}{
		{Options{MaxMessage: 1 << 20, Memory: &memory{left: 100_000}}, other.StatusTryAgainLater},
		{Options{MaxMessage: 100_000}, other.StatusMessageTooBig},
	} {
		c, _, err := other.Dial(t.Context(), openEcho(t, bound.o), nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Write(t.Context(), other.MessageBinary, make([]byte, 500_000)) // it may be cut within
		if _, _, err := c.Read(t.Context()); other.CloseStatus(err) != bound.want && !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%+v: %v", bound.o, err)
		}
		_ = c.CloseNow()
	}
}

// FuzzConn reads any bytes as the frames of a client and of a server. A reading ends with an error, and takes no more memory than came.
func FuzzConn(f *testing.F) {
	f.Add([]byte("\x81\x85\x01\x02\x03\x04iffhn"), false)
	f.Add([]byte("\x01\x01a\x89\x00\x80\x01b\x88\x02\x03\xe8"), true)
	f.Add([]byte("\x82\x7f\x00\x00\x00\x00\x00\x01\x00\x00"), true)
	f.Fuzz(func(t *testing.T, came []byte, client bool) {
		c := newConn(&closedPipe{}, bytes.Clone(came), client, Options{MaxMessage: 1 << 20})
		total := 0
		for {
			kind, m, err := c.Read()
			if err != nil {
				break
			}
			if total += len(m); kind != Text && kind != Binary || total > len(came) {
				t.Fatalf("a message of kind %d with %d bytes", kind, len(m))
			}
		}
	})
}

// closedPipe gives nothing and takes all.
type closedPipe struct{}

func (*closedPipe) Read([]byte) (int, error)    { return 0, io.EOF }
func (*closedPipe) Write(b []byte) (int, error) { return len(b), nil }
func (*closedPipe) Close() error                { return nil }
