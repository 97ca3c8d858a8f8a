package freeport_test

import (
	"net"
	"strconv"
	"testing"

	"parley/internal/freeport"
)

func TestPortsAreFreeAndDistinct(t *testing.T) {
	seen := map[int]bool{}
	for _, port := range append(freeport.Choose(t, 50), freeport.Choose(t, 50)...) {
		if seen[port] {
			t.Errorf("port %d is chosen twice", port)
		}
		seen[port] = true
	}
	l, err := net.Listen("tcp", freeport.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	if n, err := strconv.Atoi(port); err != nil || n >= 32_768 {
		t.Errorf("port %s may be that of a connection", port)
	}
}

// TestPortsOfAnEndedTestAreFree chooses more ports than there are, in tests one after the other.
func TestPortsOfAnEndedTestAreFree(t *testing.T) {
	for range 10 {
		t.Run("one", func(t *testing.T) { freeport.Choose(t, 2_000) })
	}
}
