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
	"github.com/gobwas/ws"
)

// sizes are those of messages around the bounds of heads and buffers.
var sizes = []int{0, 1, 125, 126, 127, smallSize - ws.MaxHeaderSize, smallSize - 1, smallSize, smallSize + 1, largeSize - 1, largeSize, largeSize + 1, 1<<16 + 7, 300_000}

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
	c := newConn(near, nil, ws.StateServerSide, Options{MaxMessage: 100, FrameTime: time.Minute})
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
	c := newConn(near, nil, ws.StateServerSide, Options{MaxMessage: 100, FrameTime: 50 * time.Millisecond})
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
	c := newConn(near, nil, ws.StateServerSide, Options{MaxMessage: 100, FrameTime: time.Minute})
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

// TestWhatTheRFCForbidsIsSaid sends frames that are forbidden, and no more than their heads where those say enough. The connection
// ends with a code and a true reason, which the other side reads.
func TestWhatTheRFCForbidsIsSaid(t *testing.T) {
	const most = 200 // bytes of a message
	key := "\x01\x02\x03\x04"
	masked := func(head, payload string) string {
		b := []byte(payload)
		ws.Cipher(b, [4]byte([]byte(key)), 0)
		return head + string([]byte{0x80 | byte(len(b))}) + key + string(b)
	}
	end := func(code int, reason string) string {
		return masked("\x88", string([]byte{byte(code >> 8), byte(code)})+reason)
	}
	for name, c := range map[string]struct {
		came   string
		client bool
		code   Code
		reason string
	}{
		"no mask":                  {"\x81\x01a", false, 1002, "frames from client to server must be masked"},
		"a mask":                   {masked("\x81", "a"), true, 1002, "frames from server to client must be not masked"},
		"the first reserved bit":   {masked("\xc1", ""), false, 1002, "rsv bits"},
		"the last reserved bit":    {masked("\x91", ""), false, 1002, "rsv bits"},
		"a reserved opcode":        {masked("\x83", ""), false, 1002, "reserved op code"},
		"a reserved control":       {masked("\x8b", ""), false, 1002, "reserved op code"},
		"a ping in parts":          {masked("\x09", ""), false, 1002, "control frame is not final"},
		"a long ping":              {"\x89\xfe\x00\x7e" + key, false, 1002, "control frame payload limit"},
		"a long close":             {"\x88\x7e\x00\x7e", true, 1002, "control frame payload limit"},
		"a part of nothing":        {masked("\x80", ""), false, 1002, "unexpected continuation"},
		"a message in another":     {masked("\x01", "a") + masked("\x81", "b"), false, 1002, "unexpected non-continuation"},
		"the top bit of a length":  {"\x82\xff\x80\x00\x00\x00\x00\x00\x00\x01" + key, false, 1002, "most significant bit"},
		"all bits of a length":     {"\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff", true, 1002, "most significant bit"},
		"the longest length":       {"\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff" + key, false, 1009, "too large"},
		"a byte too much":          {"\x82\xfe\x00\xc9" + key, false, 1009, "too large"},
		"a byte too much in parts": {masked("\x02", strings.Repeat("a", 101)) + "\x80\xe4" + key, false, 1009, "too large"},
		"a text that is none":      {masked("\x81", "\xff"), false, 1007, "not valid UTF-8"},
		"half of a character":      {masked("\x01", "a\xc3") + masked("\x80", ""), false, 1007, "not valid UTF-8"},
		"half of a code":           {masked("\x88", "\x03"), false, 1002, "not in use"},
		"a reason that is none":    {end(1000, "\xff"), false, 1002, "invalid utf8"},
		"code 0":                   {end(0, ""), false, 1002, "not in use"},
		"code 999":                 {end(999, ""), false, 1002, "not in use"},
		"code 1004":                {end(1004, ""), false, 1002, "no meaning"},
		"code 1005":                {end(1005, ""), false, 1002, "application level"},
		"code 1006":                {end(1006, ""), false, 1002, "application level"},
		"code 1015":                {end(1015, ""), false, 1002, "application level"},
		"code 1016":                {end(1016, ""), false, 1002, "not defined"},
		"code 2999":                {end(2999, ""), false, 1002, "not defined"},
		"code 5000":                {end(5000, ""), false, 1002, "no meaning"},
		"code 65535":               {end(65535, ""), false, 1002, "no meaning"},
		"an end without a code":    {masked("\x88", ""), false, 1005, ""},
		"an end":                   {end(1000, "good é"), false, 1000, "good é"},
		"a registered code":        {end(1012, "again"), false, 1012, "again"},
		"another registered code":  {end(1014, ""), false, 1014, ""},
		"the first private code":   {end(3000, ""), false, 3000, ""},
		"the last private code":    {end(4999, ""), false, 4999, ""},
		"an end within a message":  {masked("\x01", "a") + masked("\x89", "") + end(1001, "off"), false, 1001, "off"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			near, far := net.Pipe()
			side := ws.StateServerSide
			if c.client {
				side = ws.StateClientSide
			}
			conn := newConn(near, nil, side, Options{MaxMessage: most})
			read, sent := make(chan error, 1), make(chan struct{})
			go func() {
				_, _, err := conn.Read()
				read <- err
			}()
			go func() {
				defer close(sent)
				_, _ = far.Write([]byte(c.came)) // not all may be taken
			}()
			f, err := ws.ReadFrame(far)
			for err == nil && f.Header.OpCode == ws.OpPong {
				f, err = ws.ReadFrame(far)
			}
			if err != nil || f.Header.OpCode != ws.OpClose || f.Header.Masked != c.client {
				t.Fatalf("%+v, %v", f.Header, err)
			}
			if f.Header.Masked {
				f = ws.UnmaskFrame(f)
			}
			code, reason := ws.ParseCloseFrameData(f.Payload)
			if want := c.code; want != ws.StatusNoStatusRcvd && code != want || want == ws.StatusNoStatusRcvd && len(f.Payload) > 0 || !strings.Contains(reason, c.reason) {
				t.Errorf("it says %d %q", code, reason)
			}
			_ = far.Close()
			<-sent
			if end, ok := errors.AsType[*Closed](<-read); !ok || end.Code != c.code || !strings.Contains(end.Reason, c.reason) {
				t.Errorf("the end is %v", end)
			}
			if _, _, err := conn.Read(); err == nil {
				t.Error("it goes on after the end")
			}
		})
	}
}

// TestALongReasonIsCut closes with a reason that is longer than a frame takes, and cut within a character.
func TestALongReasonIsCut(t *testing.T) {
	near, far := net.Pipe()
	c := newConn(near, nil, ws.StateServerSide, Options{MaxMessage: 100})
	go c.Close(TryLater, "x"+strings.Repeat("é", 100))
	f, err := ws.ReadFrame(far)
	if code, reason := ws.ParseCloseFrameData(f.Payload); err != nil || code != TryLater || reason != "x"+strings.Repeat("é", 61) {
		t.Errorf("%d %q, %v", code, reason, err)
	}
	_ = far.Close()
}

// TestWhatCameWithTheHandshakeIsRead sends frames with the request, which end within a character of a text in parts.
func TestWhatCameWithTheHandshakeIsRead(t *testing.T) {
	near, far := net.Pipe()
	c := newConn(near, []byte("\x81\x01a\x01\x02b\xc3"), ws.StateClientSide, Options{MaxMessage: 100})
	go func() { _, _ = far.Write([]byte("\x80\x01\xa9")) }()
	for _, want := range []string{"a", "bé"} {
		if kind, m, err := c.Read(); err != nil || kind != Text || string(m) != want {
			t.Errorf("%v %q, %v", kind, m, err)
		}
	}
	c.Cut()
	_ = far.Close()
}

// TestWhatIsNoHandshakeIsRefused asks for a WebSocket wrongly.
func TestWhatIsNoHandshakeIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*http.Request)
		status int
	}{
		"right":            {func(*http.Request) {}, 0},
		"lists":            {func(r *http.Request) { r.Header["Connection"] = []string{"keep-alive", "x, UPGRADE"} }, 0},
		"an old HTTP":      {func(r *http.Request) { r.ProtoMinor = 0 }, 426},
		"no connection":    {func(r *http.Request) { r.Header.Set("Connection", "keep-alive") }, 426},
		"no upgrade":       {func(r *http.Request) { r.Header.Del("Upgrade") }, 426},
		"another upgrade":  {func(r *http.Request) { r.Header.Set("Upgrade", "h2c") }, 426},
		"another method":   {func(r *http.Request) { r.Method = http.MethodPost }, 405},
		"another version":  {func(r *http.Request) { r.Header.Set("Sec-WebSocket-Version", "8") }, 400},
		"no key":           {func(r *http.Request) { r.Header.Del("Sec-WebSocket-Key") }, 400},
		"two keys":         {func(r *http.Request) { r.Header.Add("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==") }, 400},
		"a short key":      {func(r *http.Request) { r.Header.Set("Sec-WebSocket-Key", "AAAA") }, 400},
		"a key of no code": {func(r *http.Request) { r.Header.Set("Sec-WebSocket-Key", strings.Repeat("*", 24)) }, 400},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		for _, line := range [][2]string{{"Connection", "Upgrade"}, {"Upgrade", "websocket"}, {"Sec-WebSocket-Version", "13"}, {"Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="}} {
			r.Header.Set(line[0], line[1])
		}
		c.change(r)
		if status, err := Check(r); status != c.status || (err != nil) != (status != 0) {
			t.Errorf("%s: %d, %v", name, status, err)
		}
	}
}

// TestAnotherServerIsRefused opens a WebSocket with servers that agree wrongly.
func TestAnotherServerIsRefused(t *testing.T) {
	for name, change := range map[string]func(h http.Header){
		"another proof":      func(h http.Header) { h.Set("Sec-WebSocket-Accept", acceptOf("x")) },
		"no upgrade":         func(h http.Header) { h.Set("Upgrade", "h2c") },
		"another protocol":   func(h http.Header) { h.Set("Sec-WebSocket-Protocol", "y") },
		"an extension":       func(h http.Header) { h.Set("Sec-WebSocket-Extensions", "permessage-deflate") },
		"no connection line": func(h http.Header) { h.Set("Connection", "x") },
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h := w.Header()
			h.Set("Connection", "Upgrade")
			h.Set("Upgrade", "websocket")
			h.Set("Sec-WebSocket-Accept", acceptOf(r.Header.Get("Sec-WebSocket-Key")))
			change(h)
			w.WriteHeader(http.StatusSwitchingProtocols)
			if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
				_ = conn.Close()
			}
		}))
		if c, _, status, err := Dial(t.Context(), http.DefaultClient, s.URL, nil, "x", Options{}); err == nil || c != nil || status != 101 && status != 0 {
			t.Errorf("%s: %d, %v", name, status, err)
		}
		s.Close()
	}
}

// FuzzConn reads any bytes as the frames of a client and of a server. A reading ends with an error, and takes no more memory than came.
func FuzzConn(f *testing.F) {
	f.Add([]byte("\x81\x85\x01\x02\x03\x04iffhn"), false)
	f.Add([]byte("\x01\x01a\x89\x00\x80\x01b\x88\x02\x03\xe8"), true)
	f.Add([]byte("\x82\x7f\x00\x00\x00\x00\x00\x01\x00\x00"), true)
	f.Fuzz(func(t *testing.T, came []byte, client bool) {
		side := ws.StateServerSide
		if client {
			side = ws.StateClientSide
		}
		c := newConn(&closedPipe{}, came, side, Options{MaxMessage: 1 << 20})
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
