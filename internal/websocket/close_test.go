package websocket

import (
	"bytes"
	"net"
	"testing"

	"github.com/gobwas/ws"
)

// connected returns both sides of a connection over TCP.
func connected(t *testing.T) (client, server *Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // of a test
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	o := Options{MaxMessage: 1 << 20}
	client, server = newConn(near, nil, ws.StateClientSide, o), newConn(far, nil, ws.StateServerSide, o)
	t.Cleanup(client.Cut)
	t.Cleanup(server.Cut)
	return client, server
}

// TestCloseLeavesTheLastMessage closes a connection while a message that was read is still used, and more come. Under the race
// detector it fails if its buffer is used again.
func TestCloseLeavesTheLastMessage(t *testing.T) {
	t.Parallel()
	for _, size := range []int{100, 20_000} {
		client, server := connected(t)
		text := bytes.Repeat([]byte("x"), size)
		if err := client.Write(Binary, text, bytes.Repeat([]byte("y"), size), bytes.Repeat([]byte("z"), size)); err != nil {
			t.Fatal(err)
		}
		_, got, err := server.Read()
		if err != nil {
			t.Fatal(err)
		}
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			server.Close(Normal, "")
		}()
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			_, _, _ = client.Read() // answers the close frame
		}()
		<-closed
		<-answered
		if !bytes.Equal(got, text) {
			t.Errorf("the message of %d bytes became %.20q", size, got)
		}
	}
}
