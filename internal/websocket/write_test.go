package websocket

import (
	"bytes"
	"fmt"
	"net"
	"path/filepath"
	"testing"

	"github.com/gobwas/ws"
)

// TestWriteNowWaitsForNobody writes to a connection that nobody reads, until it takes no more. What is left comes with Flush, before
// what is written after it.
func TestWriteNowWaitsForNobody(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nothing more is opened
	there, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	here, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c, reader := newConn(here, nil, ws.StateServerSide, Options{}), newConn(there, nil, ws.StateClientSide, Options{MaxMessage: 1 << 20})
	defer c.Cut()
	defer reader.Cut()
	sent := 0
	next := func() []byte {
		sent++
		return append(fmt.Appendf(nil, "%d ", sent), message(10_000)...)
	}
	for all := true; all; {
		if all, err = c.WriteNow(Binary, next(), next()); err != nil {
			t.Fatal(err)
		}
		if sent > 10_000 {
			t.Fatal("a connection that nobody reads takes everything")
		}
	}
	if all, err := c.WriteNow(Binary, next()); all || err != nil {
		t.Errorf("what comes behind a rest was written: %v, %v", all, err)
	}
	written := make(chan error, 1)
	last := next()
	go func() {
		err := c.Flush()
		if err == nil {
			err = c.Write(Binary, last)
		}
		written <- err
	}()
	for i := range sent {
		_, got, err := reader.Read()
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Appendf(nil, "%d ", i+1); !bytes.HasPrefix(got, want) || len(got) != len(want)+10_000 {
			t.Fatalf("message %d is %.20q, with %d bytes", i+1, got, len(got))
		}
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
}
