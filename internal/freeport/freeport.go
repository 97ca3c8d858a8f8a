package freeport

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// The ports to choose from. Linux takes those of outgoing connections from 32,768 on, other systems from 49,152 on.
const first, last = 14_000, 32_000

// Choose returns TCP ports on which nobody listens. Until the test ends, no other test of the user gets them. That holds for
// tests with the same folder for temporary files.
func Choose(tb testing.TB, n int) (ports []int) {
	tb.Helper()
	taken := filepath.Join(os.TempDir(), fmt.Sprintf("parley-ports-%d", os.Getuid()))
	if err := os.MkdirAll(taken, 0o700); err != nil {
		tb.Fatal(err)
	}
	for attempts := 0; len(ports) < n; attempts++ {
		if attempts > last-first {
			tb.Fatalf("found only %d free ports of %d", len(ports), n)
		}
		port := first + rand.IntN(last-first)
		mark := filepath.Join(taken, strconv.Itoa(port))
		f, err := os.OpenFile(mark, os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue // another test has it
		}
		if err != nil {
			tb.Fatal(err)
		}
		_ = f.Close()
		tb.Cleanup(func() { _ = os.Remove(mark) })
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue // another program listens on it
		}
		_ = l.Close()
		ports = append(ports, port)
	}
	return ports
}

// Address returns a loopback address with a port that Choose chooses.
func Address(tb testing.TB) string {
	tb.Helper()
	return fmt.Sprintf("127.0.0.1:%d", Choose(tb, 1)[0])
}
