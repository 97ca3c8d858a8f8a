package gateway

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley/gateway/api"
	"parley/gateway/mux"
)

// rawSocket is a WebSocket client that sends what bytes it likes.
type rawSocket struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func (h *testServer) dialRaw(t *testing.T, protocol string) *rawSocket {
	t.Helper()
	conn, err := net.Dial("tcp", h.server.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	_, _ = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: %s\r\nAuthorization: Bearer %s\r\n\r\n",
		api.WebSocketPath, h.server.Address(), protocol, h.tokens["host"])
	k := &rawSocket{t, conn, bufio.NewReader(conn)}
	r, err := http.ReadResponse(k.in, nil)
	if err != nil || r.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(r, err)
	}
	return k
}

// masked returns a frame of a client with a first byte and a payload of 125 bytes at most, or with more in an extended
// length.
func masked(first byte, payload string) string {
	frame := []byte{first, 0x80 | byte(min(len(payload), 126))}
	if len(payload) > 125 {
		frame = binary.BigEndian.AppendUint16(frame, uint16(len(payload)))
	}
	mask := "\x01\x02\x03\x04"
	frame = append(frame, mask...)
	for i := range len(payload) {
		frame = append(frame, payload[i]^mask[i%4])
	}
	return string(frame)
}

// closed reads frames up to the close frame and returns its code and reason, and then finds the end of the connection.
func (k *rawSocket) closed() (code int, reason string) {
	k.t.Helper()
	for {
		first, payload := k.frame()
		if first == 0 {
			return 0, "the connection ended without a close frame"
		}
		if first != 0x88 {
			continue
		}
		if _, err := k.in.ReadByte(); err == nil {
			k.t.Error("the connection goes on after its close frame")
		}
		if len(payload) < 2 {
			return 1005, ""
		}
		return int(binary.BigEndian.Uint16([]byte(payload))), payload[2:]
	}
}

// frame reads a frame of the server; a first byte of 0 is the end of the connection.
func (k *rawSocket) frame() (first byte, payload string) {
	k.t.Helper()
	head := make([]byte, 2)
	if _, err := io.ReadFull(k.in, head); err != nil {
		return 0, ""
	}
	length := int(head[1])
	if length == 126 {
		more := make([]byte, 2)
		if _, err := io.ReadFull(k.in, more); err != nil {
			k.t.Fatal(err)
		}
		length = int(binary.BigEndian.Uint16(more))
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(k.in, body); err != nil {
		k.t.Fatal(err)
	}
	return head[0], string(body)
}

// TestBadFramesFailTheConnection sends frames that RFC 6455 forbids, and some that it allows, on both kinds of connection.
func TestBadFramesFailTheConnection(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	const text, more, closing, ping = 0x81, 0x80, 0x88, 0x89
	request := `{"type":"list_names_request","requestId":"é"}`
	at := strings.Index(request, "é") + 1 // within the letter
	for name, c := range map[string]struct {
		frames string
		code   int
		reason string // exactly, if it is not empty
	}{
		"text that is not UTF-8":             {masked(text, "{\"type\":\"\xff\"}"), 1007, ""},
		"a cut letter":                       {masked(text, "{\"type\":\"\xc3"), 1007, ""},
		"such text in fragments":             {masked(0x01, "{\"type\":\"") + masked(more, "\xed\xa0\x80\"}"), 1007, ""},
		"a frame without a mask":             {"\x81\x02{}", 1002, ""},
		"a fragment without a mask":          {masked(0x01, "{") + "\x80\x01}", 1002, ""},
		"a ping without a mask":              {"\x89\x00", 1002, ""},
		"a close frame without a mask":       {"\x88\x02\x03\xe8", 1002, ""},
		"a reason that is not UTF-8":         {masked(closing, "\x03\xe8\xff\xff"), 1002, ""},
		"a code of one byte":                 {masked(closing, "\x03"), 1002, ""},
		"a code that nobody may send":        {masked(closing, "\x03\xed"), 1002, ""},
		"a code of no registry":              {masked(closing, "\x03\x00"), 1002, ""},
		"a long ping":                        {masked(ping, strings.Repeat("x", 126)), 1002, ""},
		"a ping in fragments":                {masked(0x09, "x"), 1002, ""},
		"an opcode without a meaning":        {masked(0x83, "x"), 1002, ""},
		"a reserved bit":                     {masked(0xc1, "{}"), 1002, ""},
		"a fragment of nothing":              {masked(more, "{}"), 1002, ""},
		"a message within another":           {masked(0x01, "{") + masked(text, "{}"), 1002, ""},
		"a good end":                         {masked(closing, "\x03\xe8"+"bis später"), 1000, "bis später"},
		"an end without a code":              {masked(closing, ""), 1005, ""},
		"a good end after others":            {masked(text, request) + masked(ping, "x") + masked(closing, "\x0b\xb8"), 3000, ""},
		"a letter in two fragments, and end": {masked(0x01, request[:at]) + masked(ping, "") + masked(more, request[at:]) + masked(closing, "\x03\xe8"), 1000, ""},
	} {
		for _, protocol := range []string{"parley", mux.Protocol} {
			if protocol == mux.Protocol && (c.code == 1007 || strings.Contains(c.frames, masked(0x01, "{")) || strings.Contains(name, "letter") || strings.Contains(name, "after others")) {
				continue // its messages are binary
			}
			t.Run(name+"/"+protocol, func(t *testing.T) {
				t.Parallel()
				k := h.dialRaw(t, protocol)
				if _, err := io.WriteString(k.conn, c.frames); err != nil {
					t.Fatal(err)
				}
				code, reason := k.closed()
				if code != c.code || c.reason != "" && reason != c.reason {
					t.Errorf("closed with %d %q, want %d %q", code, reason, c.code, c.reason)
				}
			})
		}
	}
	k := h.dialRaw(t, "parley")
	for i := range len(request) { // each byte by itself, in a frame and of it
		for _, b := range []byte(masked([]byte{0x01, 0x00, 0x80}[min(i, 1)+i/(len(request)-1)], request[i:i+1])) {
			if _, err := k.conn.Write([]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if first, payload := k.frame(); first != text || !strings.Contains(payload, `"list_names_response"`) || !strings.Contains(payload, "é") {
		t.Errorf("a request in small pieces is answered by %x %s", first, payload)
	}
}
