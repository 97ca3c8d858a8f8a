package client

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"parley"
)

// maxSocketPath is the length of a Unix socket's address that every system accepts. Linux has room for 107.
const maxSocketPath = 100

// dial opens a connection to the node's socket that Check has seen.
func (o Options) dial(ctx context.Context) (net.Conn, error) {
	conn, err := Dial(ctx, o.Socket)
	if err == nil && o.Check != nil {
		if err = o.Check(conn); err != nil {
			_ = conn.Close() // nothing was sent
			return nil, err
		}
	}
	return conn, err
}

// Dial opens a connection to the Unix socket at a path of any length.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	address, done, err := SocketAddress(path)
	if err != nil {
		return nil, err
	}
	defer done()
	var d net.Dialer
	return d.DialContext(ctx, "unix", address)
}

// SocketAddress returns an address for path that is short enough for a Unix socket: path itself, or one through an open
// file of its folder. The address is valid until done is called.
func SocketAddress(path string) (address string, done func(), err error) {
	if len(path) <= maxSocketPath {
		return path, func() {}, nil
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	byFile := fmt.Sprintf("/proc/self/fd/%d", folder.Fd())
	if _, err := os.Stat(byFile); err != nil {
		_ = folder.Close() // opened for reading: nothing can be lost
		return "", nil, parley.Refuse(parley.InvalidArgument, "the path of the socket is too long for this system: %s", path).
			WithHint("choose a shorter --state folder")
	}
	return filepath.Join(byFile, filepath.Base(path)), func() { _ = folder.Close() }, nil
}
