package client_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// cutter stands between a client and a node: it passes requests on, and cuts the connection in place of so many answers, of one
// operation if that is not "".
type cutter struct {
	url  string
	of   string
	cuts atomic.Int64
	work sync.WaitGroup
}

func openCutter(t *testing.T, node, of string) *cutter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{url: "http://" + l.Addr().String(), of: of}
	c.work.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c.work.Go(func() { c.pass(conn, node) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		c.work.Wait()
	})
	return c
}

// pass passes one call on: the connection ends with it.
func (c *cutter) pass(conn net.Conn, node string) {
	defer conn.Close()
	r, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return
	}
	there, err := http.NewRequest(r.Method, "http://"+node+r.URL.Path, r.Body)
	if err != nil {
		return
	}
	there.Header, there.ContentLength = r.Header, r.ContentLength
	answer, err := http.DefaultTransport.RoundTrip(there)
	if err != nil {
		return
	}
	defer answer.Body.Close()
	if strings.HasSuffix(r.URL.Path, c.of) && c.cuts.Add(-1) >= 0 {
		_, _ = io.Copy(io.Discard, answer.Body) // the node has done what it was asked
		return
	}
	answer.Close = true
	_ = answer.Write(conn) // who has gone away does not miss it
}
